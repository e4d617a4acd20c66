//! The loop guard: stops agents that keep waking each other without their user in between.

use crate::messages::{Hold, Trace};
use crate::names::MessageId;
use crate::ports::machine::Instant;

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
    by_sender: Count,
    /// Wakes by any sender.
    all: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    times: u32,
    /// When the oldest of them leaves the window.
    until: Option<Instant>,
}

impl Wakes {
    /// Counts a wake. They come oldest first.
    pub(crate) fn count(&mut self, at: Instant, is_senders: bool, window: u64) {
        for count in std::iter::once(&mut self.all).chain(is_senders.then_some(&mut self.by_sender)) {
            count.times += 1;
            count.until.get_or_insert(at.plus(window));
        }
    }
}

/// Why a message must not wake its recipient; `None` if it may.
pub(crate) fn why_held(limits: &LoopLimits, hops: u32, wakes: Wakes) -> Option<Hold> {
    let minutes = limits.window / 60_000;
    let Wakes { by_sender, all } = wakes;
    if hops > limits.hops {
        let messages = if hops == 1 { "message" } else { "messages" };
        let reason = format!("{hops} {messages} since the user's last prompt, and the limit is {}", limits.hops);
        Some(Hold { reason, until: None })
    } else if by_sender.times >= limits.pair {
        let reason = format!("this sender woke this agent {} times within {minutes} min", by_sender.times);
        Some(Hold { reason, until: by_sender.until })
    } else if all.times >= limits.agent {
        let reason = format!("this agent was woken {} times within {minutes} min", all.times);
        Some(Hold { reason, until: all.until })
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
        let count = |times| Count { times, until: None };
        let wakes = Wakes { by_sender: count(by_sender), all: count(all) };
        let held = why_held(&LoopLimits::default(), hops, wakes).map(|hold| hold.reason);
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
