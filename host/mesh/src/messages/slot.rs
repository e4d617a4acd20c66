//! The unsettled messages of an inbox, as they are kept in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{Entry, Position};

use crate::messages::checkpoint::{Checkpoint, OpenMessage};
use crate::messages::receipt::DeliveryHistory;
use crate::messages::{Hold, Message, Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// How many bytes of unsettled messages one inbox keeps in memory, so that recent ones are not read again.
const TEXTS_KEPT: usize = 16 * 1024;

/// One unsettled message.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Its position in the inbox log.
    pub(crate) at: Position,
    /// The position of its first receipt.
    pub(crate) first_receipt: Option<Position>,
    pub(crate) header: Header,
    pub(crate) history: DeliveryHistory,
    /// Receipts before this position are in the history already.
    pub(crate) folded_to: Position,
    /// The whole message, if it is short and recent.
    pub(crate) text: Option<Arc<[u8]>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) id: MessageId,
    pub(crate) at: Instant,
    pub(crate) from: AgentName,
    pub(crate) thread: String,
    #[serde(default)]
    pub(crate) priority: Priority,
    pub(crate) trace: Trace,
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

/// The messages of one read of an inbox.
#[derive(Default)]
pub(crate) struct Came {
    pub(crate) slots: BTreeMap<MessageId, Slot>,
    /// How many bytes of messages are kept in memory, including these.
    pub(crate) kept: usize,
    /// How many entries are not messages.
    pub(crate) unreadable: usize,
}

impl Came {
    pub(crate) fn take(&mut self, entry: &Entry) {
        let Ok(header) = serde_json::from_slice::<Header>(&entry.bytes) else {
            self.unreadable += 1;
            return;
        };
        let text = (self.kept + entry.bytes.len() <= TEXTS_KEPT).then(|| Arc::from(entry.bytes.as_slice()));
        self.kept += text.as_ref().map_or(0, |text: &Arc<[u8]>| text.len());
        let (history, folded_to) = (DeliveryHistory::of_stored(header.held.as_ref()), Position::START);
        let slot = Slot { at: entry.at, first_receipt: None, header, history, folded_to, text };
        self.slots.insert(slot.header.id, slot);
    }
}

impl Slot {
    /// A message of a checkpoint's list.
    pub(crate) fn of(open: &OpenMessage, checkpoint: &Checkpoint) -> Slot {
        let OpenMessage { at, first_receipt, header, history } = open.clone();
        Slot { at, first_receipt, header, history, folded_to: checkpoint.read.receipts, text: None }
    }
}
