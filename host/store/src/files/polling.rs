//! Notices changes by polling files.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::watch::Targets;
use crate::unix::{self, MetadataExt};

/// File timestamps are coarse: within this many seconds two writes may have the same time.
const COARSE_SECONDS: i64 = 1;

/// A watch that polls.
pub(super) struct Polling {
    targets: Targets,
    every: Duration,
    seen: Snapshot,
    /// The time of the next poll. Kept here, so that a caller who cancels and waits again does not delay it.
    next: Instant,
}

#[derive(PartialEq, Eq)]
struct Snapshot {
    files: BTreeMap<PathBuf, FileStamp>,
    /// Whether a write was so recent that a further write could look the same.
    fresh: bool,
}

/// The metadata that distinguishes two states of a file.
#[derive(PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    length: u64,
    written: (i64, i64),
}

impl Polling {
    pub(super) fn new(targets: Targets, every: Duration) -> Polling {
        Polling { seen: look(&targets), targets, every, next: Instant::now() + every }
    }

    pub(super) async fn changed(&mut self) {
        loop {
            sleep_until(self.next).await;
            self.next = Instant::now() + self.every;
            let now = look(&self.targets);
            if self.seen.fresh || now.files != self.seen.files {
                self.seen = now;
                return;
            }
        }
    }
}

fn look(targets: &Targets) -> Snapshot {
    let now = unix::now().tv_sec;
    let mut files = BTreeMap::new();
    let mut fresh = false;
    for path in targets.files() {
        // Removed since it was listed; the next poll shows it.
        let Ok(found) = fs::metadata(&path) else { continue };
        fresh |= found.mtime() >= now - COARSE_SECONDS;
        let stamp = FileStamp { inode: found.ino(), length: found.len(), written: (found.mtime(), found.mtime_nsec()) };
        files.insert(path, stamp);
    }
    Snapshot { files, fresh }
}
