//! Watching an inbox or the sessions of a harness, for those who follow them for a long time.

use store::{Hold, Position, StoreError, Watch};

use crate::core::Core;
use crate::delivery::serve::Either;
use crate::messages::Message;
use crate::names::AgentName;
use crate::sessions::SessionRef;
use crate::storage::keys;

/// A stretch of an inbox as it was stored, whatever became of its messages.
#[derive(Clone, Debug)]
pub struct Mailed {
    /// Its messages, each with the place after it.
    pub messages: Vec<(Message, Position)>,
    /// Where the next one begins.
    pub next: Position,
    /// Whether there was no more when it was read.
    pub at_end: bool,
}

pub(crate) async fn mailed(core: &Core, agent: &AgentName, from: Position, bytes: usize) -> Result<Mailed, StoreError> {
    let batch = core.shared.read(&keys::inbox(agent), from, bytes).await?;
    // A line that is no message costs itself alone, as it does for whoever fetches.
    let message = |entry: &store::Entry| Some((serde_json::from_slice(&entry.bytes).ok()?, entry.next));
    let messages = batch.entries.iter().filter_map(message).collect();
    Ok(Mailed { messages, next: batch.next, at_end: batch.at_end })
}

pub(crate) async fn inbox_end(core: &Core, agent: &AgentName) -> Result<Position, StoreError> {
    core.shared.end(&keys::inbox(agent)).await
}

pub(crate) async fn watch_growth(core: &Core, inbox: Option<&AgentName>) -> Result<Box<dyn Watch>, StoreError> {
    let grown: Vec<_> = std::iter::once(keys::global()).chain(inbox.map(keys::inbox)).collect();
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
