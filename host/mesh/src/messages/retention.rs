//! What is kept and for how long: mail that nobody fetched expires late, and segments in which
//! everything is settled and old are retired.

use std::collections::BTreeSet;

use store::{Durability, Position, StoreError};

use crate::core::Core;
use crate::messages::address;
use crate::messages::inbox;
use crate::messages::inbox::Header;
use crate::messages::inboxes::Inboxes;
use crate::messages::receipt::{Event, Receipt};
use crate::names::{AgentName, MessageId};
use crate::sessions::record;
use crate::storage::{keys, records};

/// Lets go of what is old, in every inbox. Damage in one does not keep others from it.
pub(crate) async fn retire_old(core: &Core, inboxes: &Inboxes) -> Result<(), StoreError> {
    for name in address::inbox_owners(core).await? {
        // Its own machine sees to it, and others need not even read it.
        if record::lives_elsewhere(core, &name).await? {
            continue;
        }
        match let_go(core, inboxes, &name).await {
            Ok(()) | Err(StoreError::Elsewhere { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn let_go(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<(), StoreError> {
    expire(core, inboxes, name).await?;
    retire(core, inboxes, name).await
}

/// Marks what nobody came for in a very long time.
async fn expire(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<(), StoreError> {
    let now = core.machine.now();
    let expired: Vec<MessageId> = {
        let inbox = inboxes.of(name);
        let mut inbox = inbox.lock().await;
        inbox.refresh(core.shared.as_ref(), name).await?;
        let old = |at| now.since(at) >= core.limits.expire_after;
        inbox.unsettled.values().filter(|slot| old(slot.header.at)).map(|slot| slot.header.id).collect()
    };
    inbox::receipt(core, name, &expired, &Event::Expired, Durability::Process).await
}

/// Retires the segments of an inbox in which everything is settled and old, and then those of
/// its receipts that speak of nothing that is left. Never the other way round: a message whose
/// receipts are gone would look as if it had never been delivered.
async fn retire(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<(), StoreError> {
    let store = core.shared.as_ref();
    let now = core.machine.now();
    let unsettled: BTreeSet<MessageId> = {
        let inbox = inboxes.of(name);
        let mut inbox = inbox.lock().await;
        inbox.refresh(store, name).await?;
        inbox.unsettled.keys().copied().collect()
    };
    let mut kept: Option<Position> = None;
    let (end, _) = records::scan(store, &keys::inbox(name), Position::START, |entry| {
        if kept.is_none()
            && let Ok(header) = serde_json::from_slice::<Header>(&entry.bytes)
            && (now.since(header.at) < core.limits.keep || unsettled.contains(&header.id))
        {
            kept = Some(entry.at);
        }
    })
    .await?;
    if store.retire(&keys::inbox(name), kept.unwrap_or(end)).await? == 0 {
        return Ok(());
    }
    let mut left: BTreeSet<MessageId> = BTreeSet::new();
    records::scan(store, &keys::inbox(name), Position::START, |entry| {
        left.extend(serde_json::from_slice::<Header>(&entry.bytes).map(|header| header.id));
    })
    .await?;
    let mut needed: Option<Position> = None;
    let (end, _) = records::scan(store, &keys::receipts(name), Position::START, |entry| {
        if needed.is_none()
            && serde_json::from_slice::<Receipt>(&entry.bytes).is_ok_and(|receipt| left.contains(&receipt.message))
        {
            needed = Some(entry.at);
        }
    })
    .await?;
    store.retire(&keys::receipts(name), needed.unwrap_or(end)).await.map(|_| ())
}
