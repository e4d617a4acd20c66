//! Arbitrary sequences of operations against a plain list and a plain map.

use std::collections::BTreeMap;

use super::{Pair, key, numbered, read_all};
use crate::{AppendError, Durability, Expect, Key, Position, Revision, Store, SwapError};

/// Number of sequences.
const SEQUENCES: u64 = 12;
/// Steps of each sequence.
const STEPS: u64 = 60;

pub(super) async fn check(make: &impl Fn() -> Pair) {
    for seed in 0..SEQUENCES {
        a_log_is_a_list(make(), Dice(seed)).await;
        a_map_is_a_map(make(), Dice(seed)).await;
    }
}

/// A small random number generator, the same in every run, so that a seed reproduces a failure.
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

async fn a_log_is_a_list(pair: Pair, mut dice: Dice) {
    let log = key("model/log");
    let mut list: Vec<u64> = Vec::new();
    // Ends of the log so far, with the length of the list at that time.
    let mut ends = vec![(Position::START, 0)];
    // Number of entries at the start that may be retired.
    let mut retired = 0;
    for step in 0..STEPS {
        let store: &dyn Store = if dice.roll(2) == 0 { &*pair.one } else { &*pair.other };
        let pick = usize::try_from(dice.roll(ends.len() as u64)).expect("small");
        let (at, length) = ends[pick];
        match dice.roll(5) {
            0 | 1 => {
                let count = 1 + dice.roll(3);
                let start = list.len() as u64;
                let durability = if dice.roll(3) == 0 { Durability::Synced } else { Durability::Process };
                let entries = numbered(start..start + count);
                let end = store.append(&log, &entries, Expect::Any, durability).await.expect("appended");
                list.extend(start..start + count);
                ends.push((end, list.len()));
            }
            2 => {
                let start = list.len() as u64;
                let appended =
                    store.append(&log, &numbered(start..start + 1), Expect::End(at), Durability::Process).await;
                match appended {
                    Ok(end) => {
                        assert_eq!(length, list.len(), "step {step}: something had been appended since");
                        list.push(start);
                        ends.push((end, list.len()));
                    }
                    Err(AppendError::Moved) => assert_ne!(length, list.len(), "step {step}: nothing had been appended"),
                    Err(AppendError::Store(error)) => panic!("{error}"),
                }
            }
            3 => {
                let limit = usize::try_from(dice.roll(100)).expect("small");
                let (numbers, end) = read_all(store, &log, at, limit).await;
                assert!(list.ends_with(&numbers), "step {step}: {numbers:?}");
                let least = list.len() - length.max(retired);
                let most = list.len() - length;
                assert!((least..=most).contains(&numbers.len()), "step {step}: {} of {least}..={most}", numbers.len());
                ends.push((end, list.len()));
            }
            _ => {
                store.retire(&log, at).await.expect("retired");
                retired = retired.max(length);
            }
        }
    }
}

async fn a_map_is_a_map(pair: Pair, mut dice: Dice) {
    let keys: Vec<Key> = ["m/a", "m/b", "m/a/c", "m/d.e"].map(key).to_vec();
    let mut model: BTreeMap<Key, (Revision, String)> = BTreeMap::new();
    for step in 0..STEPS {
        let store: &dyn Store = if dice.roll(2) == 0 { &*pair.one } else { &*pair.other };
        let at = &keys[usize::try_from(dice.roll(keys.len() as u64)).expect("small")];
        let current = model.get(at).map(|(revision, _)| *revision);
        let expected = match dice.roll(4) {
            0 => None,
            1 => Some(Revision(1 + dice.roll(9))),
            _ => current,
        };
        let next = (dice.roll(3) > 0).then(|| format!("{{\"step\":{step}}}"));
        match store.swap(at, expected, next.as_deref().map(str::as_bytes), Durability::Process).await {
            Ok(revision) => {
                assert_eq!(expected, current, "step {step}");
                assert_eq!(revision.is_some(), next.is_some(), "step {step}");
                match (revision, next) {
                    (Some(revision), Some(text)) => drop(model.insert(at.clone(), (revision, text))),
                    (_, _) => drop(model.remove(at)),
                }
            }
            Err(SwapError::Changed { current: told }) => {
                assert_ne!(expected, current, "step {step}");
                assert_eq!(told, current, "step {step}");
            }
            Err(SwapError::Store(error)) => panic!("{error}"),
        }
        let listed = store.list(&key("m")).await.expect("listed");
        assert_eq!(listed, model.keys().cloned().collect::<Vec<_>>(), "step {step}");
        for (at, (revision, text)) in &model {
            let found = store.get(at).await.expect("read").expect("a value");
            assert_eq!((found.revision, found.bytes.as_slice()), (*revision, text.as_bytes()), "step {step}");
        }
    }
}
