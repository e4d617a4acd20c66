//! Deletes the rows of threads that nobody has gone on with for a quarter of a year.

use store::{Durability, StoreError};

use super::registry::{self, ThreadRow};
use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::ports::data_files::Amount;
use crate::ports::machine::Instant;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How long a thread is kept that nobody goes on with, in milliseconds.
const KEPT: u64 = 90 * 24 * 3_600_000;

pub(crate) async fn clean_up_threads(core: &Core, dry_run: DryRun, tally: &mut Tally) -> Result<(), StoreError> {
    let before = Instant(core.machine.now().0.saturating_sub(KEPT));
    let count = match dry_run {
        DryRun::Yes => registry::rows_before(core, before).await?.len(),
        DryRun::No => remove(core, before, |_| true).await?,
    };
    tally.add(RecordKind::Threads, Amount { count, bytes: 0 });
    Ok(())
}

/// Removes rows of threads that were last active before a time, each with its summary: that goes first, so that none is
/// left without a row.
pub(super) async fn remove(
    core: &Core,
    before: Instant,
    which: impl Fn(&ThreadRow) -> bool + Send + Sync,
) -> Result<usize, StoreError> {
    let goes = |row: &ThreadRow| row.last_active < before && which(row);
    let mut removed = 0;
    for row in registry::rows_before(core, before).await?.into_iter().filter(|row| goes(row)) {
        let gone = |old: Option<String>| (if old.is_some() { Next::Remove } else { Next::Keep }, ());
        records::update(core.local.as_ref(), &keys::thread_summary(&row.thread), Durability::Process, gone).await?;
        let day = keys::threads_of(row.started);
        let without = |old: Option<Vec<ThreadRow>>| {
            let Some(mut rows) = old else { return (Next::Keep, 0) };
            let before = rows.len();
            // Checked again: somebody may have gone on with it meanwhile.
            rows.retain(|other| other.thread != row.thread || !goes(other));
            let count = before - rows.len();
            (if rows.is_empty() { Next::Remove } else { Next::Put(rows) }, count)
        };
        removed += records::update(core.local.as_ref(), &day, Durability::Process, without).await?;
    }
    Ok(removed)
}
