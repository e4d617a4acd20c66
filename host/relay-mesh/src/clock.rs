//! This machine's clock, and by how much the servers' goes before it or after. Processes of one machine agree
//! on that, because it is kept in the data folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use mesh::machine::Instant;
use serde::{Deserialize, Serialize};
use store::Durability;
use store_nats::Timekeeper;

use crate::atomic_write;

/// The file in the data folder.
const FILE: &str = "clock.json";
/// How wrong a clock may be before it is set right, in milliseconds: an answer takes its time too.
const CLOSE_ENOUGH: u64 = 1_000;
/// After how long it is asked again, in milliseconds.
const GOOD_FOR: u64 = 600_000;
/// By how many seconds a test lets this machine's own clock go wrong.
const WRONG_BY: &str = "RELAY_TEST_CLOCK_WRONG_BY";

/// A clock that is set right by the servers' where the machine has any.
#[derive(Debug)]
pub(crate) struct Clock {
    file: PathBuf,
    /// By how many milliseconds the machine's own clock is wrong on purpose.
    wrong_by: i64,
    /// How many milliseconds are added to the machine's own time. Written when the servers' time is told.
    ahead: AtomicI64,
    /// When that was, by the machine's own time; zero before the first.
    learned: AtomicU64,
}

/// What was learned, as it is kept.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Kept {
    ahead: i64,
    learned: u64,
}

impl Clock {
    /// The clock of the machine that has this data folder.
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

    /// Takes up what was learned before. Only a machine with servers goes by them.
    pub(crate) fn go_by_servers(&self) {
        let kept = fs::read(&self.file).ok().and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        let kept = kept.unwrap_or_default();
        self.ahead.store(kept.ahead, Ordering::Relaxed);
        self.learned.store(kept.learned, Ordering::Relaxed);
    }

    /// The time.
    pub(crate) fn now(&self) -> Instant {
        Instant(self.own().saturating_add_signed(self.ahead.load(Ordering::Relaxed)))
    }

    /// The machine's own time, right or wrong.
    pub(crate) fn own(&self) -> u64 {
        #[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is given")]
        let now = std::time::SystemTime::now();
        let since_epoch = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX).saturating_add_signed(self.wrong_by)
    }

    fn keep(&self, kept: Kept) -> io::Result<()> {
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
        if let Err(error) = self.keep(Kept { ahead, learned: own }) {
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
