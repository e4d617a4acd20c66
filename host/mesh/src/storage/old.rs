//! The old part of a log: what retention deletes of it. Found by the store's index where it has one; else the log is read
//! up to its first entry that is kept.

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

/// The part of a log before its first entry that is younger than `keep_from`, and before `needed`. `is_old` tells the
/// same of an entry that is read.
pub(crate) async fn old_part(
    store: &dyn Store,
    log: &Key,
    keep_from: Instant,
    needed: Option<Position>,
    is_old: impl Fn(&[u8]) -> bool + Send + Sync,
) -> Result<OldPart, StoreError> {
    // Servers seek only roughly, and do not know the bytes before it.
    let sought = if store.is_indexed() { store.seek(log, Seek::Time(keep_from.0)).await? } else { None };
    let Some(found) = sought else {
        return read_until_kept(store, log, Position::START, needed, &is_old).await;
    };
    if let Some(needed) = needed.filter(|needed| *needed < found) {
        return Ok(OldPart::before(needed));
    }
    // Only whole segments are deleted, so the rest matters only if all of it is old.
    let last = store.read_back(log, store.end(log).await?, 1).await?;
    if last.entries.last().is_some_and(|entry| entry.at >= found && is_old(&entry.bytes)) {
        let rest = read_until_kept(store, log, found, needed, &is_old).await?;
        return Ok(OldPart::before(rest.before));
    }
    Ok(OldPart::before(found))
}

/// Reads a log until the first entry that is not old.
pub(crate) async fn read_until_kept(
    store: &dyn Store,
    log: &Key,
    mut from: Position,
    needed: Option<Position>,
    is_old: impl Fn(&[u8]) -> bool + Send + Sync,
) -> Result<OldPart, StoreError> {
    let mut read = Amount::default();
    let mut step = FIRST_STEP;
    loop {
        let batch = store.read(log, from, step).await?;
        for entry in &batch.entries {
            if needed.is_some_and(|needed| entry.at >= needed) || !is_old(&entry.bytes) {
                return Ok(OldPart { before: entry.at, read: Some(read) });
            }
            read.add(entry.bytes.len() as u64);
        }
        if batch.at_end || batch.next == from {
            return Ok(OldPart { before: batch.next, read: Some(read) });
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
