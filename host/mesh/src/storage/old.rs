//! The old part of a log: what retention deletes of it. Found by the store's index where it has one; else the log is read
//! up to its first entry that is kept.

use serde::Deserialize;
use store::{Key, Position, Seek, Store, StoreError};

use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::ports::data_files::{Amount, DataFiles};
use crate::ports::machine::Instant;

/// How many bytes of a log to read first, and at most at a time. After a cleanup of the day before, little is old.
const FIRST_STEP: usize = 1 << 16;
const STEP: usize = 1 << 20;

/// The beginning of a log in which nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OldPart {
    pub(crate) before: Position,
    /// What is in it, if it was read.
    read: Option<Amount>,
}

impl OldPart {
    /// A part that ends at a position.
    pub(crate) fn before(before: Position) -> OldPart {
        OldPart { before, read: None }
    }
}

/// Whether an entry is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Old,
    Kept,
    /// Its time is still to come, because a clock was wrong. It is old if something old stands behind it.
    Ahead,
    /// It says nothing, and goes with its neighbours.
    Unreadable,
}

/// Clocks of machines differ by less. What is ahead by more was written by a wrong one.
const SKEW: u64 = 24 * 60 * 60 * 1_000;

/// From when on entries are kept, and until when their times are believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ages {
    pub(crate) keep_from: Instant,
    last: Instant,
}

/// The one field of an entry that says how old it is.
#[derive(Deserialize)]
struct Dated {
    at: Instant,
}

impl Ages {
    /// Those of entries that are kept for some milliseconds.
    pub(crate) fn of(now: Instant, keep: u64) -> Ages {
        Ages {
            keep_from: Instant(now.0.saturating_sub(keep).saturating_add(1)),
            last: Instant(now.0.saturating_add(SKEW)),
        }
    }

    /// The first time that only a wrong clock tells.
    pub(crate) fn ahead_from(self) -> Instant {
        Instant(self.last.0.saturating_add(1))
    }

    pub(crate) fn of_time(self, at: Instant) -> Age {
        if at < self.keep_from {
            Age::Old
        } else if at <= self.last {
            Age::Kept
        } else {
            Age::Ahead
        }
    }

    fn of_entry(self, entry: &[u8]) -> Age {
        serde_json::from_slice::<Dated>(entry).map_or(Age::Unreadable, |entry| self.of_time(entry.at))
    }
}

/// The part of a log before its first entry that is kept, and before `needed`.
pub(crate) async fn old_part(
    store: &dyn Store,
    log: &Key,
    ages: Ages,
    needed: Option<Position>,
) -> Result<OldPart, StoreError> {
    let age_of = |entry: &[u8]| ages.of_entry(entry);
    // Servers seek only roughly, and do not know the bytes before it.
    let sought = if store.is_indexed() { store.seek(log, Seek::Time(ages.keep_from.0)).await? } else { None };
    let Some(found) = sought else {
        return read_until_kept(store, log, Position::START, needed, age_of).await;
    };
    if let Some(needed) = needed.filter(|needed| *needed < found) {
        return Ok(OldPart::before(needed));
    }
    // Only whole segments are deleted, so the rest matters only if all of it is old.
    let last = store.read_back(log, store.end(log).await?, 1).await?;
    let all_old = last
        .entries
        .last()
        .is_some_and(|entry| entry.at >= found && matches!(age_of(&entry.bytes), Age::Old | Age::Unreadable));
    if all_old || ends_ahead(store, log, found, Seek::Time(ages.ahead_from().0)).await? {
        let rest = read_until_kept(store, log, found, needed, age_of).await?;
        return Ok(OldPart::before(rest.before));
    }
    Ok(OldPart::before(found))
}

/// Whether what a store found by its index ends at an entry that is ahead of the clock. The index knows the highest
/// time and id up to each segment, so what is old behind such an entry looks young.
pub(crate) async fn ends_ahead(
    store: &dyn Store,
    log: &Key,
    found: Position,
    ahead: Seek<'_>,
) -> Result<bool, StoreError> {
    let is_there = store.seek(log, ahead).await?.is_some_and(|first| first <= found);
    Ok(is_there && store.seek(log, Seek::Time(u64::MAX)).await? > Some(found))
}

/// Reads a log until the first entry that is kept.
pub(crate) async fn read_until_kept(
    store: &dyn Store,
    log: &Key,
    mut from: Position,
    needed: Option<Position>,
    age_of: impl Fn(&[u8]) -> Age + Send + Sync,
) -> Result<OldPart, StoreError> {
    // The part before the first entry that is ahead of the clock and has nothing old behind it.
    let mut ahead: Option<OldPart> = None;
    let mut read = Amount::default();
    let mut step = FIRST_STEP;
    loop {
        let batch = store.read(log, from, step).await?;
        for entry in &batch.entries {
            let is_needed = needed.is_some_and(|needed| entry.at >= needed);
            let age = if is_needed { Age::Kept } else { age_of(&entry.bytes) };
            let here = OldPart { before: entry.at, read: Some(read) };
            match age {
                Age::Kept => return Ok(ahead.unwrap_or(here)),
                Age::Ahead => ahead = ahead.or(Some(here)),
                Age::Old => ahead = None,
                Age::Unreadable => {}
            }
            read.add(entry.bytes.len() as u64);
        }
        if batch.at_end || batch.next == from {
            return Ok(ahead.unwrap_or(OldPart { before: batch.next, read: Some(read) }));
        }
        from = batch.next;
        step = (step * 2).min(STEP);
    }
}

/// Deletes the old part of a log, or only counts it. Returns how many segments were deleted.
pub(crate) async fn retire(
    store: &dyn Store,
    (kind, log): (RecordKind, &Key),
    old: OldPart,
    (dry_run, files): (DryRun, &dyn DataFiles),
    tally: &mut Tally,
) -> Result<usize, StoreError> {
    let measured = files.segments_before(log, old.before);
    if old.before == Position::START || measured.as_ref().is_some_and(|found| found.amount.count == 0) {
        return Ok(0);
    }
    let known = measured.as_ref().map(|found| found.amount).or(old.read).unwrap_or_default();
    match dry_run {
        DryRun::Yes => {
            tally.add(kind, known);
            // Servers have no segments: there the log itself is named.
            if known.count > 0 {
                tally.segments.extend(measured.map_or_else(|| vec![log.to_string()], |found| found.names));
            }
            Ok(0)
        }
        DryRun::No => {
            let count = store.retire(log, old.before).await?;
            let bytes = if count == 0 { 0 } else { known.bytes };
            tally.add(kind, Amount { count, bytes });
            Ok(count)
        }
    }
}
