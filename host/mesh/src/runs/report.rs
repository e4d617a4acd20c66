//! The whole result of a run.

use crate::messages::Message;
use crate::ports::machine::Instant;
use crate::ports::runner::{ProcessExit, RunEvent, RunOutcome, Usage};
use crate::runs::judge::Verdict;
use crate::runs::record::{RunRecord, Scope};

/// Everything that came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// What it was.
    pub record: RunRecord,
    /// When it ended.
    pub ended: Instant,
    /// What the harness said of its end.
    pub outcome: RunOutcome,
    /// How its process ended.
    pub exit: ProcessExit,
    /// What its end means.
    pub verdict: Verdict,
    /// Its standard output, without its middle if it is very long.
    pub stdout: String,
    /// What it reported, in order, without its middle if it is very much.
    pub events: Vec<RunEvent>,
    /// What was left out of output and events, and what else the reader should know, as sentences.
    pub notes: Vec<String>,
    /// What it changed; none if its folder is in no repository.
    pub changes: Option<RunChanges>,
    /// What it used, and what those figures cover.
    pub usage: (Option<Usage>, Scope),
    /// Mail that it never read.
    pub mail: Vec<Message>,
}

/// What a run changed in its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunChanges {
    /// New and changed files, relative to the top of the repository.
    pub written: Vec<String>,
    /// Deleted files.
    pub deleted: Vec<String>,
    /// The difference as a patch.
    pub diff: String,
}

impl RunReport {
    /// The files that it wrote: as the repository shows, else as the harness says.
    pub fn written(&self) -> Vec<String> {
        if let Some(changes) = &self.changes {
            return changes.written.clone();
        }
        let mut files: Vec<String> = Vec::new();
        for event in &self.events {
            if let RunEvent::Wrote { files: some } = event {
                files.extend(some.iter().filter(|file| !files.contains(file)).cloned().collect::<Vec<_>>());
            }
        }
        files
    }
}
