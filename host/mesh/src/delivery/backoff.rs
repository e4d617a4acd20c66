//! How far apart tries lie that go on failing: each wait is twice the last one, up to an end. Adapters have
//! no part in it; what they say is how long to wait the first time.

use std::collections::BTreeMap;

use crate::ports::machine::Instant;

/// Tries that go on failing are no further apart, in milliseconds, unless longer was asked for.
const LONGEST: u64 = 30_000;
/// What has not failed for so long is forgotten, in milliseconds.
const FORGOTTEN: u64 = 10 * LONGEST;

/// How many milliseconds to wait after a failure, where `first` is the wait after the first one and `before`
/// counts the failures before this one.
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

/// What is left alone for a while, since trying it failed.
#[derive(Debug)]
pub(crate) struct Rests<K>(BTreeMap<K, Rest>);

impl<K> Default for Rests<K> {
    fn default() -> Rests<K> {
        Rests(BTreeMap::new())
    }
}

#[derive(Debug)]
struct Rest {
    /// How often in a row it failed.
    failed: u32,
    /// When it failed last.
    at: Instant,
    until: Instant,
}

impl<K: Ord> Rests<K> {
    /// For how many milliseconds it is still to be left alone. A sign of life that came since it failed ends
    /// the rest, and the count.
    pub(crate) fn left(&mut self, what: &K, now: Instant, sign: Instant) -> Option<u64> {
        let rest = self.0.get(what)?;
        if sign > rest.at {
            self.0.remove(what);
            return None;
        }
        Some(rest.until.since(now)).filter(|left| *left > 0)
    }

    /// It failed: gives for how long it is left alone now.
    pub(crate) fn failed(&mut self, what: K, now: Instant, first: u64) -> u64 {
        self.0.retain(|_, rest| now.since(rest.until) < FORGOTTEN);
        let before = self.0.get(&what).map_or(0, |rest| rest.failed);
        let wait = spaced(first, before);
        self.0.insert(what, Rest { failed: before + 1, at: now, until: now.plus(wait) });
        wait
    }

    /// It did not fail.
    pub(crate) fn ended(&mut self, what: &K) {
        self.0.remove(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is planned: each word is a time at which something happens, `f` that it fails, `w` that it goes
    /// well, `s` that its session gives a sign, `?` that it is asked for how long to wait.
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
