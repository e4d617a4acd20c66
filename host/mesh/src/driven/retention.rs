//! Deletes the records of driven agents that ended a week ago.

use store::StoreError;

use super::record::DrivenRecord;
use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::sessions::retention::{remove_one, sound};
use crate::storage::keys;

/// How long the record of an agent that has ended is kept, in milliseconds.
const KEPT: u64 = 7 * 24 * 3_600_000;

pub(crate) async fn clean_up_driven(core: &Core, dry_run: DryRun, tally: &mut Tally) -> Result<(), StoreError> {
    let now = core.machine.now();
    for key in core.local.list(&keys::ended_driven()).await? {
        let Some((revision, record)) = sound::<DrivenRecord>(core, &key).await? else { continue };
        if record.ended.is_some_and(|end| now.since(end.at) > KEPT) {
            remove_one(core, RecordKind::DrivenAgents, (&key, revision), dry_run, tally).await?;
        }
    }
    Ok(())
}
