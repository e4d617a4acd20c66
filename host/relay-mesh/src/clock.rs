//! This machine's clock and its offset from the servers' clock. The offset is stored in the data folder so that all
//! processes of the machine use the same one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use mesh::ports::machine::Instant;
use serde::{Deserialize, Serialize};
use store::Durability;
use store_nats::Timekeeper;

use crate::atomic_write;

const FILE: &str = "clock.json";
/// Smallest difference that is corrected, in milliseconds: the server's answer takes time too.
const CLOSE_ENOUGH: u64 = 1_000;
/// How long an offset is used before the servers are asked again, in milliseconds.
const GOOD_FOR: u64 = 600_000;
/// How often to look whether another process has stored an offset, in milliseconds.
const LOOK_EVERY: u64 = 1_000;
/// Test variable: the error of this machine's own clock, in seconds.
const WRONG_BY: &str = "RELAY_TEST_CLOCK_WRONG_BY";

/// A clock that is corrected by the servers' time if the mesh uses servers.
#[derive(Debug)]
pub(crate) struct Clock {
    file: PathBuf,
    /// From [`WRONG_BY`], in milliseconds.
    wrong_by: i64,
    /// Milliseconds added to the machine's own time. Written by `told` and `read_kept`.
    ahead: AtomicI64,
    /// When `told` was last called, by the machine's own time; zero before the first call.
    learned: AtomicU64,
    /// Whether the stored offset is used. Written by `go_by_servers`.
    follows: AtomicBool,
    /// When the file was last looked at, by the machine's own time.
    looked: AtomicU64,
    /// When the file was changed, as it was last seen, in nanoseconds since 1970; zero without a file.
    changed: AtomicU64,
}

/// The content of [`FILE`].
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct ClockRecord {
    ahead: i64,
    learned: u64,
}

impl Clock {
    pub(crate) fn kept_in(data: &Path) -> Clock {
        #[expect(clippy::disallowed_methods, reason = "what a test does to a clock is no setting that people may have")]
        let wrong_by = std::env::var(WRONG_BY).ok().and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
        Clock {
            file: data.join(FILE),
            wrong_by: wrong_by.saturating_mul(1_000),
            ahead: AtomicI64::new(0),
            learned: AtomicU64::new(0),
            follows: AtomicBool::new(false),
            looked: AtomicU64::new(0),
            changed: AtomicU64::new(0),
        }
    }

    /// Reads the stored offset. Called only if the mesh uses servers.
    pub(crate) fn go_by_servers(&self) {
        self.looked.store(self.own(), Ordering::Relaxed);
        self.changed.store(self.file_changed(), Ordering::Relaxed);
        self.read_kept();
        self.follows.store(true, Ordering::Relaxed);
    }

    fn read_kept(&self) {
        let kept = fs::read(&self.file).ok().and_then(|bytes| serde_json::from_slice::<ClockRecord>(&bytes).ok());
        // What is known is better than nothing.
        let Some(kept) = kept else { return };
        self.ahead.store(kept.ahead, Ordering::Relaxed);
        self.learned.store(kept.learned, Ordering::Relaxed);
    }

    /// Reads the stored offset again if another process has changed it.
    fn follow(&self, own: u64) {
        if !self.follows.load(Ordering::Relaxed) || own.abs_diff(self.looked.load(Ordering::Relaxed)) < LOOK_EVERY {
            return;
        }
        self.looked.store(own, Ordering::Relaxed);
        let changed = self.file_changed();
        if self.changed.swap(changed, Ordering::Relaxed) != changed {
            self.read_kept();
        }
    }

    fn file_changed(&self) -> u64 {
        let changed = fs::metadata(&self.file).and_then(|file| file.modified()).ok();
        let since_epoch = changed.and_then(|changed| changed.duration_since(std::time::UNIX_EPOCH).ok());
        u64::try_from(since_epoch.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn now(&self) -> Instant {
        let own = self.own();
        self.follow(own);
        Instant(own.saturating_add_signed(self.ahead.load(Ordering::Relaxed)))
    }

    /// The machine's own time in milliseconds since 1970, uncorrected.
    pub(crate) fn own(&self) -> u64 {
        #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is given")]
        let now = std::time::SystemTime::now();
        let since_epoch = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX).saturating_add_signed(self.wrong_by)
    }

    fn keep(&self, kept: ClockRecord) -> io::Result<()> {
        let text = serde_json::to_vec(&kept)?;
        atomic_write::replace(&self.file, &text, 0o600, Durability::Process)
    }
}

impl Timekeeper for Clock {
    fn asks(&self) -> bool {
        let own = self.own();
        self.follow(own);
        own.abs_diff(self.learned.load(Ordering::Relaxed)) > GOOD_FOR
    }

    fn told(&self, servers: u64) {
        let own = self.own();
        let ahead = match servers.abs_diff(own) {
            0..=CLOSE_ENOUGH => 0,
            _ => servers.cast_signed().saturating_sub(own.cast_signed()),
        };
        if ahead != 0 && self.ahead.load(Ordering::Relaxed) == 0 {
            tracing::warn!(
                ahead_by_milliseconds = -ahead,
                "this machine's clock is not as its servers', and relay-mesh goes by theirs"
            );
        }
        self.ahead.store(ahead, Ordering::Relaxed);
        self.learned.store(own, Ordering::Relaxed);
        if let Err(error) = self.keep(ClockRecord { ahead, learned: own }) {
            tracing::debug!(%error, "what time it is at the servers is not kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_goes_by_the_servers() {
        let folder = tempfile::tempdir().expect("a folder");
        let hour: u64 = 3_600_000;
        let mut clock = Clock::kept_in(folder.path());
        clock.wrong_by = hour.cast_signed();
        let truth = clock.own() - hour;
        assert!(clock.asks(), "nobody has told it yet");
        clock.told(truth);
        assert!(!clock.asks());
        let off = clock.now().0.abs_diff(truth);
        assert!(off < 60_000, "off by {off} ms");

        let mut other = Clock::kept_in(folder.path());
        other.wrong_by = hour.cast_signed();
        assert!(other.now().0 > truth + hour / 2, "a machine without servers goes by itself");
        other.go_by_servers();
        assert!(other.now().0.abs_diff(truth) < 60_000, "all processes of a machine agree");

        other.told(other.own() + 300);
        assert!(other.now().0 > truth + hour / 2, "what is close enough is left alone");
    }

    #[test]
    fn a_process_follows_what_another_one_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let hour: u64 = 3_600_000;
        let clock = || Clock { wrong_by: hour.cast_signed(), ..Clock::kept_in(folder.path()) };
        let (long, short) = (clock(), clock());
        long.go_by_servers();
        assert!(long.asks(), "nobody knows the servers' time");
        let truth = short.own() - hour;
        short.told(truth);
        long.looked.store(0, Ordering::Relaxed);
        assert!(!long.asks(), "the other process has asked");
        assert!(long.now().0.abs_diff(truth) < 60_000, "and has told this one");
    }
}
