//! Waiting for an answer.

use std::time::Duration;

use store::StoreError;

use crate::asks::list;
use crate::asks::record::{AskOutcome, AskStage, AskStatus};
use crate::core::Core;
use crate::names::MessageId;
use crate::storage::keys;

/// Returns once a question is over. One that is not kept any more is settled.
pub(crate) async fn wait_for_answer(core: &Core, id: MessageId) -> Result<AskOutcome, StoreError> {
    let Some(first) = list::by_id(core, id).await? else { return Ok(AskOutcome::Settled) };
    let key = keys::ask(&first.slot);
    // Watch before reading, so that no change in between is lost.
    let mut watch = core.local.watch(std::slice::from_ref(&key)).await?;
    loop {
        let Some(ask) = list::by_id(core, id).await? else { return Ok(AskOutcome::Settled) };
        let now = core.machine.now();
        match (&ask.stage, ask.status(now)) {
            (AskStage::Answered { answer, .. }, _) => return Ok(AskOutcome::Answered(answer.clone())),
            (AskStage::Settled { .. }, _) => return Ok(AskOutcome::Settled),
            (AskStage::Open, AskStatus::Expired) => return Ok(AskOutcome::Expired),
            (AskStage::Open, _) => {}
        }
        // Expiry changes nothing in the store, so a timer waits for it.
        let time_is_up = tokio::time::sleep(Duration::from_millis(ask.until.since(now).max(1)));
        tokio::select! {
            changed = watch.changed() => changed?,
            () = time_is_up => {}
        }
    }
}
