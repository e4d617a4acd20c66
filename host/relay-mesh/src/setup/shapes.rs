//! The JSON that the setup commands print. Field names are stable once released.

use mesh::ports::harness::{Finding, Severity};
use serde::Serialize;

/// What `install` and `uninstall` print. `uninstall --all` prints one for each harness and scope, and one of no harness
/// if nothing was set up.
#[derive(Debug, Serialize)]
pub(crate) struct PlanShape {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) harness: Option<String>,
    /// `project` or `user`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<&'static str>,
    pub(crate) outcome: PlanOutcome,
    pub(crate) files: Vec<FileChange>,
    /// What the user must do next.
    pub(crate) next_steps: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlanOutcome {
    Applied,
    Unchanged,
    Shown,
    Declined,
    /// The user could not be asked.
    Unasked,
}

/// A file that a plan changes.
#[derive(Debug, Serialize)]
pub(crate) struct FileChange {
    pub(crate) path: String,
    /// `created`, `changed` or `removed`.
    pub(crate) change: &'static str,
    /// How many lines come and go.
    pub(crate) lines_added: usize,
    pub(crate) lines_removed: usize,
    /// Whether everyone who works in the project gets it.
    pub(crate) shared: bool,
    /// Whether it will be a program.
    pub(crate) executable: bool,
    /// The unified diff.
    pub(crate) diff: String,
}

/// A harness, as `harnesses` lists it.
#[derive(Debug, Serialize)]
pub(crate) struct HarnessLine {
    /// The name on the command line.
    pub(crate) harness: String,
    /// The name for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// The harness's version, if it is on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// How far it is set up for this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project: Option<&'static str>,
    /// How far it is set up for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<&'static str>,
    /// `ok`, `warning` or `broken`; left out if nothing was installed that could be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) health: Option<&'static str>,
    /// The worst finding, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) finding: Option<String>,
}

/// A finding, as `doctor` prints it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Proof {
    /// What was checked: `data folder`, `server`, `adapter`, `settings`, `hook`, `harness`, `wake`.
    pub(crate) subject: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) harness: Option<String>,
    /// `ok`, `warning` or `broken`.
    #[serde(serialize_with = "in_a_word")]
    pub(crate) severity: Severity,
    pub(crate) what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
    /// Whether the words may be those of an adapter that is not part of the program.
    #[serde(skip)]
    pub(crate) is_foreign: bool,
}

impl Proof {
    pub(crate) fn new(subject: &'static str, harness: Option<&str>, finding: Finding) -> Proof {
        let Finding { severity, what, fix } = finding;
        Proof { subject, harness: harness.map(str::to_owned), severity, what, fix, is_foreign: false }
    }

    /// The same about an adapter that is not part of the program.
    pub(crate) fn of_foreign(self) -> Proof {
        Proof { is_foreign: true, ..self }
    }

    pub(crate) fn severity_name(&self) -> &'static str {
        severity_name(self.severity)
    }
}

fn in_a_word<S: serde::Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity_name(*severity))
}

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
    pub(crate) harness: String,
    /// The harness's own id of the session.
    pub(crate) session: String,
    /// The session's folder.
    pub(crate) workdir: String,
    /// The harness's process id, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<u32>,
    /// `certain` if known from this call, `inherited` if from the parent process.
    pub(crate) certainty: &'static str,
    /// The agent registered in the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
}

/// An adapter, as `plugin list` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct PluginLine {
    /// The name on the command line.
    pub(crate) name: String,
    /// The name for display.
    pub(crate) title: String,
    /// The adapter's own version.
    pub(crate) version: String,
    /// `built-in`, `installed`, or the path of its file.
    pub(crate) source: String,
    /// SHA-256 of the component.
    pub(crate) digest: String,
    /// The WIT version that it was built for.
    pub(crate) wit: String,
    /// Everything that it requests.
    pub(crate) grants: Vec<GrantLine>,
    /// The state of its component in this process, as text.
    pub(crate) state: String,
    /// Calls by this process.
    pub(crate) calls: u64,
    /// Failures in all processes of this machine.
    pub(crate) faults: u64,
    /// The last failure as one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_fault: Option<String>,
    /// When calls are accepted again, after too many failures in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paused_until: Option<String>,
}

/// One request of an adapter.
#[derive(Debug, Serialize)]
pub(crate) struct GrantLine {
    /// Such as `roots.config`.
    pub(crate) name: String,
    /// What it allows, as text for the user.
    pub(crate) allows: String,
    /// Whether the user granted it.
    pub(crate) given: bool,
}

impl GrantLine {
    pub(crate) fn of(grant: &adapters::Grant) -> GrantLine {
        GrantLine { name: grant.name.clone(), allows: grant.allows.clone(), given: grant.given }
    }
}

/// A file in a plugin folder that is not used.
#[derive(Debug, Serialize)]
pub(crate) struct UnusedLine {
    pub(crate) path: String,
    /// The reason, as one sentence.
    pub(crate) why: String,
}
