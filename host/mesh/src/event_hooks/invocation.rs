//! One event that a hook is for, and what became of it.

use serde::{Deserialize, Serialize};

use super::{HookTrigger, Occurrence};
use crate::ports::machine::{Instant, Process};

/// The most tries of a webhook or a message.
pub const MOST_TRIES: u32 = 5;
/// How long an invocation that is over is kept, in milliseconds.
pub const FINISHED_KEPT: u64 = 24 * 3_600_000;
/// How long one is kept that failed, in milliseconds.
pub const DEAD_KEPT: u64 = 7 * 24 * 3_600_000;
/// How long to wait after the first try, in milliseconds. Doubled after each further one.
const FIRST_WAIT: u64 = 2_000;

/// One event for one hook, stored under `event-hooks/invocations/ID`, only in the local store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// Its id: the same however often it is tried, so that a recipient can tell a repetition.
    pub id: String,
    pub hook: String,
    pub event: Occurrence,
    /// What became of it.
    pub stage: InvocationStage,
}

/// What became of an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "stage")]
pub enum InvocationStage {
    /// It is to be carried out, or tried again.
    Waiting {
        /// Not before.
        due: Instant,
        /// How often it was tried.
        tries: u32,
        /// Why the last try failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A command was about to be started. It is never started a second time.
    Started {
        at: Instant,
        /// By which process.
        by: Process,
    },
    /// It was carried out.
    Done {
        at: Instant,
        /// With what result.
        told: String,
    },
    /// It failed, and is not tried again.
    Failed {
        at: Instant,
        /// How often it was tried.
        tries: u32,
        why: String,
    },
    /// The process that ran its command was killed: perhaps it has not finished.
    Unfinished {
        /// When that was found out.
        at: Instant,
    },
    /// Events that were passed over, because the hook was for too many.
    Skipped {
        /// The last of them.
        at: Instant,
        count: u64,
        /// The position of the last one in the event log.
        last: store::Position,
    },
}

impl InvocationStage {
    /// The word in output and JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            InvocationStage::Waiting { tries: 0, .. } => "waiting",
            InvocationStage::Waiting { .. } => "retrying",
            InvocationStage::Started { .. } => "running",
            InvocationStage::Done { .. } => "done",
            InvocationStage::Failed { .. } => "failed",
            InvocationStage::Unfinished { .. } => "unfinished",
            InvocationStage::Skipped { .. } => "skipped",
        }
    }

    /// Whether there is nothing left to do, and since when.
    pub fn over_since(&self) -> Option<Instant> {
        match self {
            InvocationStage::Waiting { .. } | InvocationStage::Started { .. } => None,
            InvocationStage::Done { at, .. }
            | InvocationStage::Failed { at, .. }
            | InvocationStage::Unfinished { at }
            | InvocationStage::Skipped { at, .. } => Some(*at),
        }
    }

    /// Whether it has been over for long enough to be deleted.
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        let has_failed = matches!(self, InvocationStage::Failed { .. });
        let kept = if has_failed { DEAD_KEPT } else { FINISHED_KEPT };
        self.over_since().is_some_and(|over| now.since(over) > kept)
    }
}

/// What a try came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It was carried out.
    Done(String),
    /// It failed, and may succeed later.
    TryAgain(String),
    /// It failed for good.
    Failed(String),
}

/// How long to wait after so many tries, in milliseconds: exponential, with up to a quarter more, so that what failed
/// together is not tried together.
pub fn retry_after(tries: u32, random: u8) -> u64 {
    let wait = FIRST_WAIT << (tries.saturating_sub(1)).min(10);
    wait + wait * u64::from(random) / 1_024
}

/// What follows from a try.
pub fn next_stage(attempt: Attempt, tries_before: u32, now: Instant, random: u8) -> InvocationStage {
    let tries = tries_before + 1;
    match attempt {
        Attempt::Done(told) => InvocationStage::Done { at: now, told },
        Attempt::TryAgain(why) if tries < MOST_TRIES => {
            InvocationStage::Waiting { due: now.plus(retry_after(tries, random)), tries, why: Some(why) }
        }
        Attempt::TryAgain(why) | Attempt::Failed(why) => InvocationStage::Failed { at: now, tries, why },
    }
}

impl Invocation {
    /// One for an event, which waits. `id` follows from the hook and from the event's position in the log.
    pub(crate) fn of(id: String, hook: &str, on: HookTrigger, event: &crate::Event) -> Invocation {
        Invocation {
            id,
            hook: hook.to_owned(),
            event: Occurrence { at: event.at, on, details: event.details.clone() },
            stage: InvocationStage::Waiting { due: event.at, tries: 0, why: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_is_tried_five_times_at_growing_intervals_and_then_kept_as_failed() {
        let (mut stage, mut at, mut waits) =
            (InvocationStage::Waiting { due: Instant(0), tries: 0, why: None }, Instant(0), Vec::new());
        while let InvocationStage::Waiting { due, tries, .. } = &stage {
            at = Instant(at.0.max(due.0));
            stage = next_stage(Attempt::TryAgain("it does not answer".to_owned()), *tries, at, 0);
            if let InvocationStage::Waiting { due, .. } = &stage {
                waits.push(due.since(at));
            }
        }
        assert_eq!(waits, [2_000, 4_000, 8_000, 16_000]);
        assert_eq!(stage, InvocationStage::Failed { at, tries: 5, why: "it does not answer".to_owned() });
        assert!(!stage.is_old(at.plus(DEAD_KEPT)) && stage.is_old(at.plus(DEAD_KEPT + 1)));
        assert_eq!(retry_after(1, 255), 2_498);
        assert!(matches!(
            next_stage(Attempt::Failed("no such agent".to_owned()), 0, at, 0),
            InvocationStage::Failed { tries: 1, .. }
        ));
        let done = next_stage(Attempt::Done("200".to_owned()), 3, at, 0);
        assert!(done.is_old(at.plus(FINISHED_KEPT + 1)));
    }
}
