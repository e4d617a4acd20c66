//! One inbox, folded: which messages are unsettled, and the delivery history of each.
//!
//! Settled messages are dropped from memory at once, so that a server can follow many inboxes for a long time.
//! Bodies stay in the store until they are read, except for a few short recent ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use store::{AppendError, Durability, Entry, Expect, Key, Position, ServerTrouble, Store, StoreError};

use crate::core::Core;
use crate::messages::Message;
use crate::messages::checkpoint::{Checkpoint, Cursor, EntryMark, LastEntries, MOST_LISTED, Places, ReadOn, read_on};
use crate::messages::fetch::FetchedMessage;
use crate::messages::open::OpenMessages;
use crate::messages::receipt::{DeliveryHistory, DeliveryStatus, Event, HandOver, Receipt};
use crate::messages::slot::Came;
pub(crate) use crate::messages::slot::{Header, Slot};
use crate::names::{AgentName, MessageId};
use crate::storage::{keys, records};

/// How many messages that were settled last are known without a lookup: an agent acknowledges what it has just fetched.
const MOST_RECENT: usize = 512;
/// After so many settled messages behind an open one, those that no cursor needs are forgotten.
const MOST_SETTLED: usize = 4096;
/// How often to decide anew what to append to a log if others append meanwhile.
pub(crate) const TRIES: usize = 100;

/// An inbox as far as this process has read it.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Unsettled messages. Written by `refresh` and `append_if_unmoved`.
    pub(crate) open: OpenMessages,
    /// Settled messages that come after an unsettled one in the inbox, by position, each with the position of its
    /// first receipt: a process that reads the inbox from there needs those receipts too.
    settled: BTreeMap<Position, Position>,
    /// The messages that were settled last, and whether each was acknowledged.
    recent: VecDeque<(MessageId, bool)>,
    /// How far the logs have been read; none before the first refresh.
    read: Option<Places>,
    /// How many bytes of messages are kept in memory.
    kept: usize,
    /// The last entries that were read.
    last: LastEntries,
    /// Whether this inbox appended receipts after the last one that `last` names.
    is_mark_behind: bool,
    /// The last entries that another process read, if it is not known yet whether they are still there.
    unproven: LastEntries,
    /// Settled messages before this are not known any more, so open ones before it have to be listed in the cursor.
    listed_to: Position,
    /// From where a process without a checkpoint has to read.
    plain: Places,
    /// Number of damaged entries that were skipped.
    pub(crate) damage: usize,
    /// The cursor as last written, to avoid writing it again unchanged.
    written: Option<Cursor>,
    /// Whether the stored cursor is wrong, so that it is replaced even by one that reaches less far.
    is_cursor_void: bool,
}

/// What a reader found of the logs that were read before.
enum StillValid {
    Both,
    /// The receipts lost their end, or are other ones.
    InboxAlone,
    /// The inbox lost its end, or is another one.
    Neither,
}

impl Inbox {
    /// Reads new entries. If a log is not the one that was read before, it is read from its beginning.
    pub(crate) async fn refresh(&mut self, store: &dyn Store, name: &AgentName) -> Result<(), StoreError> {
        if self.read.is_none() {
            self.begin(store, name).await?;
        }
        match self.read_new(store, name).await? {
            StillValid::Both => return Ok(()),
            StillValid::InboxAlone => self.forget_receipts(),
            StillValid::Neither => *self = self.anew(),
        }
        // From the beginning, a log is what it is.
        match self.read_new(store, name).await? {
            StillValid::Both => Ok(()),
            StillValid::InboxAlone | StillValid::Neither => {
                *self = self.anew();
                self.read_new(store, name).await.map(drop)
            }
        }
    }

    /// Begins where the cursor says.
    async fn begin(&mut self, store: &dyn Store, name: &AgentName) -> Result<(), StoreError> {
        let found = match records::load::<Cursor>(store, &keys::cursor(name)).await {
            Ok(found) => found.map(|(_, cursor)| cursor),
            // The cursor is only a hint: without it everything is read.
            Err(StoreError::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        self.plain = found.as_ref().map_or(Places::default(), |cursor| cursor.plain);
        self.last = found.as_ref().map_or(LastEntries::default(), |cursor| cursor.last);
        self.unproven = self.last;
        self.read = Some(self.plain);
        if let Some(checkpoint) = found.as_ref().and_then(|cursor| cursor.checkpoint.as_ref()) {
            self.read = Some(checkpoint.from);
            self.listed_to = checkpoint.from.inbox;
            checkpoint.open.iter().for_each(|open| self.open.insert(Slot::of(open, checkpoint)));
        }
        self.written = found;
        Ok(())
    }

    /// Everything is read again from the beginning.
    fn anew(&self) -> Inbox {
        Inbox { read: Some(Places::default()), damage: self.damage, is_cursor_void: true, ..Inbox::default() }
    }

    /// All receipts are read again. What was settled stays so.
    fn forget_receipts(&mut self) {
        self.open.change_all(|slot| {
            slot.history = DeliveryHistory::of_stored(slot.header.held.as_ref());
            (slot.first_receipt, slot.folded_to) = (None, Position::START);
        });
        self.settled.values_mut().for_each(|first| *first = Position::START);
        let inbox = self.read.unwrap_or_default().inbox;
        self.read = Some(Places { inbox, receipts: Position::START });
        self.plain.receipts = Position::START;
        (self.last.receipt, self.unproven.receipt, self.is_cursor_void) = (None, None, true);
    }

    /// Reads new entries. A receipt is always younger than its message. So if receipts are read before messages,
    /// every message read has either all its receipts here or later ones; if both are read at once, the inbox is
    /// read further if a receipt belongs to a message that is not known here.
    async fn read_new(&mut self, store: &dyn Store, name: &AgentName) -> Result<StillValid, StoreError> {
        let from = self.read.unwrap_or_default();
        // Both at once, because servers take a round trip for each read.
        let (inbox, receipts) = (keys::inbox(name), keys::receipts(name));
        let receipts_are_read = AtomicBool::new(false);
        let mut came = Came { kept: self.kept, ..Came::default() };
        let mut entries: Vec<(Position, Result<Receipt, serde_json::Error>)> = Vec::new();
        let LastEntries { message, receipt } = self.unproven;
        let (receipts, messages) = tokio::join!(
            async {
                let take = |entry: &Entry| entries.push((entry.at, serde_json::from_slice(&entry.bytes)));
                let read = read_on(store, &receipts, from.receipts, receipt, take).await?;
                receipts_are_read.store(true, Ordering::Relaxed);
                Ok::<_, StoreError>(read)
            },
            async {
                let in_order = receipts_are_read.load(Ordering::Relaxed);
                let read = read_on(store, &inbox, from.inbox, message, |entry| came.take(entry)).await?;
                Ok::<_, StoreError>((in_order, read))
            },
        );
        let (receipts, (in_order, mut messages)) = (receipts?, messages?);
        let unknown =
            |receipt: &Receipt| !self.open.contains(receipt.message) && !came.slots.contains_key(&receipt.message);
        if !in_order && entries.iter().filter_map(|(_, receipt)| receipt.as_ref().ok()).any(unknown) {
            let more = read_on(store, &inbox, messages.end, None, |entry| came.take(entry)).await?;
            let ReadOn { end, torn, last, is_same } = more;
            messages = ReadOn {
                end,
                torn: messages.torn + torn,
                last: last.or(messages.last),
                is_same: messages.is_same && is_same,
            };
        }
        match (messages.is_same, receipts.is_same) {
            (true, true) => {}
            (true, false) => return Ok(StillValid::InboxAlone),
            (false, _) => return Ok(StillValid::Neither),
        }
        self.unproven = LastEntries::default();
        self.last.message = messages.last.or(self.last.message);
        self.is_mark_behind &= receipts.last.is_none();
        self.last.receipt = receipts.last.or(self.last.receipt);
        self.kept = came.kept;
        for slot in came.slots.into_values() {
            self.forget(slot.header.id);
            self.open.insert(slot);
        }
        self.damage += receipts.torn + messages.torn + came.unreadable;
        for (at, receipt) in entries {
            match receipt {
                Ok(receipt) => self.take(at, receipt),
                Err(_) => self.damage += 1,
            }
        }
        let read = Places { inbox: messages.end, receipts: receipts.end };
        self.read = Some(read);
        if self.settled.len() > MOST_SETTLED {
            self.forget_settled(read);
        }
        Ok(StillValid::Both)
    }

    fn take(&mut self, at: Position, receipt: Receipt) {
        let (id, event, receipt_at) = (receipt.message, receipt.event, receipt.at);
        let acknowledged = matches!(event, Event::Status { status: DeliveryStatus::Acknowledged, .. });
        let settles = self.open.change(id, |slot| {
            if at < slot.folded_to {
                return false;
            }
            slot.first_receipt.get_or_insert(at);
            slot.history.take(receipt_at, event);
            slot.history.is_settled()
        });
        if settles == Some(true) {
            self.settle(id, at, acknowledged);
        } else if settles.is_none()
            && acknowledged
            && let Some(known) = self.recent.iter_mut().find(|(recent, _)| *recent == id)
        {
            known.1 = true;
        }
    }

    /// Drops a message that its last receipt settled.
    fn settle(&mut self, id: MessageId, at: Position, acknowledged: bool) {
        let Some(slot) = self.forget(id) else { return };
        self.settled.insert(slot.at, slot.first_receipt.unwrap_or(at));
        self.recent.push_back((id, acknowledged));
        if self.recent.len() > MOST_RECENT {
            self.recent.pop_front();
        }
    }

    fn forget(&mut self, id: MessageId) -> Option<Slot> {
        let slot = self.open.remove(id)?;
        self.kept = self.kept.saturating_sub(slot.text.as_ref().map_or(0, |text| text.len()));
        Some(slot)
    }

    /// Whether a message was acknowledged, if that is known without looking it up.
    pub(crate) fn is_acknowledged(&self, id: MessageId) -> Option<bool> {
        if self.open.contains(id) {
            return Some(false);
        }
        self.recent.iter().find(|(recent, _)| *recent == id).map(|(_, acknowledged)| *acknowledged)
    }

    /// Drops a message that was there and can no longer be read.
    pub(crate) fn lose(&mut self, id: MessageId) {
        if self.forget(id).is_some() {
            self.damage += 1;
            self.is_cursor_void = true;
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
                self.read = Some(Places { receipts: end, ..read });
                self.is_mark_behind = true;
                Ok(true)
            }
            Err(AppendError::Moved) => {
                // Perhaps nobody appended, and the logs lost their end: the next refresh looks for what was read last.
                self.unproven = self.last;
                if store.end(&keys::receipts(name)).await? < read.receipts {
                    self.forget_receipts();
                }
                Ok(false)
            }
            Err(AppendError::Store(error)) => Err(error),
        }
    }

    /// Writes the cursor, so that the next process need not read settled messages.
    pub(crate) async fn leave_cursor(&mut self, store: &dyn Store, name: &AgentName) {
        let Some(read) = self.read else { return };
        if self.is_mark_behind {
            // The next process must notice if what was appended here is lost.
            let last = store.read_back(&keys::receipts(name), read.receipts, 1).await;
            let Some(mark) = last.ok().and_then(|batch| batch.entries.last().map(EntryMark::of)) else { return };
            (self.last.receipt, self.is_mark_behind) = (Some(mark), false);
        }
        let cursor = self.cursor(read);
        if self.written.as_ref() == Some(&cursor) {
            return;
        }
        let is_void = self.is_cursor_void;
        // A concurrent writer's cursor may be older or newer; both are valid hints.
        let newer = |old: Option<Cursor>| match old.filter(|old| old.reaches(&cursor) && !is_void) {
            Some(_) => (records::Next::Keep, ()),
            None => (records::Next::Put(cursor.clone()), ()),
        };
        match records::update(store, &keys::cursor(name), Durability::Process, newer).await {
            Ok(()) => (self.written, self.is_cursor_void) = (Some(cursor), false),
            Err(error) => tracing::debug!(agent = %name, %error, "the cursor was not written; it is only a hint"),
        }
    }

    /// The cursor for what has been read. Open messages before a settled one are listed, so that the next process reads
    /// only from there on.
    fn cursor(&mut self, read: Places) -> Cursor {
        let from = self.forget_settled(read);
        let open: Vec<&Slot> = self.open.before(from.inbox).collect();
        self.plain = match open.first() {
            None => from,
            // Of the settled messages after it, the receipts are not known any more.
            Some(first) => Places { inbox: first.at, receipts: self.plain.receipts },
        };
        Cursor { plain: self.plain, last: self.last, checkpoint: Some(Checkpoint::new(read, from, &open)) }
    }

    /// The places from where the next process has to read if it gets a list of the open messages before them. Settled
    /// messages before them are forgotten.
    fn forget_settled(&mut self, read: Places) -> Places {
        let last_settled = self.settled.last_key_value().map_or(Position::START, |(at, _)| *at);
        let already = self.open.before(self.listed_to).count();
        let listed = self.open.before(last_settled).take(MOST_LISTED).count().max(already);
        let inbox = self.open.in_order().nth(listed).map_or(read.inbox, |slot| slot.at);
        self.listed_to = inbox;
        self.settled = self.settled.split_off(&inbox);
        let later = self.open.first_receipt_from(inbox).into_iter();
        let receipts = later.chain(self.settled.values().copied()).min().unwrap_or(read.receipts);
        Places { inbox, receipts }
    }

    /// What was handed over and is not proven, with where and when.
    pub(crate) fn handed_over(&self) -> BTreeMap<MessageId, HandOver> {
        let slots = self.open.engaged();
        slots.filter_map(|slot| Some((slot.header.id, slot.history.handed.clone()?))).collect()
    }
}

/// A message as it is about to be presented.
pub(crate) fn presented((slot, message): (Slot, Message)) -> FetchedMessage {
    FetchedMessage { at: slot.at, message, part: None, history: slot.history }
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

/// Others appended to a log before each of [`TRIES`] tries. A later try may succeed, so this is no failure for good.
pub(crate) fn contended(log: &Key) -> StoreError {
    let why = format!("its end was another one at each of {TRIES} tries");
    StoreError::server("could not append to", log, ServerTrouble::Other, why)
}

/// Whether the needle occurs in the bytes. Avoids parsing entries that cannot match.
pub(crate) fn contains(hay: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(hay, needle).is_some()
}
