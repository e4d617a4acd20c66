//! Idempotency: a sender's key is stored once per inbox, even with concurrent senders. The same key with the same
//! content is the same message; the same key with other content is an error, and the sender is told.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use store::{AppendError, Durability, Expect, Position, StoreError};

use crate::core::Core;
use crate::messages::Message;
use crate::messages::inbox::contains;
use crate::messages::inboxes::Inboxes;
use crate::names::{AgentName, MessageId};
use crate::storage::{index_rule, keys, records};

/// The result of storing a message that may be in the inbox already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyedStore {
    /// It was stored just now.
    Anew,
    /// The same message was there already, under this id.
    Before(MessageId),
    /// The sender has used its key for this other message, so it was not stored.
    NotOver(MessageId),
}

/// The idempotency keys in one inbox, as far as this process has read it.
#[derive(Default)]
pub(crate) struct Keyed {
    /// How far the inbox has been read.
    read: Position,
    /// The first message of each sender and key, and the position after it in the inbox.
    first: BTreeMap<(AgentName, String), (First, Position)>,
}

#[derive(Clone, Copy)]
struct First {
    id: MessageId,
    content: Content,
}

/// A hash of a message's content, because an inbox may hold many long texts. Only this process compares it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Content(u64);

/// The messages in one inbox, as far as this process has read it while emptying the outbox.
#[derive(Default)]
pub(crate) struct There {
    /// How far the inbox has been read.
    read: Position,
    ids: BTreeSet<MessageId>,
    /// The first message of each sender and key.
    keyed: BTreeMap<(AgentName, String), First>,
}

/// The fields of a message that tell its key.
#[derive(Deserialize)]
struct Key {
    id: MessageId,
    from: AgentName,
    idempotency_key: Option<String>,
}

impl First {
    fn of(message: &Message) -> First {
        First { id: message.id, content: Content::of(message) }
    }

    /// The result of storing `message`, which has the same key as this earlier one.
    fn before(self, message: &Message) -> KeyedStore {
        if self.content == Content::of(message) { KeyedStore::Before(self.id) } else { KeyedStore::NotOver(self.id) }
    }
}

impl Content {
    fn of(message: &Message) -> Content {
        let Message { id, subject, body, thread, reply_to, priority, tags, .. } = message;
        // A thread without a name is named after the message's id, which differs at each try.
        let thread = (*thread != id.to_string()).then_some(thread);
        let mut hasher = DefaultHasher::new();
        (subject, body, thread, reply_to, priority, tags).hash(&mut hasher);
        Content(hasher.finish())
    }
}

/// Appends a message unless it is stored already: an earlier try may have stored it without learning so.
/// Looks for a message of the same id, or of the same sender and key. What was read of the inbox is kept for the
/// next message to it, until `Inboxes::forget_what_is_there`.
pub(crate) async fn store_unless_there(
    core: &Core,
    inboxes: &Inboxes,
    message: &Message,
) -> Result<KeyedStore, StoreError> {
    let log = keys::inbox(&message.to);
    let entry = records::json(message);
    let there = inboxes.there(&message.to);
    let mut there = there.lock().await;
    loop {
        let There { read, ids, keyed } = &mut *there;
        let (end, _) = records::scan(core.shared.as_ref(), &log, *read, |entry| {
            if let Ok(Key { id, from, idempotency_key }) = serde_json::from_slice::<Key>(&entry.bytes) {
                ids.insert(id);
                if let Some(key) = idempotency_key
                    && let Ok(message) = serde_json::from_slice(&entry.bytes)
                {
                    keyed.entry((from, key)).or_insert_with(|| First::of(&message));
                }
            }
        })
        .await?;
        *read = end;
        let same_key = message.idempotency_key.as_ref().and_then(|key| keyed.get(&(message.from.clone(), key.clone())));
        let itself = ids.contains(&message.id).then_some(KeyedStore::Before(message.id));
        if let Some(kept) = itself.or_else(|| same_key.map(|first| first.before(message))) {
            core.shared.sync(&log, end).await?;
            return Ok(kept);
        }
        match core.shared.append(&log, std::slice::from_ref(&entry), Expect::End(end), Durability::Synced).await {
            Ok(_) => return Ok(KeyedStore::Anew),
            Err(AppendError::Moved) => {}
            Err(AppendError::Store(error)) => return Err(error),
        }
    }
}

/// Appends a message unless its sender has used this key in this inbox before. Decides from the whole log, and writes
/// only if nothing was appended meanwhile. If there is an older message, returns its id; that message is on disk by then.
pub(crate) async fn store_once(
    core: &Core,
    inboxes: &Inboxes,
    message: &Message,
    key: &str,
) -> Result<KeyedStore, StoreError> {
    let log = keys::inbox(&message.to);
    let entry = records::json(message);
    loop {
        let (first, end) = if core.shared.is_indexed() {
            // The end comes first: whatever is appended after it is noticed by the append below.
            let end = core.shared.end(&log).await?;
            (first_with_key(core, &log, &message.from, key).await?, end)
        } else {
            first_as_read(core, inboxes, message, key).await?
        };
        if let Some((first, end)) = first {
            // It may be there from a try whose sync failed or has not ended in another process.
            core.shared.sync(&log, end).await?;
            return Ok(first.before(message));
        }
        match core.shared.append(&log, std::slice::from_ref(&entry), Expect::End(end), Durability::Synced).await {
            Ok(_) => return Ok(KeyedStore::Anew),
            Err(AppendError::Moved) => {}
            Err(AppendError::Store(error)) => return Err(error),
        }
    }
}

/// The first message of a sender with a key, and the position after it, by the store's index.
async fn first_with_key(
    core: &Core,
    log: &store::Key,
    from: &AgentName,
    key: &str,
) -> Result<Option<(First, Position)>, StoreError> {
    let entries = core.shared.find(log, &[index_rule::of_idempotency_key(key)]).await?;
    Ok(entries.iter().find_map(|entry| {
        let message: Message = serde_json::from_slice(&entry.bytes).ok()?;
        let is_it = message.from == *from && message.idempotency_key.as_deref() == Some(key);
        is_it.then(|| (First::of(&message), entry.next))
    }))
}

/// The same in a store without an index, of which each process reads every entry once; and how far it has read.
async fn first_as_read(
    core: &Core,
    inboxes: &Inboxes,
    message: &Message,
    key: &str,
) -> Result<(Option<(First, Position)>, Position), StoreError> {
    let keyed = inboxes.keyed(&message.to);
    let mut keyed = keyed.lock().await;
    let Keyed { read, first } = &mut *keyed;
    let (end, _) = records::scan(core.shared.as_ref(), &keys::inbox(&message.to), *read, |entry| {
        if contains(&entry.bytes, b"\"idempotency_key\"")
            && let Ok(message) = serde_json::from_slice::<Message>(&entry.bytes)
            && let Some(key) = message.idempotency_key.clone()
        {
            let found = || (First::of(&message), entry.next);
            first.entry((message.from.clone(), key)).or_insert_with(found);
        }
    })
    .await?;
    *read = end;
    Ok((first.get(&(message.from.clone(), key.to_owned())).copied(), end))
}
