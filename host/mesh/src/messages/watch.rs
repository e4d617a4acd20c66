//! Long-lived watches on an inbox or on the sessions of a harness.

use store::{Hold, Key, Position, StoreError, Watch};

use crate::core::Core;
use crate::delivery::serve::Either;
use crate::messages::Message;
use crate::messages::receipt::Receipt;
use crate::names::AgentName;
use crate::sessions::SessionRef;
use crate::storage::keys;

/// A batch of an inbox, as stored, whatever the delivery status of its messages.
#[derive(Clone, Debug)]
pub struct Mailed {
    /// Its messages, each with the position after it.
    pub messages: Vec<(Message, Position)>,
    /// Where the next batch begins.
    pub next: Position,
    /// Whether the log had no more when it was read.
    pub at_end: bool,
}

pub(crate) async fn mailed(core: &Core, agent: &AgentName, from: Position, bytes: usize) -> Result<Mailed, StoreError> {
    let batch = core.shared.read(&keys::inbox(agent), from, bytes).await?;
    // An unreadable line is skipped, as a fetch does.
    let message = |entry: &store::Entry| Some((serde_json::from_slice(&entry.bytes).ok()?, entry.next));
    let messages = batch.entries.iter().filter_map(message).collect();
    Ok(Mailed { messages, next: batch.next, at_end: batch.at_end })
}

/// A batch of the receipts of an inbox.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its receipts, each with the position after it.
    pub receipts: Vec<(Receipt, Position)>,
    /// Where the next batch begins.
    pub next: Position,
    /// Whether the log had no more when it was read.
    pub at_end: bool,
}

pub(crate) async fn received(
    core: &Core,
    agent: &AgentName,
    from: Position,
    bytes: usize,
) -> Result<Received, StoreError> {
    let batch = core.shared.read(&keys::receipts(agent), from, bytes).await?;
    let receipt = |entry: &store::Entry| Some((serde_json::from_slice(&entry.bytes).ok()?, entry.next));
    let receipts = batch.entries.iter().filter_map(receipt).collect();
    Ok(Received { receipts, next: batch.next, at_end: batch.at_end })
}

pub(crate) async fn receipts_end(core: &Core, agent: &AgentName) -> Result<Position, StoreError> {
    core.shared.end(&keys::receipts(agent)).await
}

pub(crate) async fn inbox_end(core: &Core, agent: &AgentName) -> Result<Position, StoreError> {
    core.shared.end(&keys::inbox(agent)).await
}

/// Whose receipts are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptsOf<'a> {
    /// Those of one inbox.
    One(&'a AgentName),
    /// Those of every inbox.
    All,
}

impl ReceiptsOf<'_> {
    fn key(self) -> Key {
        match self {
            ReceiptsOf::One(agent) => keys::receipts(agent),
            ReceiptsOf::All => keys::agents(),
        }
    }
}

pub(crate) async fn watch_growth(
    core: &Core,
    inbox: Option<&AgentName>,
    receipts: Option<ReceiptsOf<'_>>,
) -> Result<Box<dyn Watch>, StoreError> {
    let receipts = receipts.map(ReceiptsOf::key);
    let grown = std::iter::once(keys::global()).chain(inbox.map(keys::inbox)).chain(receipts);
    let grown: Vec<_> = grown.collect();
    core.shared.watch(&grown).await
}

pub(crate) async fn watch_inbox(core: &Core, agent: &AgentName) -> Result<Box<dyn Watch>, StoreError> {
    core.shared.watch(&[keys::inbox(agent), keys::receipts(agent)]).await
}

pub(crate) async fn watch_status(core: &Core) -> Result<Box<dyn Watch>, StoreError> {
    let shared = core.shared.watch(&[keys::agents(), keys::reservations(), keys::commands()]).await?;
    let local = core.local.watch(&[keys::sessions()]).await?;
    Ok(Box::new(Either(shared, local)))
}

pub(crate) async fn watch_sessions(core: &Core, harness: &str) -> Result<Box<dyn Watch>, StoreError> {
    let all = [keys::sessions(), keys::invitations(), keys::listeners()];
    core.local.watch(&all.map(|kind| kind.child(harness))).await
}

pub(crate) async fn hold_delivery(core: &Core, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
    core.local.hold(&keys::delivery(session)).await
}
