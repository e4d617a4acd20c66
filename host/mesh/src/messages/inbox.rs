//! One inbox, folded: which messages are unsettled, and where each stands.
//!
//! Settled messages are let go of at once, so that a host may follow many inboxes for a long time.
//! Bodies stay in the store until somebody reads them, but for a few short ones that have just come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use store::{AppendError, Durability, Entry, Expect, Position, Store, StoreError};

use crate::core::Core;
use crate::messages::receipt::{DeliveryHistory, Event, Receipt};
use crate::messages::{Message, Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::storage::{keys, records};

/// An inbox as far as this process has read it.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Unsettled messages. Written by `refresh` alone.
    pub(crate) unsettled: BTreeMap<MessageId, Slot>,
    /// Settled messages that lie behind an unsettled one, by their place in the inbox, each with its
    /// first receipt: whoever reads the inbox from there needs those receipts too.
    settled: BTreeMap<Position, Position>,
    /// How far the inbox log is read; none before the first refresh.
    read: Option<Cursor>,
    /// Damaged stretches that were passed over.
    pub(crate) damage: usize,
    /// The cursor as it was last written, so that it is not written again for nothing.
    written: Option<Cursor>,
}

/// How many bytes of unsettled messages are kept of one inbox, so that what has just come need not be read again.
const TEXTS_KEPT: usize = 16 * 1024;

/// One unsettled message.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Where it lies in the inbox log.
    pub(crate) at: Position,
    /// The first receipt that concerns it.
    first_receipt: Option<Position>,
    /// What one must know of it without its body.
    pub(crate) header: Header,
    /// Where it stands.
    pub(crate) history: DeliveryHistory,
    /// The whole of it, where it is short and came lately.
    text: Option<Arc<[u8]>>,
}

/// A message without its body.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Header {
    pub(crate) id: MessageId,
    pub(crate) at: Instant,
    pub(crate) from: AgentName,
    pub(crate) thread: String,
    #[serde(default)]
    pub(crate) priority: Priority,
    pub(crate) trace: Trace,
}

impl Header {
    /// The header of a whole message.
    pub(crate) fn of(message: &Message) -> Header {
        Header {
            id: message.id,
            at: message.at,
            from: message.from.clone(),
            thread: message.thread.clone(),
            priority: message.priority,
            trace: message.trace,
        }
    }
}

/// How far something has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    inbox: Position,
    receipts: Position,
}

/// Messages that one look at an inbox brought.
#[derive(Default)]
struct Came {
    slots: BTreeMap<MessageId, Slot>,
    /// How many bytes of messages are kept, these included.
    kept: usize,
    /// How many entries are no messages.
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
        let slot = Slot { at: entry.at, first_receipt: None, header, history: DeliveryHistory::default(), text };
        self.slots.insert(slot.header.id, slot);
    }
}

impl Inbox {
    /// Reads what is new. A receipt is always younger than its message. So where receipts were read before
    /// messages, a message that is read here has either all its receipts here or later ones; and where both were
    /// read at once, the inbox is read on if a receipt is of a message that is not known here.
    pub(crate) async fn refresh(&mut self, store: &dyn Store, name: &AgentName) -> Result<(), StoreError> {
        let from = match self.read {
            Some(cursor) => cursor,
            None => match records::load::<Cursor>(store, &keys::cursor(name)).await {
                Ok(found) => {
                    self.written = found.map(|(_, cursor)| cursor);
                    self.written.unwrap_or_default()
                }
                // The cursor is a hint: without it everything is read.
                Err(StoreError::Damaged { .. }) => Cursor::default(),
                Err(error) => return Err(error),
            },
        };
        // On servers each answer is waited for.
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

    /// How many bytes of messages are kept.
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

    /// Writes receipts back only if nobody wrote any since this inbox was refreshed. Whether they
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

    /// Leaves a hint for the next process, so that it need not read what is settled.
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
        // A concurrent writer's hint may be older or newer; both are true, and either will do.
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

    /// Messages that nobody presents just now, the most urgent first, then the oldest.
    pub(crate) fn presentable(&self, now: Instant) -> Vec<&Slot> {
        let mut slots: Vec<&Slot> = self.unsettled.values().filter(|slot| !slot.history.is_leased(now)).collect();
        slots.sort_by_key(|slot| (std::cmp::Reverse(slot.header.priority), slot.at));
        slots
    }
}

/// The whole message that a slot stands for.
pub(crate) async fn message_of(core: &Core, name: &AgentName, slot: &Slot) -> Result<Message, StoreError> {
    let log = keys::inbox(name);
    if let Some(text) = &slot.text {
        return records::parse(&log, text);
    }
    let batch = core.shared.read(&log, slot.at, 1).await?;
    match batch.entries.first() {
        Some(entry) if entry.at == slot.at => records::parse(&log, &entry.bytes),
        Some(_) | None => {
            Err(StoreError::Damaged { what: log.to_string(), why: "a message is gone that was there".to_owned() })
        }
    }
}

/// Everything that is kept of an inbox, settled or not, in order.
pub(crate) async fn history(core: &Core, name: &AgentName) -> Result<Vec<(Message, DeliveryHistory)>, StoreError> {
    let mut receipts: Vec<Receipt> = Vec::new();
    records::scan(core.shared.as_ref(), &keys::receipts(name), Position::START, |entry| {
        receipts.extend(serde_json::from_slice::<Receipt>(&entry.bytes));
    })
    .await?;
    let mut messages: Vec<(Message, DeliveryHistory)> = Vec::new();
    records::scan(core.shared.as_ref(), &keys::inbox(name), Position::START, |entry| {
        messages.extend(
            serde_json::from_slice::<Message>(&entry.bytes).map(|message| (message, DeliveryHistory::default())),
        );
    })
    .await?;
    let places: BTreeMap<MessageId, usize> =
        messages.iter().enumerate().map(|(place, (message, _))| (message.id, place)).collect();
    for receipt in receipts {
        if let Some(place) = places.get(&receipt.message) {
            messages[*place].1.take(receipt.at, receipt.event);
        }
    }
    Ok(messages)
}

/// One message of an inbox and where it stands; none where it is not there.
pub(crate) async fn one_of(
    core: &Core,
    name: &AgentName,
    id: MessageId,
) -> Result<Option<(Message, DeliveryHistory)>, StoreError> {
    let needle = id.to_string();
    let mentions = |entry: &store::Entry| contains(&entry.bytes, needle.as_bytes());
    let mut receipts: Vec<Receipt> = Vec::new();
    records::scan(core.shared.as_ref(), &keys::receipts(name), Position::START, |entry| {
        if mentions(&entry) {
            receipts.extend(serde_json::from_slice::<Receipt>(&entry.bytes));
        }
    })
    .await?;
    let mut found: Option<Message> = None;
    records::scan(core.shared.as_ref(), &keys::inbox(name), Position::START, |entry| {
        if found.is_none() && mentions(&entry) {
            found = serde_json::from_slice::<Message>(&entry.bytes).ok().filter(|message| message.id == id);
        }
    })
    .await?;
    Ok(found.map(|message| {
        let mut history = DeliveryHistory::default();
        for receipt in receipts.into_iter().filter(|receipt| receipt.message == id) {
            history.take(receipt.at, receipt.event);
        }
        (message, history)
    }))
}

/// Notes events of messages in an inbox.
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

/// Whether bytes occur in others: spares parsing the entries that cannot be meant.
pub(crate) fn contains(hay: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(hay, needle).is_some()
}
