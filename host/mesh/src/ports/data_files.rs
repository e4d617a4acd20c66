//! What a cleanup does with the files of the data folder beyond the store: it measures segments, sees whose logs exist,
//! and deletes the files of a session that is over together with their locks.

use std::path::Path;

use store::{Key, Position};

use crate::cleanup::DryRun;
use crate::names::AgentName;

/// A number of things, and their bytes as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub count: usize,
    /// Their bytes; zero if unknown.
    pub bytes: u64,
}

impl Amount {
    /// Adds one thing of that many bytes.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// The segments of a log that end at or before a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldSegments {
    /// Their number and bytes.
    pub amount: Amount,
    /// Their files, relative to the data folder.
    pub names: Vec<String>,
    /// Where the first segment after them begins.
    pub kept_from: Position,
}

/// The files of the data folder.
pub trait DataFiles: Send + Sync {
    /// The whole segments of a log before a position; none if the log is in no files here.
    fn segments_before(&self, log: &Key, before: Position) -> Option<OldSegments>;

    /// Deletes the files of a log and of these holds, with their locks, or only measures the log. None if they are in no
    /// files here. Only for what nobody uses any more: a lock that goes no longer excludes anybody.
    fn forget(&self, log: &Key, holds: &[Key], dry_run: DryRun) -> Option<Amount>;

    /// The agents that have a folder here, also those without a record.
    fn agents(&self) -> Vec<AgentName>;

    /// Whether a worktree is there that this program made.
    fn has_worktree(&self, folder: &Path) -> bool;
}

/// For a caller that does not look at files: nothing is known of them.
#[derive(Clone, Copy, Debug)]
pub struct NoDataFiles;

impl DataFiles for NoDataFiles {
    fn segments_before(&self, _: &Key, _: Position) -> Option<OldSegments> {
        None
    }

    fn forget(&self, _: &Key, _: &[Key], _: DryRun) -> Option<Amount> {
        None
    }

    fn agents(&self) -> Vec<AgentName> {
        Vec::new()
    }

    fn has_worktree(&self, _: &Path) -> bool {
        // It may be there, and hold work.
        true
    }
}
