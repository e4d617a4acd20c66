//! One inbox, folded: which messages are unsettled, and the delivery history of each.
//!
//! Settled messages are dropped from memory at once, so that a server can follow many inboxes for a long time.
//! Bodies stay in the store until they are read, except for a few short recent ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use store::{AppendError, Durability, Entry, Expect, Key, Position, Seek, Store, StoreError, Term};

use crate::core::Core;
use crate::messages::fetch::{Fetch, FetchedMessage};
use crate::messages::receipt::{DeliveryHistory, Event, Receipt};
use crate::messages::{Hold, Message, Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::storage::{index_rule, keys, records};

/// An inbox as far as this process has read it.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Unsettled messages. Written by `refresh` and `append_if_unmoved`.
    pub(crate) unsettled: BTreeMap<MessageId, Slot>,
    /// Settled messages that come after an unsettled one in the inbox, by position, each with the position of its
    /// first receipt: a process that reads the inbox from there needs those receipts too.
    settled: BTreeMap<Position, Position>,
    /// How far the logs have been read; none before the first refresh.
    read: Option<Cursor>,
    /// Number of damaged entries that were skipped.
    pub(crate) damage: usize,
    /// The cursor as last written, to avoid writing it again unchanged.
    written: Option<Cursor>,
}

/// How many bytes of an inbox are read at a time.
const STEP: usize = 256 * 1024;
/// The receipts of more messages than this are read from the first to the last instead of being looked up.
const MOST_LOOKED_UP: usize = 500;
/// How many bytes of unsettled messages one inbox keeps in memory, so that recent ones are not read again.
const TEXTS_KEPT: usize = 16 * 1024;

/// One unsettled message.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Its position in the inbox log.
    pub(crate) at: Position,
    /// The position of its first receipt.
    first_receipt: Option<Position>,
    pub(crate) header: Header,
    pub(crate) history: DeliveryHistory,
    /// The whole message, if it is short and recent.
    text: Option<Arc<[u8]>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Header {
    pub(crate) id: MessageId,
    pub(crate) at: Instant,
    pub(crate) from: AgentName,
    pub(crate) thread: String,
    #[serde(default)]
    pub(crate) priority: Priority,
    pub(crate) trace: Trace,
    #[serde(default)]
    pub(crate) held: Option<Hold>,
}

impl Header {
    pub(crate) fn of(message: &Message) -> Header {
        Header {
            id: message.id,
            at: message.at,
            from: message.from.clone(),
            thread: message.thread.clone(),
            priority: message.priority,
            trace: message.trace,
            held: message.held.clone(),
        }
    }
}

/// How far the two logs of an inbox have been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    inbox: Position,
    receipts: Position,
}

/// The messages of one read of an inbox.
#[derive(Default)]
struct Came {
    slots: BTreeMap<MessageId, Slot>,
    /// How many bytes of messages are kept in memory, including these.
    kept: usize,
    /// How many entries are not messages.
    unreadable: usize,
}

impl Came {
    fn take(&mut self, entry: &Entry) {
        let Ok(header) = serde_json::from_slice::<Header>(&entry.bytes) else {
            self.unreadable += 1;
            return;
        };
        let text = (self.kept + entry.bytes.len() <= TEXTS_KEPT).then(|| Arc::from(entry.bytes.as_slice()));
        self.kept += text.as_ref().map_or(0, |text: &Arc<[u8]>| text.len());
        let history = DeliveryHistory::of_stored(header.held.as_ref());
        let slot = Slot { at: entry.at, first_receipt: None, header, history, text };
        self.slots.insert(slot.header.id, slot);
    }
}

impl Inbox {
    /// Reads new entries. A receipt is always younger than its message. So if receipts are read before messages,
    /// every message read has either all its receipts here or later ones; if both are read at once, the inbox is
    /// read further if a receipt belongs to a message that is not known here.
    pub(crate) async fn refresh(&mut self, store: &dyn Store, name: &AgentName) -> Result<(), StoreError> {
        let from = match self.read {
            Some(cursor) => cursor,
            None => match records::load::<Cursor>(store, &keys::cursor(name)).await {
                Ok(found) => {
                    self.written = found.map(|(_, cursor)| cursor);
                    self.written.unwrap_or_default()
                }
                // The cursor is only a hint: without it everything is read.
                Err(StoreError::Damaged { .. }) => Cursor::default(),
                Err(error) => return Err(error),
            },
        };
        // Both at once, because servers take a round trip for each read.
        let (inbox, receipts) = (keys::inbox(name), keys::receipts(name));
        let receipts_are_read = AtomicBool::new(false);
        let mut came = Came { kept: self.texts(), ..Came::default() };
        let (read_receipts, read_messages) = tokio::join!(
            async {
                let mut entries = Vec::new();
                let read = records::scan(store, &receipts, from.receipts, |entry| entries.push(entry)).await?;
                receipts_are_read.store(true, Ordering::Relaxed);
                Ok::<_, StoreError>((entries, read))
            },
            async {
                let in_order = receipts_are_read.load(Ordering::Relaxed);
                let read = records::scan(store, &inbox, from.inbox, |entry| came.take(&entry)).await?;
                Ok::<_, StoreError>((in_order, read))
            },
        );
        let (entries, (receipts_end, torn_receipts)) = read_receipts?;
        let (in_order, (mut inbox_end, mut torn_messages)) = read_messages?;
        let receipts: Vec<_> =
            entries.iter().map(|entry| (entry.at, serde_json::from_slice::<Receipt>(&entry.bytes))).collect();
        let unknown = |receipt: &Receipt| {
            !self.unsettled.contains_key(&receipt.message) && !came.slots.contains_key(&receipt.message)
        };
        if !in_order && receipts.iter().filter_map(|(_, receipt)| receipt.as_ref().ok()).any(unknown) {
            let (end, torn) = records::scan(store, &inbox, inbox_end, |entry| came.take(&entry)).await?;
            inbox_end = end;
            torn_messages += torn;
        }
        self.unsettled.append(&mut came.slots);
        self.damage += torn_receipts + torn_messages + came.unreadable;
        for (at, receipt) in receipts {
            match receipt {
                Ok(receipt) => self.take(at, receipt),
                Err(_) => self.damage += 1,
            }
        }
        self.read = Some(Cursor { inbox: inbox_end, receipts: receipts_end });
        Ok(())
    }

    /// How many bytes of messages are kept in memory.
    fn texts(&self) -> usize {
        self.unsettled.values().filter_map(|slot| slot.text.as_ref()).map(|text| text.len()).sum()
    }

    fn take(&mut self, at: Position, receipt: Receipt) {
        if let Some(slot) = self.unsettled.get_mut(&receipt.message) {
            let first_receipt = *slot.first_receipt.get_or_insert(at);
            slot.history.take(receipt.at, receipt.event);
            if slot.history.is_settled() {
                self.settled.insert(slot.at, first_receipt);
                self.unsettled.remove(&receipt.message);
            }
        }
    }

    /// Appends receipts only if none was appended since this inbox was refreshed. Returns whether they
    /// were written; if not, refresh and decide again.
    pub(crate) async fn append_if_unmoved(
        &mut self,
        store: &dyn Store,
        name: &AgentName,
        receipts: &[Receipt],
    ) -> Result<bool, StoreError> {
        let Some(read) = self.read else { return Ok(false) };
        let entries: Vec<Vec<u8>> = receipts.iter().map(records::json).collect();
        let outcome =
            store.append(&keys::receipts(name), &entries, Expect::End(read.receipts), Durability::Process).await;
        match outcome {
            Ok(end) => {
                for receipt in receipts {
                    self.take(read.receipts, receipt.clone());
                }
                self.read = Some(Cursor { receipts: end, ..read });
                Ok(true)
            }
            Err(AppendError::Moved) => Ok(false),
            Err(AppendError::Store(error)) => Err(error),
        }
    }

    /// Writes the cursor, so that the next process need not read settled messages.
    pub(crate) async fn leave_cursor(&mut self, store: &dyn Store, name: &AgentName) {
        let Some(read) = self.read else { return };
        let inbox = self.unsettled.values().map(|slot| slot.at).min().unwrap_or(read.inbox);
        self.settled = self.settled.split_off(&inbox);
        let receipts =
            self.unsettled.values().filter_map(|slot| slot.first_receipt).chain(self.settled.values().copied());
        let cursor = Cursor { inbox, receipts: receipts.min().unwrap_or(read.receipts) };
        if self.written == Some(cursor) {
            return;
        }
        // A concurrent writer's cursor may be older or newer; both are valid hints.
        let outcome =
            records::update(store, &keys::cursor(name), Durability::Process, |old: Option<Cursor>| match old {
                Some(old) if old.inbox >= cursor.inbox && old.receipts >= cursor.receipts => (records::Next::Keep, ()),
                Some(_) | None => (records::Next::Put(cursor), ()),
            })
            .await;
        match outcome {
            Ok(()) => self.written = Some(cursor),
            Err(error) => tracing::debug!(agent = %name, %error, "the cursor was not written; it is only a hint"),
        }
    }

    /// Unsettled messages that nobody presents and no session was given, most urgent first, then oldest first.
    pub(crate) fn presentable(&self, now: Instant) -> Vec<&Slot> {
        let free = |slot: &&Slot| !slot.history.is_leased(now) && slot.history.handed.is_none();
        let mut slots: Vec<&Slot> = self.unsettled.values().filter(free).collect();
        slots.sort_by_key(|slot| (std::cmp::Reverse(slot.header.priority), slot.at));
        slots
    }
}

/// The whole message of a slot.
pub(crate) async fn message_of(core: &Core, name: &AgentName, slot: &Slot) -> Result<Message, StoreError> {
    let log = keys::inbox(name);
    if let Some(text) = &slot.text {
        return records::parse(&log, text);
    }
    let batch = core.shared.read(&log, slot.at, 1).await?;
    match batch.entries.first() {
        Some(entry) if entry.at == slot.at => records::parse(&log, &entry.bytes),
        Some(_) | None => {
            Err(StoreError::Damaged { what: log.to_string(), why: "a message that was there is gone".to_owned() })
        }
    }
}

/// A message as it is about to be presented.
pub(crate) async fn to_present(core: &Core, name: &AgentName, slot: &Slot) -> Result<FetchedMessage, StoreError> {
    let message = message_of(core, name, slot).await?;
    Ok(FetchedMessage { message, cut_from: None, history: slot.history.clone() })
}

/// The messages with these ids and their histories, in the order of the inbox. Ids that are not in it are left out.
pub(crate) async fn these(
    core: &Core,
    name: &AgentName,
    ids: &[MessageId],
) -> Result<Vec<(Message, DeliveryHistory)>, StoreError> {
    let terms: Vec<Term> = ids.iter().map(|id| index_rule::of_message(*id)).collect();
    let entries = core.shared.find(&keys::inbox(name), &terms).await?;
    let mut messages: Vec<Message> = Vec::new();
    for message in entries.iter().filter_map(|entry| serde_json::from_slice::<Message>(&entry.bytes).ok()) {
        if ids.contains(&message.id) && messages.iter().all(|earlier| earlier.id != message.id) {
            messages.push(message);
        }
    }
    with_histories(core, name, messages).await
}

/// One message of an inbox and its delivery history; none if it is not there.
pub(crate) async fn one_of(
    core: &Core,
    name: &AgentName,
    id: MessageId,
) -> Result<Option<(Message, DeliveryHistory)>, StoreError> {
    Ok(these(core, name, &[id]).await?.pop())
}

/// The newest messages of an inbox that are wanted, settled or not, in the order of the inbox.
pub(crate) async fn newest(
    core: &Core,
    name: &AgentName,
    ask: &Fetch,
) -> Result<Vec<(Message, DeliveryHistory)>, StoreError> {
    let log = keys::inbox(name);
    let floor = first_since(core, &log, ask.since).await?;
    let mut before = core.shared.end(&log).await?;
    let mut messages: Vec<Message> = Vec::new();
    while messages.len() < ask.limit {
        let batch = core.shared.read_back(&log, before, STEP).await?;
        messages.extend(batch.entries.iter().rev().filter_map(|entry| wanted(ask, entry)));
        if batch.at_end || batch.next <= floor || batch.next >= before {
            break;
        }
        before = batch.next;
    }
    messages.truncate(ask.limit);
    messages.reverse();
    with_histories(core, name, messages).await
}

/// The oldest messages of an inbox that are wanted, settled or not, in the order of the inbox.
pub(crate) async fn oldest(
    core: &Core,
    name: &AgentName,
    ask: &Fetch,
) -> Result<Vec<(Message, DeliveryHistory)>, StoreError> {
    let log = keys::inbox(name);
    let mut from = first_since(core, &log, ask.since).await?;
    let mut messages: Vec<Message> = Vec::new();
    while messages.len() < ask.limit {
        let batch = core.shared.read(&log, from, STEP).await?;
        messages.extend(batch.entries.iter().filter_map(|entry| wanted(ask, entry)));
        if batch.at_end || batch.next == from {
            break;
        }
        from = batch.next;
    }
    messages.truncate(ask.limit);
    with_histories(core, name, messages).await
}

fn wanted(ask: &Fetch, entry: &Entry) -> Option<Message> {
    let message: Message = serde_json::from_slice(&entry.bytes).ok()?;
    ask.wants(&Header::of(&message)).then_some(message)
}

/// A position before which no message is of that time or later.
async fn first_since(core: &Core, log: &Key, since: Option<Instant>) -> Result<Position, StoreError> {
    match since {
        Some(since) => Ok(core.shared.seek(log, Seek::Time(since.0)).await?.unwrap_or(Position::START)),
        None => Ok(Position::START),
    }
}

/// Messages of an inbox with what its receipts say of each.
async fn with_histories(
    core: &Core,
    name: &AgentName,
    messages: Vec<Message>,
) -> Result<Vec<(Message, DeliveryHistory)>, StoreError> {
    let log = keys::receipts(name);
    let mut histories: BTreeMap<MessageId, DeliveryHistory> =
        messages.iter().map(|message| (message.id, DeliveryHistory::of_stored(message.held.as_ref()))).collect();
    let mut take = |entry: &Entry| {
        if let Ok(receipt) = serde_json::from_slice::<Receipt>(&entry.bytes)
            && let Some(history) = histories.get_mut(&receipt.message)
        {
            history.take(receipt.at, receipt.event);
        }
    };
    if messages.len() > MOST_LOOKED_UP {
        records::scan(core.shared.as_ref(), &log, Position::START, |entry| take(&entry)).await?;
    } else {
        let terms: Vec<Term> = messages.iter().map(|message| index_rule::of_message(message.id)).collect();
        core.shared.find(&log, &terms).await?.iter().for_each(take);
    }
    Ok(messages
        .into_iter()
        .map(|message| {
            let history = histories.get(&message.id).cloned().unwrap_or_default();
            (message, history)
        })
        .collect())
}

/// Appends an event to the receipts of these messages.
pub(crate) async fn receipt(
    core: &Core,
    name: &AgentName,
    ids: &[MessageId],
    event: &Event,
    durability: Durability,
) -> Result<(), StoreError> {
    let at = core.machine.now();
    let receipts: Vec<Receipt> = ids.iter().map(|id| Receipt { message: *id, at, event: event.clone() }).collect();
    if receipts.is_empty() {
        return Ok(());
    }
    records::append_all(core.shared.as_ref(), &keys::receipts(name), &receipts, durability).await.map(|_| ())
}

/// Whether the needle occurs in the bytes. Avoids parsing entries that cannot match.
pub(crate) fn contains(hay: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(hay, needle).is_some()
}
