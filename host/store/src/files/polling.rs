//! Noticing changes by looking at files at intervals.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::watch::Targets;

/// A file system's clock ticks coarsely: within this many seconds two writes may bear one time.
const COARSE_SECONDS: i64 = 1;

/// A watch that looks at intervals.
pub(super) struct Polling {
    targets: Targets,
    every: Duration,
    seen: Snapshot,
    /// When to look next. Kept here, so that a caller who gives up waiting and comes back does not
    /// put it off.
    next: Instant,
}

/// What was seen of the files.
#[derive(PartialEq, Eq)]
struct Snapshot {
    files: BTreeMap<PathBuf, FileStamp>,
    /// Whether something was written so shortly before that a further write could look the same.
    fresh: bool,
}

/// What tells one state of a file from another.
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
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    let mut files = BTreeMap::new();
    let mut fresh = false;
    for path in targets.files() {
        // Gone since it was listed, which the next look shows.
        let Ok(found) = fs::metadata(&path) else { continue };
        fresh |= found.mtime() >= now - COARSE_SECONDS;
        let stamp = FileStamp { inode: found.ino(), length: found.len(), written: (found.mtime(), found.mtime_nsec()) };
        files.insert(path, stamp);
    }
    Snapshot { files, fresh }
}
