//! The cursor of an inbox: a value that says how far its logs were read and which messages before that are still open,
//! so that the next process reads on from there, however old the oldest open message is.
//!
//! A cursor is only a hint. It names the last entry that was read of each log: if that entry is not where it was, the log
//! lost its end or is another one, and everything is read again. See docs/adr/0019.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::{Entry, Key, Position, Store, StoreError};

use crate::messages::receipt::DeliveryHistory;
use crate::messages::slot::{Header, Slot};

/// Grows whenever the fold of receipts or the records below mean something else. A checkpoint of another number is
/// passed over, and everything since the oldest open message is read.
const FOLD: u32 = 1;
/// How many open messages a checkpoint lists. It begins before the next one, so that what is read again grows only with
/// the mail that is open.
pub(crate) const MOST_LISTED: usize = 100;
/// How many bytes of a log are read at a time.
const STEP: usize = 1 << 20;

/// A place in each of the two logs of an inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Places {
    pub(crate) inbox: Position,
    pub(crate) receipts: Position,
}

/// The cursor of an inbox, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// From where a reader without the checkpoint has to read: no open message is before it, and no receipt of a later
    /// one.
    #[serde(flatten)]
    pub(crate) plain: Places,
    /// The last entries that were read.
    #[serde(default, skip_serializing_if = "LastEntries::is_none")]
    pub(crate) last: LastEntries,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known")]
    pub(crate) checkpoint: Option<Checkpoint>,
}

/// What was known when the logs had been read up to some places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    fold: u32,
    /// How far the logs were read.
    pub(crate) read: Places,
    /// From where they have to be read on. Messages from there on are not in the list.
    pub(crate) from: Places,
    /// The open messages before that, oldest first.
    pub(crate) open: Vec<OpenMessage>,
}

/// The last entry that was read of each log; none if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastEntries {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<EntryMark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) receipt: Option<EntryMark>,
}

impl LastEntries {
    fn is_none(&self) -> bool {
        *self == LastEntries::default()
    }
}

/// Where an entry is, and what tells it from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntryMark {
    at: Position,
    print: u64,
}

/// An open message, with its history up to where the receipts were read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenMessage {
    pub(crate) at: Position,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) first_receipt: Option<Position>,
    pub(crate) header: Header,
    pub(crate) history: DeliveryHistory,
}

impl Cursor {
    /// How far the logs were read for it.
    fn read(&self) -> Places {
        self.checkpoint.as_ref().map_or(self.plain, |checkpoint| checkpoint.read)
    }

    /// Whether it spares a reader as much as another one.
    pub(crate) fn reaches(&self, other: &Cursor) -> bool {
        let (own, other) = (self.read(), other.read());
        own.inbox >= other.inbox && own.receipts >= other.receipts
    }
}

impl Checkpoint {
    pub(crate) fn new(read: Places, from: Places, open: &[&Slot]) -> Checkpoint {
        let open = open.iter().map(|slot| OpenMessage {
            at: slot.at,
            first_receipt: slot.first_receipt,
            header: slot.header.clone(),
            history: slot.history.clone(),
        });
        Checkpoint { fold: FOLD, read, from, open: open.collect() }
    }
}

impl EntryMark {
    pub(crate) fn of(entry: &Entry) -> EntryMark {
        let digest = Sha256::digest(&entry.bytes);
        let mut print = [0; 8];
        print.copy_from_slice(&digest[..8]);
        EntryMark { at: entry.at, print: u64::from_be_bytes(print) }
    }
}

/// Another version's checkpoint is as good as none.
fn known<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Checkpoint>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(from)?;
    let checkpoint = value.and_then(|value| serde_json::from_value::<Checkpoint>(value).ok());
    Ok(checkpoint.filter(|checkpoint| checkpoint.fold == FOLD))
}

/// The result of reading a log on.
#[derive(Default)]
pub(crate) struct ReadOn {
    /// Where the log ends.
    pub(crate) end: Position,
    /// Number of damaged stretches that were skipped.
    pub(crate) torn: usize,
    /// The last entry that was read.
    pub(crate) last: Option<EntryMark>,
    /// Whether the log is the one that was read before, with its end.
    pub(crate) is_same: bool,
}

/// Whether an entry that is not there was retired. If an entry before it is kept, the log lost its end instead.
async fn is_retired(store: &dyn Store, log: &Key, gone: EntryMark) -> Result<bool, StoreError> {
    let first = store.read(log, Position::START, 1).await?.entries;
    Ok(first.first().is_none_or(|first| first.at > gone.at))
}

/// Reads a log from a position to its end, and passes each entry to `take`. If the last entry that was read before is
/// given, this checks that it is still there.
pub(crate) async fn read_on(
    store: &dyn Store,
    log: &Key,
    from: Position,
    mark: Option<EntryMark>,
    mut take: impl FnMut(&Entry) + Send,
) -> Result<ReadOn, StoreError> {
    let mut at = mark.map_or(from, |mark| from.min(mark.at));
    let mut read = ReadOn { end: at, is_same: true, ..ReadOn::default() };
    let (mut last, mut unseen, mut is_before) = (None, mark, false);
    loop {
        let batch = store.read(log, at, STEP).await?;
        // A log that is shorter than it was is read from further back.
        read.is_same &= batch.next >= at && batch.entries.first().is_none_or(|first| first.at >= at);
        read.torn += batch.damage.len();
        for entry in batch.entries {
            if let Some(mark) = unseen {
                if entry.at == mark.at {
                    read.is_same &= EntryMark::of(&entry) == mark;
                } else if entry.at > mark.at {
                    read.is_same &= !is_before && is_retired(store, log, mark).await?;
                }
                is_before |= entry.at < mark.at;
                unseen = unseen.filter(|mark| entry.at < mark.at);
            }
            if entry.at >= from {
                take(&entry);
                last = Some(entry);
            }
        }
        let is_done = batch.at_end || batch.next == at;
        at = batch.next;
        if is_done || !read.is_same {
            break;
        }
    }
    if let Some(mark) = unseen {
        read.is_same &= at > mark.at && !is_before && is_retired(store, log, mark).await?;
    }
    read.is_same &= at >= from;
    read.end = at;
    read.last = last.as_ref().map(EntryMark::of);
    Ok(read)
}
