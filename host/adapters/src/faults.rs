//! The faults of an adapter: counted in this process, and noted in the store so that `plugin list` and `doctor` see
//! those of hooks. Repeated faults cause a pause. Each hook is a process of one call, so a process continues from the
//! count that the last failed one left.

use std::sync::{Mutex, MutexGuard, PoisonError};

use mesh::ports::machine::Instant;
use serde::{Deserialize, Serialize};
use store::{Durability, Key, Revision, Store, SwapError};

use crate::host_functions::state::home_of;

/// Faults in a row after which calls are refused for a while.
const TOLERATED: u32 = 5;
/// The first pause, in milliseconds; it doubles with each further fault.
const FIRST_PAUSE: u64 = 1_000;
/// The longest pause, in milliseconds.
const LONGEST_PAUSE: u64 = 300_000;

/// The last thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    pub at: Instant,
    /// What happened, in one sentence.
    pub what: String,
}

/// The calls and faults of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls in this process.
    pub calls: u64,
    /// Calls by any process of this machine that trapped, ran too long or needed too much memory.
    pub faults: u64,
    pub last_fault: Option<Fault>,
    /// Until when calls are refused, because of too many faults in a row.
    pub paused_until: Option<Instant>,
}

/// One adapter's faults in this process.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    // A std mutex: nothing is awaited while it is held.
    tally: Mutex<Tally>,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    calls: u64,
    /// Faults since the last successful call, in this process and those before it.
    in_a_row: u32,
    /// Whether the faults of other processes were read from the store. Written once, by `recall`.
    recalled: bool,
    /// Until when calls are refused. Written by a fault, and expires by itself.
    paused_until: Option<Instant>,
}

/// What the store keeps of an adapter's faults.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Noted {
    /// Number of all faults ever.
    pub(crate) faults: u64,
    pub(crate) last: Option<Fault>,
    /// Faults since the last successful call.
    #[serde(default)]
    in_a_row: u32,
    #[serde(default)]
    pub(crate) paused_until: Option<Instant>,
}

impl Faults {
    /// Whether a call may begin; the error is the remaining pause in milliseconds.
    pub(crate) fn begin(&self, now: Instant) -> Result<(), u64> {
        let mut tally = self.lock();
        if let Some(until) = tally.paused_until.filter(|until| now < *until) {
            return Err(until.since(now));
        }
        tally.calls += 1;
        Ok(())
    }

    /// Counts a successful call. Tells whether it followed a fault, so that the store has to be updated.
    pub(crate) fn clear(&self) -> Recovery {
        let mut tally = self.lock();
        let recovered = tally.in_a_row > 0;
        tally.in_a_row = 0;
        tally.paused_until = None;
        if recovered { Recovery::Recovered } else { Recovery::WasWell }
    }

    /// Counts a fault. Returns the length of the pause that follows, in milliseconds.
    pub(crate) fn count(&self, now: Instant) -> u64 {
        let mut tally = self.lock();
        tally.in_a_row = tally.in_a_row.saturating_add(1);
        let pause = pause_after(tally.in_a_row);
        tally.paused_until = (pause > 0).then(|| now.plus(pause));
        pause
    }

    /// Continues from the counts of earlier processes. Reads the store once.
    pub(crate) async fn recall(&self, store: &dyn Store, adapter: &str) {
        if std::mem::replace(&mut self.lock().recalled, true) {
            return;
        }
        match noted(store, adapter).await {
            Ok(noted) => {
                let mut tally = self.lock();
                tally.in_a_row = tally.in_a_row.max(noted.in_a_row);
                tally.paused_until = tally.paused_until.max(noted.paused_until);
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(adapter, error, "how it fared before is not known");
            }
        }
    }

    /// Notes a fault in the store, for other processes.
    pub(crate) async fn note(&self, store: &dyn Store, adapter: &str, fault: Fault) -> Result<(), SwapError> {
        let (in_a_row, paused_until) = {
            let tally = self.lock();
            (tally.in_a_row, tally.paused_until)
        };
        change(store, adapter, |noted| Noted {
            faults: noted.faults.saturating_add(1),
            last: Some(fault.clone()),
            // Another process may have counted more faults than this one.
            in_a_row: in_a_row.max(noted.in_a_row.saturating_add(1)),
            paused_until: paused_until.max(noted.paused_until),
        })
        .await
    }

    /// Notes in the store that a call succeeded after a fault.
    pub(crate) async fn note_recovery(store: &dyn Store, adapter: &str) -> Result<(), SwapError> {
        change(store, adapter, |noted| Noted { in_a_row: 0, paused_until: None, ..noted }).await
    }

    pub(crate) fn calls(&self) -> u64 {
        self.lock().calls
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long to refuse calls after this many faults in a row, in milliseconds.
fn pause_after(in_a_row: u32) -> u64 {
    match in_a_row.checked_sub(TOLERATED) {
        None => 0,
        Some(further) => FIRST_PAUSE.saturating_mul(1 << further.min(20)).min(LONGEST_PAUSE),
    }
}

/// Whether a successful call followed a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    Recovered,
    WasWell,
}

/// The note of all processes about an adapter.
pub(crate) async fn noted(store: &dyn Store, adapter: &str) -> Result<Noted, SwapError> {
    match key_of(adapter) {
        Some(key) => Ok(read(store, &key).await?.1),
        None => Ok(Noted::default()),
    }
}

fn key_of(adapter: &str) -> Option<Key> {
    Some(home_of(adapter).ok()?.child("faults"))
}

async fn change(store: &dyn Store, adapter: &str, next: impl Fn(Noted) -> Noted) -> Result<(), SwapError> {
    let Some(key) = key_of(adapter) else { return Ok(()) };
    // Several processes may count the same defect at once; each tries a few times.
    let mut tries = 0;
    loop {
        let (revision, noted) = read(store, &key).await?;
        let bytes = serde_json::to_vec(&next(noted)).unwrap_or_else(|_| b"{\"faults\":1,\"last\":null}".to_vec());
        match store.swap(&key, revision, Some(&bytes), Durability::Process).await {
            Err(SwapError::Changed { .. }) if tries < 8 => tries += 1,
            other => return other.map(drop),
        }
    }
}

async fn read(store: &dyn Store, key: &Key) -> Result<(Option<Revision>, Noted), SwapError> {
    Ok(match store.get(key).await? {
        // An unreadable note is no reason to fail: counting starts again.
        Some(versioned) => (Some(versioned.revision), serde_json::from_slice(&versioned.bytes).unwrap_or_default()),
        None => (None, Noted::default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_in_a_row_lead_to_growing_pauses_and_one_good_call_ends_them() {
        let faults = Faults::default();
        for at in 0..4 {
            assert_eq!(faults.begin(Instant(at)), Ok(()));
            assert_eq!(faults.count(Instant(at)), 0);
        }
        assert_eq!(faults.begin(Instant(5)), Ok(()));
        assert_eq!(faults.count(Instant(5)), 1_000);
        assert_eq!(faults.begin(Instant(105)), Err(900));
        assert_eq!(faults.begin(Instant(1005)), Ok(()));
        assert_eq!(faults.count(Instant(1005)), 2_000);
        assert_eq!(faults.begin(Instant(3005)), Ok(()));
        assert_eq!(faults.clear(), Recovery::Recovered);
        assert_eq!(faults.clear(), Recovery::WasWell);
        assert_eq!(faults.count(Instant(3006)), 0);
        assert_eq!(faults.calls(), 7);
    }

    #[test]
    fn a_pause_has_an_end() {
        assert_eq!(pause_after(100), LONGEST_PAUSE);
    }
}
