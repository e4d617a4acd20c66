//! This machine's clock and its offset from the servers' clock. The offset is stored in the data folder so that all
//! processes of the machine use the same one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

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
/// Test variable: the error of this machine's own clock, in seconds.
const WRONG_BY: &str = "RELAY_TEST_CLOCK_WRONG_BY";

/// A clock that is corrected by the servers' time if the mesh uses servers.
#[derive(Debug)]
pub(crate) struct Clock {
    file: PathBuf,
    /// From [`WRONG_BY`], in milliseconds.
    wrong_by: i64,
    /// Milliseconds added to the machine's own time. Written by `told`.
    ahead: AtomicI64,
    /// When `told` was last called, by the machine's own time; zero before the first call.
    learned: AtomicU64,
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
        }
    }

    /// Reads the stored offset. Called only if the mesh uses servers.
    pub(crate) fn go_by_servers(&self) {
        let kept = fs::read(&self.file).ok().and_then(|bytes| serde_json::from_slice::<ClockRecord>(&bytes).ok());
        let kept = kept.unwrap_or_default();
        self.ahead.store(kept.ahead, Ordering::Relaxed);
        self.learned.store(kept.learned, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Instant {
        Instant(self.own().saturating_add_signed(self.ahead.load(Ordering::Relaxed)))
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
        self.own().abs_diff(self.learned.load(Ordering::Relaxed)) > GOOD_FOR
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
}
