//! Idempotency: one key of one sender is stored once in an inbox, whoever else sends meanwhile. The same key with
//! the same content is the same sending; with other content it is a mistake, and nothing of it is dropped quietly.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use store::{AppendError, Durability, Expect, Position, StoreError};

use crate::core::Core;
use crate::messages::Message;
use crate::messages::inbox::contains;
use crate::messages::inboxes::Inboxes;
use crate::names::{AgentName, MessageId};
use crate::storage::{keys, records};

/// What an inbox did with a message that may have been in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is stored now.
    Anew,
    /// The same was there, under this id.
    Before(MessageId),
    /// Its sender has used its key for this other message, and it is not stored.
    NotOver(MessageId),
}

/// The keys in one inbox, as far as this process has read it.
#[derive(Default)]
pub(crate) struct Keyed {
    /// How far.
    read: Position,
    /// The first message of each sender and key, and where it ends in the inbox.
    first: BTreeMap<(AgentName, String), (First, Position)>,
}

/// The first message of a sender and key.
#[derive(Clone, Copy)]
struct First {
    id: MessageId,
    content: Content,
}

/// What a sender said, in short: a hash that only this process compares, as an inbox may hold many long texts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Content(u64);

/// Everything in one inbox, as far as this process has read it to send what had waited.
#[derive(Default)]
pub(crate) struct There {
    /// How far.
    read: Position,
    ids: BTreeSet<MessageId>,
    /// The first message of each sender and key.
    keyed: BTreeMap<(AgentName, String), First>,
}

/// What must be read of a message to know its key.
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

    /// What becomes of a message whose key this one has.
    fn before(self, message: &Message) -> Kept {
        if self.content == Content::of(message) { Kept::Before(self.id) } else { Kept::NotOver(self.id) }
    }
}

impl Content {
    fn of(message: &Message) -> Content {
        let Message { id, subject, body, thread, reply_to, priority, tags, .. } = message;
        // A conversation of its own is called by the message's id, which is another one at each try.
        let thread = (*thread != id.to_string()).then_some(thread);
        let mut hasher = DefaultHasher::new();
        (subject, body, thread, reply_to, priority, tags).hash(&mut hasher);
        Content(hasher.finish())
    }
}

/// Appends a message unless it is there already: an earlier try may have stored it and not heard so.
/// Looks for the message of the same id or of the same sender's key that is there. What was read of an inbox
/// is kept for the next message to it, until `Inboxes::forget_what_is_there`.
pub(crate) async fn store_unless_there(core: &Core, inboxes: &Inboxes, message: &Message) -> Result<Kept, StoreError> {
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
        let itself = ids.contains(&message.id).then_some(Kept::Before(message.id));
        if let Some(kept) = itself.or_else(|| same_key.map(|first| first.before(message))) {
            core.shared.sync(&log, end).await?;
            return Ok(kept);
        }
        match core.shared.append(&log, std::slice::from_ref(&entry), Expect::End(end), Durability::Synced).await {
            Ok(_) => return Ok(Kept::Anew),
            Err(AppendError::Moved) => {}
            Err(AppendError::Store(error)) => return Err(error),
        }
    }
}

/// Appends a message unless its sender has used this key here before. Decided from the whole
/// log, of which each process reads every entry once, and written only if nothing was appended
/// meanwhile. Gives the id of the older one, which is on disk by then.
pub(crate) async fn store_once(
    core: &Core,
    inboxes: &Inboxes,
    message: &Message,
    key: &str,
) -> Result<Kept, StoreError> {
    let log = keys::inbox(&message.to);
    let entry = records::json(message);
    let wanted = (message.from.clone(), key.to_owned());
    let keyed = inboxes.keyed(&message.to);
    let mut keyed = keyed.lock().await;
    loop {
        let Keyed { read, first } = &mut *keyed;
        let (end, _) = records::scan(core.shared.as_ref(), &log, *read, |entry| {
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
        if let Some((first, end)) = first.get(&wanted) {
            // It may lie there from a try whose sync failed, or is still under way elsewhere.
            core.shared.sync(&log, *end).await?;
            return Ok(first.before(message));
        }
        match core.shared.append(&log, std::slice::from_ref(&entry), Expect::End(end), Durability::Synced).await {
            Ok(_) => return Ok(Kept::Anew),
            Err(AppendError::Moved) => {}
            Err(AppendError::Store(error)) => return Err(error),
        }
    }
}
