//! Exponential backoff with a cap. Adapters only say how long to wait the first time.

use std::collections::BTreeMap;

use crate::ports::machine::Instant;

/// The cap, in milliseconds, unless the first wait is longer.
const LONGEST: u64 = 30_000;
/// After how long without a failure an entry is dropped, in milliseconds.
const FORGOTTEN: u64 = 10 * LONGEST;

/// How many milliseconds to wait after a failure. `first` is the wait after the first failure, and `before` counts the
/// failures before this one.
///
/// ```
/// let waits: Vec<u64> = (0..6).map(|before| mesh::spaced(2_000, before)).collect();
/// assert_eq!(waits, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
/// assert_eq!(mesh::spaced(45_000, 9), 45_000, "never sooner than was asked for");
/// ```
pub fn spaced(first: u64, before: u32) -> u64 {
    let factor = 1_u64.checked_shl(before).unwrap_or(u64::MAX);
    first.saturating_mul(factor).min(LONGEST.max(first))
}

/// The things that are in backoff after a failure.
#[derive(Debug)]
pub(crate) struct Rests<K>(BTreeMap<K, Rest>);

impl<K> Default for Rests<K> {
    fn default() -> Rests<K> {
        Rests(BTreeMap::new())
    }
}

#[derive(Debug)]
struct Rest {
    /// Failures in a row.
    failed: u32,
    /// The last failure.
    at: Instant,
    until: Instant,
}

impl<K: Ord> Rests<K> {
    /// How many milliseconds of backoff remain. A sign of life after the failure ends the backoff and resets the count.
    pub(crate) fn left(&mut self, what: &K, now: Instant, sign: Instant) -> Option<u64> {
        let rest = self.0.get(what)?;
        if sign > rest.at {
            self.0.remove(what);
            return None;
        }
        Some(rest.until.since(now)).filter(|left| *left > 0)
    }

    /// Notes a failure. Returns the new backoff in milliseconds.
    pub(crate) fn failed(&mut self, what: K, now: Instant, first: u64) -> u64 {
        self.0.retain(|_, rest| now.since(rest.until) < FORGOTTEN);
        let before = self.0.get(&what).map_or(0, |rest| rest.failed);
        let wait = spaced(first, before);
        self.0.insert(what, Rest { failed: before + 1, at: now, until: now.plus(wait) });
        wait
    }

    /// Ends the backoff after a success.
    pub(crate) fn ended(&mut self, what: &K) {
        self.0.remove(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a story. Each word is a time and an event: `f` a failure, `w` a success, `s` a sign of life of the
    /// session, `?` a query of the remaining wait.
    fn check(story: &str, expected: &str) {
        let (mut rests, mut sign) = (Rests::default(), Instant(0));
        let mut told = Vec::new();
        for word in story.split(' ') {
            let (at, what) = word.split_at(word.len() - 1);
            let now = Instant(at.parse().expect("a time"));
            match what {
                "f" => told.push(rests.failed("it", now, 2_000).to_string()),
                "w" => rests.ended(&"it"),
                "s" => sign = now,
                "?" => told.push(rests.left(&"it", now, sign).map_or("now".to_owned(), |left| left.to_string())),
                other => panic!("{other}"),
            }
        }
        assert_eq!(told.join(" "), expected, "{story}");
    }

    #[test]
    fn tries_that_fail_lie_further_and_further_apart() {
        check("0? 0f 500? 2000?", "now 2000 1500 now");
        check("0f 2000f 6000f 14000f 30000f 60000f", "2000 4000 8000 16000 30000 30000");
    }

    #[test]
    fn what_goes_well_or_gives_a_sign_is_tried_at_once_and_counted_anew() {
        check("0f 2000f 6000w 6000? 6000f", "2000 4000 now 2000");
        check("0f 2000f 2500? 3000s 3000? 3000f", "2000 4000 3500 now 2000");
        check("0s 1f 2?", "2000 1999");
    }

    #[test]
    fn what_failed_long_ago_is_forgotten() {
        check("0f 2000f 400000f", "2000 4000 2000");
    }
}
