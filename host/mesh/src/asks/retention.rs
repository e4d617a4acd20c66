//! Deletes questions that have been over for a day.

use store::StoreError;

use crate::asks::answer;
use crate::asks::record::Ask;
use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::sessions::retention;
use crate::storage::keys;

/// How long a question that is over can still be read, in milliseconds: a day.
pub(super) const KEPT: u64 = 24 * 3_600_000;

pub(crate) async fn clean_up_asks(core: &Core, dry_run: DryRun, tally: &mut Tally) -> Result<(), StoreError> {
    let now = core.machine.now();
    for key in core.local.list(&keys::asks()).await? {
        let Some((revision, ask)) = retention::sound::<Ask>(core, &key).await? else { continue };
        // What it still sets off must not be lost with it: a server's next round, or the next look, does that. If
        // nothing can, it is kept as long as settled mail.
        let kept = if answer::sets_off(&ask, now) { KEPT.max(core.limits.keep) } else { KEPT };
        if now.since(ask.over_since()) >= kept {
            retention::remove_one(core, RecordKind::Asks, (&key, revision), dry_run, tally).await?;
        }
    }
    Ok(())
}
