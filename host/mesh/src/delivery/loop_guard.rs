//! The loop guard: stops agents that keep waking each other without their user in between.

use crate::messages::Trace;
use crate::names::MessageId;

/// The limits of the loop guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopLimits {
    /// Messages in one chain without a user prompt in between.
    pub hops: u32,
    /// Wakes of one agent by the same sender within the window.
    pub pair: u32,
    /// Wakes of one agent within the window.
    pub agent: u32,
    /// The window, in milliseconds.
    pub window: u64,
    /// After how long without a new message a chain ends, in milliseconds. Needed since harnesses without hooks never
    /// report a user prompt.
    pub rest: u64,
}

impl Default for LoopLimits {
    fn default() -> LoopLimits {
        LoopLimits { hops: 24, pair: 30, agent: 120, window: 10 * 60_000, rest: 30 * 60_000 }
    }
}

/// Recent wakes of one agent, within the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wakes {
    /// Wakes by the same sender.
    pub(crate) by_sender: u32,
    /// Wakes by any sender.
    pub(crate) all: u32,
}

/// Why a message must not wake its recipient; `None` if it may.
pub(crate) fn why_held(limits: &LoopLimits, hops: u32, wakes: Wakes) -> Option<String> {
    let minutes = limits.window / 60_000;
    if hops > limits.hops {
        Some(format!("{hops} messages since the user's last prompt, and the limit is {}", limits.hops))
    } else if wakes.by_sender >= limits.pair {
        Some(format!("this sender woke this agent {} times within {minutes} min", wakes.by_sender))
    } else if wakes.all >= limits.agent {
        Some(format!("this agent was woken {} times within {minutes} min", wakes.all))
    } else {
        None
    }
}

/// The chain of a new message: one hop further on the chain that its sender works on, or a new chain.
pub(crate) fn next_trace(id: MessageId, working_on: Option<Trace>) -> Trace {
    match working_on {
        Some(trace) => Trace { root: trace.root, hops: trace.hops.saturating_add(1) },
        None => Trace { root: id, hops: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hops: u32, by_sender: u32, all: u32, expected: Option<&str>) {
        let held = why_held(&LoopLimits::default(), hops, Wakes { by_sender, all });
        match (held, expected) {
            (None, None) => {}
            (Some(reason), Some(expected)) => assert!(reason.contains(expected), "{reason}"),
            (held, expected) => panic!("{held:?} is not {expected:?}"),
        }
    }

    #[test]
    fn waking_stops_past_a_limit_and_not_at_it() {
        check(0, 0, 0, None);
        check(24, 29, 119, None);
        check(25, 0, 0, Some("25 messages since the user's last prompt"));
        check(0, 30, 30, Some("this sender woke this agent 30 times"));
        check(0, 0, 120, Some("this agent was woken 120 times"));
    }
}
