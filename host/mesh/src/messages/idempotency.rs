//! Idempotency: a sender's key is stored once per inbox, even with concurrent senders. The same key with the same
//! content is the same message; the same key with other content is an error, and the sender is told.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use store::{AppendError, Durability, Expect, Position, StoreError};

use crate::asks::held_loop;
use crate::core::Core;
use crate::delivery::wake_file::{self, Ring};
use crate::messages::Message;
use crate::messages::inbox::{TRIES, contains, contended};
use crate::messages::inboxes::Inboxes;
use crate::messages::kept::{self, KeptMessage};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::SessionRecord;
use crate::sessions::identify::CONNECTION;
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

/// How long a key is known in a store without an index, in milliseconds.
const KNOWN_FOR: u64 = 24 * 3_600_000;

/// The idempotency keys of the last day in one inbox, as far as this process has read it. Only for a store without an
/// index: with one, a key is found as long as its message is kept.
#[derive(Default)]
pub(crate) struct Keyed {
    read: ReadSince,
    /// The first message of each sender and key, the position after it in the inbox, and its time.
    first: BTreeMap<(AgentName, String), (First, Position, Instant)>,
}

impl Keyed {
    /// Reads an inbox on, or again if what was read begins too late. Returns where it ends; before `read.to` if it lost
    /// its end.
    async fn read_on(&mut self, core: &Core, log: &store::Key, since: Instant) -> Result<Position, StoreError> {
        if self.read.begin(core, log, since).await? {
            self.first.clear();
        }
        let Keyed { read, first } = self;
        let (end, _) = records::scan(core.shared.as_ref(), log, read.to, |entry| {
            if contains(&entry.bytes, b"\"idempotency_key\"")
                && let Ok(message) = serde_json::from_slice::<Message>(&entry.bytes)
                && let Some(key) = message.idempotency_key.clone()
            {
                let found = || (First::of(&message), entry.next, message.at);
                first.entry((message.from.clone(), key)).or_insert_with(found);
            }
        })
        .await?;
        Ok(end)
    }

    /// How many keys are held in memory.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }
}

/// Which part of an inbox a process has read.
#[derive(Default)]
struct ReadSince {
    /// The time of the oldest messages; none before the first read.
    since: Option<Instant>,
    /// How far.
    to: Position,
}

impl ReadSince {
    /// Goes back if what was read begins later than this time. Returns whether that is so: what is known of it then has
    /// to be forgotten.
    async fn begin(&mut self, core: &Core, log: &store::Key, since: Instant) -> Result<bool, StoreError> {
        if self.since.is_some_and(|known| known <= since) {
            return Ok(false);
        }
        let from = index_rule::first_since(core.shared.as_ref(), log, Some(since)).await?;
        (self.since, self.to) = (Some(since), from);
        Ok(true)
    }
}

#[derive(Clone, Copy)]
struct First {
    id: MessageId,
    content: Content,
}

/// A hash of a message's content, because an inbox may hold many long texts. Only this process compares it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Content(u64);

/// The messages in one inbox since the oldest one in the outbox was written, as far as this process has read it while
/// emptying the outbox.
#[derive(Default)]
pub(crate) struct There {
    read: ReadSince,
    ids: BTreeSet<MessageId>,
}

/// The field of a message that tells it from others.
#[derive(Deserialize)]
struct Id {
    id: MessageId,
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
    for _ in 0..TRIES {
        if there.read.begin(core, &log, message.at).await? {
            there.ids.clear();
        }
        let There { read, ids } = &mut *there;
        let (end, _) = records::scan(core.shared.as_ref(), &log, read.to, |entry| {
            ids.extend(serde_json::from_slice::<Id>(&entry.bytes).map(|message| message.id));
        })
        .await?;
        if end < read.to {
            // The inbox lost its end, and some of these messages with it.
            *read = ReadSince::default();
            continue;
        }
        read.to = end;
        let kept = match &message.idempotency_key {
            _ if ids.contains(&message.id) => Some(KeyedStore::Before(message.id)),
            Some(key) => first_with(core, inboxes, message, key).await?.0.map(|(first, _)| first.before(message)),
            None => None,
        };
        if let Some(kept) = kept {
            core.shared.sync(&log, end).await?;
            return Ok(kept);
        }
        match core.shared.append(&log, std::slice::from_ref(&entry), Expect::End(end), Durability::Synced).await {
            Ok(_) => return Ok(KeyedStore::Anew),
            Err(AppendError::Moved) if core.shared.end(&log).await? < end => *read = ReadSince::default(),
            Err(AppendError::Moved) => {}
            Err(AppendError::Store(error)) => return Err(error),
        }
    }
    Err(contended(&log))
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
    for _ in 0..TRIES {
        let (first, end) = first_with(core, inboxes, message, key).await?;
        if let Some((first, end)) = first {
            // It may be there from a try whose sync failed or has not ended in another process.
            core.shared.sync(&log, end).await?;
            return Ok(first.before(message));
        }
        match core.shared.append(&log, std::slice::from_ref(&entry), Expect::End(end), Durability::Synced).await {
            Ok(_) => return Ok(KeyedStore::Anew),
            Err(AppendError::Moved) if core.shared.end(&log).await? < end => {
                inboxes.keyed(&message.to).lock().await.read = ReadSince::default();
            }
            Err(AppendError::Moved) => {}
            Err(AppendError::Store(error)) => return Err(error),
        }
    }
    Err(contended(&log))
}

/// Does for a message that is sent again what the try that stored it may not have come to: wakes its recipient, or asks
/// the user about what holds it. If its history says that anything has happened to it since, nothing is left to do: it
/// wakes once, however often it is sent. Returns whether a hook of the harness was told.
pub(crate) async fn ring_for_earlier(
    core: &Core,
    record: Option<&SessionRecord>,
    to: &AgentName,
    id: MessageId,
) -> Result<bool, StoreError> {
    let Some(record) = record.filter(|record| record.session.harness != CONNECTION) else { return Ok(false) };
    let kept = kept::one_of(core, to, id).await?.filter(|kept| kept.history.is_untouched());
    let Some(KeptMessage { message, history, .. }) = kept else { return Ok(false) };
    let (ring, now) = (Ring::of(&message), core.machine.now());
    if let Some(hold) = history.hold.filter(|hold| hold.until.is_none_or(|until| now < until)) {
        // Once for its chain. The event log may have it already, and is not told again.
        held_loop::ask(core, &ring, to, &hold).await;
        return Ok(false);
    }
    // Where nothing watches the file, no receipt would say at the next try that this one has woken it.
    if !record.watches_wake_file || wake_file::why_hold(core, Some(record), &ring).await?.is_some() {
        return Ok(false);
    }
    wake_file::ring(core, to, Some(record), &ring).await
}

/// The first message with the sender and the key of this one, and the position after it; and where the inbox ended at
/// that time.
async fn first_with(
    core: &Core,
    inboxes: &Inboxes,
    message: &Message,
    key: &str,
) -> Result<(Option<(First, Position)>, Position), StoreError> {
    if !core.shared.is_indexed() {
        return first_as_read(core, inboxes, message, key).await;
    }
    // The end comes first: whatever is appended after it is noticed by the caller's append.
    let log = keys::inbox(&message.to);
    let end = core.shared.end(&log).await?;
    Ok((first_with_key(core, &log, &message.from, key).await?, end))
}

/// The first message of a sender with a key, and the position after it, by the store's index.
async fn first_with_key(
    core: &Core,
    log: &store::Key,
    from: &AgentName,
    key: &str,
) -> Result<Option<(First, Position)>, StoreError> {
    // Settled mail is deleted after that time, and then its key is not known any more either.
    let since = core.machine.now().0.saturating_sub(core.limits.keep);
    let entries = core.shared.find(log, &[index_rule::of_idempotency_key(key).since(since)]).await?;
    Ok(entries.iter().find_map(|entry| {
        let message: Message = serde_json::from_slice(&entry.bytes).ok()?;
        let is_it = message.from == *from && message.idempotency_key.as_deref() == Some(key);
        is_it.then(|| (First::of(&message), entry.next))
    }))
}

/// The same in a store without an index, of which each process reads every entry of the last day once; and how far it
/// has read.
async fn first_as_read(
    core: &Core,
    inboxes: &Inboxes,
    message: &Message,
    key: &str,
) -> Result<(Option<(First, Position)>, Position), StoreError> {
    let (keyed, log) = (inboxes.keyed(&message.to), keys::inbox(&message.to));
    let mut keyed = keyed.lock().await;
    let since = Instant(message.at.0.saturating_sub(KNOWN_FOR));
    let mut end = keyed.read_on(core, &log, since).await?;
    if end < keyed.read.to {
        // The inbox lost its end, and some of these keys with it.
        keyed.read = ReadSince::default();
        end = keyed.read_on(core, &log, since).await?;
    }
    let Keyed { read, first } = &mut *keyed;
    read.to = end;
    // What is older is not known to a process that begins now either.
    first.retain(|_, (_, _, at)| *at >= since);
    read.since = Some(since);
    let found = first.get(&(message.from.clone(), key.to_owned())).map(|(first, after, _)| (*first, *after));
    Ok((found, end))
}
