//! Deletes the records of event hooks that have been over for long.

use store::StoreError;

use super::Invocation;
use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::sessions::retention::{remove_one, sound};
use crate::storage::keys;

pub(crate) async fn clean_up_invocations(core: &Core, dry_run: DryRun, tally: &mut Tally) -> Result<(), StoreError> {
    let now = core.machine.now();
    for key in core.local.list(&keys::hook_invocations()).await? {
        let Some((revision, invocation)) = sound::<Invocation>(core, &key).await? else { continue };
        if invocation.stage.is_old(now) {
            remove_one(core, RecordKind::HookInvocations, (&key, revision), dry_run, tally).await?;
        }
    }
    Ok(())
}
