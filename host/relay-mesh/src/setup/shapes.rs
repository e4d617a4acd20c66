//! The JSON that the commands of this part print. Names stay as they are once released.

use mesh::harness::{Finding, Severity};
use serde::Serialize;

/// What `install` and `uninstall` print.
#[derive(Debug, Serialize)]
pub(crate) struct Carried {
    /// The harness.
    pub(crate) harness: String,
    /// `project` or `user`.
    pub(crate) scope: &'static str,
    /// What became of the plan.
    pub(crate) outcome: PlanOutcome,
    /// Each file that the plan changes.
    pub(crate) files: Vec<FileChange>,
    /// What is left to the person.
    pub(crate) next_steps: Vec<String>,
}

/// What became of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlanOutcome {
    /// It was carried out.
    Applied,
    /// There was nothing to change.
    Unchanged,
    /// It was only shown.
    Shown,
    /// The person said no.
    Declined,
    /// Nobody was there to agree.
    Unasked,
}

/// A file that a plan changes.
#[derive(Debug, Serialize)]
pub(crate) struct FileChange {
    /// Its path.
    pub(crate) path: String,
    /// `created`, `changed` or `removed`.
    pub(crate) change: &'static str,
    /// The unified diff.
    pub(crate) diff: String,
}

/// A harness, as `harnesses` lists it.
#[derive(Debug, Serialize)]
pub(crate) struct HarnessLine {
    /// What people type.
    pub(crate) harness: String,
    /// What people read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// The harness's version, where it is on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// How far it is set up for this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<&'static str>,
    /// How far it is set up for the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<&'static str>,
    /// `ok`, `warning` or `broken`; left out where nothing was installed that could be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) health: Option<&'static str>,
    /// The worst that was found, where something was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finding: Option<String>,
}

/// A finding, as `doctor` prints it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Proof {
    /// What was looked at: `data folder`, `server`, `adapter`, `settings`, `hook`, `harness`, `wake`.
    pub(crate) subject: &'static str,
    /// The harness that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) harness: Option<String>,
    /// `ok`, `warning` or `broken`.
    #[serde(serialize_with = "in_a_word")]
    pub(crate) severity: Severity,
    /// What was found.
    pub(crate) what: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
}

impl Proof {
    /// A finding about something.
    pub(crate) fn new(subject: &'static str, harness: Option<&str>, finding: Finding) -> Proof {
        let Finding { severity, what, fix } = finding;
        Proof { subject, harness: harness.map(str::to_owned), severity, what, fix }
    }

    /// How bad it is, in a word.
    pub(crate) fn severity_name(&self) -> &'static str {
        severity_name(self.severity)
    }
}

fn in_a_word<S: serde::Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity_name(*severity))
}

/// How bad a finding is, in a word.
pub(crate) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "ok",
        Severity::Warning => "warning",
        Severity::Broken => "broken",
    }
}

/// What `detect-harness` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Detected {
    /// The harness.
    pub(crate) harness: String,
    /// The session's id, in the harness's own spelling.
    pub(crate) session: String,
    /// The folder that it works in.
    pub(crate) workdir: String,
    /// The harness's process, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<u32>,
    /// `certain` where it comes from this very call, `inherited` where from the parent process.
    pub(crate) certainty: &'static str,
    /// The agent that is registered in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
}

/// An adapter, as `plugin list` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct PluginLine {
    /// What people type.
    pub(crate) name: String,
    /// What people read.
    pub(crate) title: String,
    /// The adapter's own version.
    pub(crate) version: String,
    /// `built-in`, `installed`, or the file that it comes from.
    pub(crate) source: String,
    /// SHA-256 of the component.
    pub(crate) digest: String,
    /// The version of the interface that it was written for.
    pub(crate) wit: String,
    /// Everything that it asks for.
    pub(crate) grants: Vec<GrantLine>,
    /// What became of its component in this process, in words.
    pub(crate) state: String,
    /// How often this process called it.
    pub(crate) calls: u64,
    /// How often it failed, in any process of this machine.
    pub(crate) faults: u64,
    /// The last failure, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_fault: Option<String>,
    /// Until when its calls are refused, because it failed too often in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paused_until: Option<String>,
}

/// One thing that an adapter asks for.
#[derive(Debug, Serialize)]
pub(crate) struct GrantLine {
    /// Its name: `roots.config`.
    pub(crate) name: String,
    /// What it allows, for people.
    pub(crate) allows: String,
    /// Whether it is given.
    pub(crate) given: bool,
}

impl GrantLine {
    /// What the adapters crate knows of a grant.
    pub(crate) fn of(grant: &adapters::Grant) -> GrantLine {
        GrantLine { name: grant.name.clone(), allows: grant.allows.clone(), given: grant.given }
    }
}

/// A file in a plugin folder that is not used.
#[derive(Debug, Serialize)]
pub(crate) struct UnusedLine {
    /// The file.
    pub(crate) path: String,
    /// Why, in one sentence.
    pub(crate) why: String,
}
