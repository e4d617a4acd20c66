//! Idempotency: one key of one sender is stored once in an inbox, whoever else sends meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use store::{AppendError, Durability, Expect, Position, StoreError};

use crate::inbox::contains;
use crate::message::Message;
use crate::names::{AgentName, MessageId};
use crate::{Mesh, keys, records};

/// The keys in one inbox, as far as this process has read it.
#[derive(Default)]
pub(crate) struct Keyed {
    /// How far.
    read: Position,
    /// The first message of each sender and key, and where it ends in the inbox.
    first: BTreeMap<(AgentName, String), (MessageId, Position)>,
}

/// Everything in one inbox, as far as this process has read it to send what had waited.
#[derive(Default)]
pub(crate) struct There {
    /// How far.
    read: Position,
    ids: BTreeSet<MessageId>,
    /// The first message of each sender and key.
    keyed: BTreeMap<(AgentName, String), MessageId>,
}

/// What must be read of a message to know its key.
#[derive(Deserialize)]
struct Key {
    id: MessageId,
    from: AgentName,
    idempotency_key: Option<String>,
}

impl Mesh {
    /// Appends a message unless it is there already: an earlier try may have stored it and not heard so.
    /// Gives the message of the same id or of the same sender's key that is there. What was read of an inbox
    /// is kept for the next message to it, until [`Mesh::forget_what_is_there`].
    pub(crate) async fn store_unless_there(&self, message: &Message) -> Result<Option<MessageId>, StoreError> {
        let log = keys::inbox(&message.to);
        let entry = records::json(message);
        let there = {
            // A std mutex: nothing is awaited while it is held, and the section is a map insert.
            let mut all = self.there.lock().expect("no holder of this lock panics");
            Arc::clone(all.entry(message.to.clone()).or_default())
        };
        let mut there = there.lock().await;
        loop {
            let There { read, ids, keyed } = &mut *there;
            let (end, _) = records::scan(self.shared.as_ref(), &log, *read, |entry| {
                if let Ok(Key { id, from, idempotency_key }) = serde_json::from_slice::<Key>(&entry.bytes) {
                    ids.insert(id);
                    if let Some(key) = idempotency_key {
                        keyed.entry((from, key)).or_insert(id);
                    }
                }
            })
            .await?;
            *read = end;
            let same_key = message
                .idempotency_key
                .as_ref()
                .and_then(|key| keyed.get(&(message.from.clone(), key.clone())).copied());
            if let Some(older) = ids.contains(&message.id).then_some(message.id).or(same_key) {
                self.shared.sync(&log, end).await?;
                return Ok(Some(older));
            }
            match self.shared.append(&log, std::slice::from_ref(&entry), Expect::End(end), Durability::Synced).await {
                Ok(_) => return Ok(None),
                Err(AppendError::Moved) => {}
                Err(AppendError::Store(error)) => return Err(error),
            }
        }
    }

    /// Lets go of what was read to send what had waited.
    pub(crate) fn forget_what_is_there(&self) {
        self.there.lock().expect("no holder of this lock panics").clear();
    }

    /// Appends a message unless its sender has used this key here before. Decided from the whole
    /// log, of which each process reads every entry once, and written only if nothing was appended
    /// meanwhile. Gives the id of the older one, which is on disk by then.
    pub(crate) async fn store_once(&self, message: &Message, key: &str) -> Result<Option<MessageId>, StoreError> {
        let log = keys::inbox(&message.to);
        let entry = records::json(message);
        let wanted = (message.from.clone(), key.to_owned());
        let keyed = {
            // A std mutex: nothing is awaited while it is held, and the section is a map insert.
            let mut all = self.keyed.lock().expect("no holder of this lock panics");
            Arc::clone(all.entry(message.to.clone()).or_default())
        };
        let mut keyed = keyed.lock().await;
        loop {
            let Keyed { read, first } = &mut *keyed;
            let (end, _) = records::scan(self.shared.as_ref(), &log, *read, |entry| {
                if contains(&entry.bytes, b"\"idempotency_key\"")
                    && let Ok(Key { id, from, idempotency_key: Some(key) }) =
                        serde_json::from_slice::<Key>(&entry.bytes)
                {
                    first.entry((from, key)).or_insert((id, entry.next));
                }
            })
            .await?;
            *read = end;
            if let Some((older, end)) = first.get(&wanted) {
                // It may lie there from a try whose sync failed, or is still under way elsewhere.
                self.shared.sync(&log, *end).await?;
                return Ok(Some(*older));
            }
            match self.shared.append(&log, std::slice::from_ref(&entry), Expect::End(end), Durability::Synced).await {
                Ok(_) => return Ok(None),
                Err(AppendError::Moved) => {}
                Err(AppendError::Store(error)) => return Err(error),
            }
        }
    }
}
