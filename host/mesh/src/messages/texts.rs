//! The texts of unsettled messages, read from the store where they are not in memory.

use std::collections::BTreeMap;

use store::{Position, StoreError};

use crate::core::Core;
use crate::messages::Message;
use crate::messages::inboxes::Inboxes;
use crate::messages::slot::Slot;
use crate::names::AgentName;
use crate::storage::{keys, records};

/// The whole messages of some slots. One whose entry was damaged is dropped from the inbox, and costs only itself.
pub(crate) async fn with_texts(
    core: &Core,
    inboxes: &Inboxes,
    agent: &AgentName,
    slots: Vec<Slot>,
) -> Result<Vec<(Slot, Message)>, StoreError> {
    let log = keys::inbox(agent);
    let missing: Vec<Position> = slots.iter().filter(|slot| slot.text.is_none()).map(|slot| slot.at).collect();
    let read = core.shared.entries_at(&log, &missing).await?.into_iter().map(|entry| (entry.at, entry.bytes));
    let read: BTreeMap<Position, Vec<u8>> = read.collect();
    let gone = || StoreError::Damaged { what: log.to_string(), why: "a message that was there is gone".to_owned() };
    let mut found = Vec::new();
    for slot in slots {
        let text = slot.text.as_deref().or_else(|| read.get(&slot.at).map(Vec::as_slice));
        match text.ok_or_else(gone).and_then(|text| records::parse(&log, text)) {
            Ok(message) => found.push((slot, message)),
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(%agent, id = %slot.header.id, %error, "a damaged message is skipped");
                inboxes.of(agent).lock().await.lose(slot.header.id);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
