//! How often a hook is carried out at most.

use std::collections::{BTreeMap, VecDeque};

use crate::ports::machine::Instant;

/// The most events of one hook within a minute.
pub const MOST_PER_MINUTE: usize = 60;
/// The most events of one hook that wait to be carried out.
pub const MOST_WAITING: usize = 500;
/// A minute, in milliseconds.
const WINDOW: u64 = 60_000;

/// The recent events of each hook. It goes by when they happened, not by when they are read: what happened while nobody
/// carried hooks out is bounded in the same way.
#[derive(Clone, Debug, Default)]
pub struct RateLimit {
    recent: BTreeMap<String, VecDeque<Instant>>,
}

impl RateLimit {
    /// Counts an event; false if it is one too many.
    pub fn admits(&mut self, hook: &str, at: Instant, waiting: usize) -> bool {
        let recent = self.recent.entry(hook.to_owned()).or_default();
        while recent.front().is_some_and(|first| at.since(*first) >= WINDOW) {
            recent.pop_front();
        }
        let admitted = recent.len() < MOST_PER_MINUTE && waiting < MOST_WAITING;
        if admitted {
            recent.push_back(at);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_fires_too_often_is_passed_over_until_the_minute_is_over() {
        let mut limit = RateLimit::default();
        let admitted = (0..100).filter(|number| limit.admits("h1", Instant(*number * 10), 0)).count();
        assert_eq!(admitted, MOST_PER_MINUTE);
        assert!(limit.admits("h2", Instant(990), 0), "each hook for itself");
        assert!(!limit.admits("h1", Instant(59_999), 0));
        assert!(limit.admits("h1", Instant(60_000), 0));
        assert!(!limit.admits("h2", Instant(70_000), MOST_WAITING), "what waits is bounded too");
    }
}
