//! The servers of harnesses that relay-mesh keeps running, as `up`, `down` and `status` show them.

use serde::Serialize;

use crate::server::of_harness::HarnessServerRecord;

/// What became of a harness that `up --with` looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Brought {
    /// Its server was started now.
    Started,
    /// It runs since before, and relay-mesh started it.
    Running,
    /// It runs, and somebody else started it.
    Elsewhere,
    /// It needs no server of its own.
    NoneNeeded,
    /// It is not on this machine.
    NotHere,
    /// Its server did not come up.
    Failed,
}

/// One line of `up --with`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WithShape {
    pub(crate) harness: String,
    #[serde(skip)]
    pub(crate) title: String,
    pub(crate) outcome: Brought,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// The harness's own process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// The port that its users expect, if another program has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_at: Option<u16>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// What a user types to work in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attach: Option<String>,
}

impl WithShape {
    pub(crate) fn of(harness: &str, title: &str, outcome: Brought) -> WithShape {
        let (harness, title) = (harness.to_owned(), title.to_owned());
        WithShape { harness, title, outcome, url: None, pid: None, not_at: None, why: None, hint: None, attach: None }
    }

    pub(crate) fn failed(harness: &str, title: &str, why: String, hint: Option<String>) -> WithShape {
        WithShape { why: Some(why), hint, ..WithShape::of(harness, title, Brought::Failed) }
    }

    /// With where it is.
    pub(crate) fn at(self, record: &HarnessServerRecord) -> WithShape {
        WithShape { url: Some(record.url()), pid: Some(record.pid), ..self }
    }

    pub(crate) fn text(&self) -> String {
        let title = &self.title;
        let url = self.url.as_deref().unwrap_or_default();
        let pid = self.pid.map_or_else(String::new, |pid| format!("process {pid}"));
        let why = self.why.as_deref().unwrap_or_default();
        let line = match self.outcome {
            Brought::Started => format!("the server of {title} runs: {url}, {pid}"),
            Brought::Running => format!("the server of {title} runs already: {url}, {pid}"),
            Brought::Elsewhere => format!("a server of {title} runs already, {pid}, which relay-mesh did not start"),
            Brought::NoneNeeded => format!("{title} needs no server"),
            Brought::NotHere => format!("{title} is not on this machine"),
            Brought::Failed => format!("the server of {title} was not started: {why}"),
        };
        match (self.not_at, &self.hint) {
            (Some(port), _) => format!("{line} (another program has port {port})"),
            (None, Some(hint)) => format!("{line}\n  {hint}"),
            (None, None) => line,
        }
    }
}

/// A harness's server that runs, or that `down` has stopped.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HarnessServerShape {
    pub(crate) harness: String,
    #[serde(skip)]
    pub(crate) title: String,
    pub(crate) url: String,
    /// The harness's own process.
    pub(crate) pid: u32,
}

impl From<&HarnessServerRecord> for HarnessServerShape {
    fn from(record: &HarnessServerRecord) -> HarnessServerShape {
        let HarnessServerRecord { harness, title, pid, .. } = record;
        HarnessServerShape { harness: harness.clone(), title: title.clone(), url: record.url(), pid: *pid }
    }
}
