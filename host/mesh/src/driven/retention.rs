//! Deletes the records of driven agents that ended long ago, and whose worktrees are gone.

use store::StoreError;

use super::record::{DrivenId, DrivenRecord};
use crate::allowances::still_counts;
use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::ports::data_files::DataFiles;
use crate::runs::Workplace;
use crate::sessions::retention::{remove_one, sound};
use crate::storage::keys;

pub(crate) async fn clean_up_driven(
    core: &Core,
    (dry_run, files): (DryRun, &dyn DataFiles),
    tally: &mut Tally,
) -> Result<(), StoreError> {
    let now = core.machine.now();
    for key in core.local.list(&keys::ended_driven()).await? {
        // It ended later than its id was made, so that it is not read before it can go.
        if key.leaf().parse::<DrivenId>().is_ok_and(|id| now.since(id.made()) <= core.limits.keep) {
            continue;
        }
        let Some((revision, record)) = sound::<DrivenRecord>(core, &key).await? else { continue };
        // A worktree goes first, and stays as long as it holds work: only the record says whose that is.
        let holds_work = matches!(&record.workplace, Workplace::Worktree { folder, .. } if files.has_worktree(folder));
        let is_needed = holds_work || still_counts(record.by.as_ref(), record.started, now);
        if !is_needed && record.ended.is_some_and(|end| now.since(end.at) > core.limits.keep) {
            remove_one(core, RecordKind::DrivenAgents, (&key, revision), dry_run, tally).await?;
        }
    }
    Ok(())
}
