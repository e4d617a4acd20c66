//! One inbox, folded: which messages are unsettled, and where each stands.
//!
//! Settled messages are let go of at once, so that a host may follow many inboxes for a long time.
//! Bodies stay in the store until somebody reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{AppendError, Durability, Expect, Position, Store, StoreError};
use tokio::sync::Mutex;

use crate::Mesh;
use crate::machine::Instant;
use crate::message::{Message, Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::receipt::{Event, Ladder, Receipt};
use crate::{keys, records};

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
    pub(crate) ladder: Ladder,
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
struct Cursor {
    inbox: Position,
    receipts: Position,
}

impl Inbox {
    /// Reads what is new. Receipts are read before messages: a receipt is always younger than its
    /// message, so a message that is read here has either all its receipts here or later ones.
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
        let mut receipts = Vec::new();
        let (receipts_end, torn_receipts) =
            records::scan(store, &keys::receipts(name), from.receipts, |entry| receipts.push(entry)).await?;
        let unsettled = &mut self.unsettled;
        let mut unreadable = 0;
        let (inbox_end, torn_messages) = records::scan(store, &keys::inbox(name), from.inbox, |entry| {
            match serde_json::from_slice::<Header>(&entry.bytes) {
                Ok(header) => {
                    let slot = Slot { at: entry.at, first_receipt: None, header, ladder: Ladder::default() };
                    unsettled.insert(slot.header.id, slot);
                }
                Err(_) => unreadable += 1,
            }
        })
        .await?;
        for entry in receipts {
            match serde_json::from_slice::<Receipt>(&entry.bytes) {
                Ok(receipt) => self.take(entry.at, receipt),
                Err(_) => unreadable += 1,
            }
        }
        self.damage += torn_receipts + torn_messages + unreadable;
        self.read = Some(Cursor { inbox: inbox_end, receipts: receipts_end });
        Ok(())
    }

    fn take(&mut self, at: Position, receipt: Receipt) {
        if let Some(slot) = self.unsettled.get_mut(&receipt.message) {
            let first_receipt = *slot.first_receipt.get_or_insert(at);
            slot.ladder.take(receipt.at, receipt.event);
            if slot.ladder.is_settled() {
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
        let mut slots: Vec<&Slot> = self.unsettled.values().filter(|slot| !slot.ladder.is_claimed(now)).collect();
        slots.sort_by_key(|slot| (std::cmp::Reverse(slot.header.priority), slot.at));
        slots
    }
}

impl Mesh {
    /// This process's view of an inbox.
    pub(crate) fn inbox_of(&self, name: &AgentName) -> Arc<Mutex<Inbox>> {
        // A std mutex: nothing is awaited while it is held, and the section is a map insert.
        let mut inboxes = self.inboxes.lock().expect("no holder of this lock panics");
        Arc::clone(inboxes.entry(name.clone()).or_default())
    }

    /// The whole message that a slot stands for.
    pub(crate) async fn message_at(&self, name: &AgentName, at: Position) -> Result<Message, StoreError> {
        let log = keys::inbox(name);
        let batch = self.shared.read(&log, at, 1).await?;
        match batch.entries.first() {
            Some(entry) if entry.at == at => records::parse(&log, &entry.bytes),
            Some(_) | None => {
                Err(StoreError::Damaged { what: log.to_string(), why: "a message is gone that was there".to_owned() })
            }
        }
    }

    /// Everything that is kept of an inbox, settled or not, in order.
    pub(crate) async fn history(&self, name: &AgentName) -> Result<Vec<(Message, Ladder)>, StoreError> {
        let mut receipts: Vec<Receipt> = Vec::new();
        records::scan(self.shared.as_ref(), &keys::receipts(name), Position::START, |entry| {
            receipts.extend(serde_json::from_slice::<Receipt>(&entry.bytes));
        })
        .await?;
        let mut messages: Vec<(Message, Ladder)> = Vec::new();
        records::scan(self.shared.as_ref(), &keys::inbox(name), Position::START, |entry| {
            messages
                .extend(serde_json::from_slice::<Message>(&entry.bytes).map(|message| (message, Ladder::default())));
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
        &self,
        name: &AgentName,
        id: MessageId,
    ) -> Result<Option<(Message, Ladder)>, StoreError> {
        let needle = id.to_string();
        let mentions = |entry: &store::Entry| contains(&entry.bytes, needle.as_bytes());
        let mut receipts: Vec<Receipt> = Vec::new();
        records::scan(self.shared.as_ref(), &keys::receipts(name), Position::START, |entry| {
            if mentions(&entry) {
                receipts.extend(serde_json::from_slice::<Receipt>(&entry.bytes));
            }
        })
        .await?;
        let mut found: Option<Message> = None;
        records::scan(self.shared.as_ref(), &keys::inbox(name), Position::START, |entry| {
            if found.is_none() && mentions(&entry) {
                found = serde_json::from_slice::<Message>(&entry.bytes).ok().filter(|message| message.id == id);
            }
        })
        .await?;
        Ok(found.map(|message| {
            let mut ladder = Ladder::default();
            for receipt in receipts.into_iter().filter(|receipt| receipt.message == id) {
                ladder.take(receipt.at, receipt.event);
            }
            (message, ladder)
        }))
    }

    /// Notes events of messages in an inbox.
    pub(crate) async fn receipt(
        &self,
        name: &AgentName,
        ids: &[MessageId],
        event: &Event,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let at = self.machine.now();
        let receipts: Vec<Receipt> = ids.iter().map(|id| Receipt { message: *id, at, event: event.clone() }).collect();
        if receipts.is_empty() {
            return Ok(());
        }
        records::append_all(self.shared.as_ref(), &keys::receipts(name), &receipts, durability).await.map(|_| ())
    }
}

/// Whether bytes occur in others: spares parsing the entries that cannot be meant.
pub(crate) fn contains(hay: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(hay, needle).is_some()
}
