//! Collects the rows of an index.

use super::format::{self, Fingerprint, Highest, key_of};
use crate::{Indexed, TermOrder};

/// The rows of an index, in the order of the log.
#[derive(Default)]
pub(in crate::files) struct Builder {
    entries: u64,
    times: Option<(u64, u64)>,
    growing: Vec<(u128, u64)>,
    scattered: Vec<(u128, u64)>,
}

impl Builder {
    /// Adds an entry that starts at an offset.
    pub(super) fn add(&mut self, offset: u64, entry: &Indexed) {
        self.entries += 1;
        if let Some(at) = entry.at {
            let (first, last) = self.times.unwrap_or((at, at));
            self.times = Some((first.min(at), last.max(at)));
        }
        for term in &entry.terms {
            let rows = match term.order {
                TermOrder::Growing => &mut self.growing,
                TermOrder::Scattered => &mut self.scattered,
            };
            rows.push((key_of(term), offset));
        }
    }

    pub(super) fn encode(mut self, rule: u32, segment: Fingerprint, before: Highest) -> Vec<u8> {
        self.growing.sort_unstable();
        self.scattered.sort_unstable();
        let times = self.times.unwrap_or((u64::MAX, 0));
        format::encode(rule, segment, self.entries, times, before, [&self.growing, &self.scattered])
    }
}
