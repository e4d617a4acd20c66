//! Watching an inbox or the sessions of a harness, for those who follow them for a long time.

use store::{Hold, Position, StoreError, Watch};

use crate::Mesh;
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

impl Mesh {
    /// What was stored in an inbox from a place on, a stretch of about so many bytes. Looking changes nothing:
    /// it is claimed from nobody and no receipt is written.
    pub async fn mailed(&self, agent: &AgentName, from: Position, bytes: usize) -> Result<Mailed, StoreError> {
        let batch = self.shared.read(&keys::inbox(agent), from, bytes).await?;
        // A line that is no message costs itself alone, as it does for whoever fetches.
        let message = |entry: &store::Entry| Some((serde_json::from_slice(&entry.bytes).ok()?, entry.next));
        let messages = batch.entries.iter().filter_map(message).collect();
        Ok(Mailed { messages, next: batch.next, at_end: batch.at_end })
    }

    /// Where an inbox ends now.
    pub async fn inbox_end(&self, agent: &AgentName) -> Result<Position, StoreError> {
        self.shared.end(&keys::inbox(agent)).await
    }

    /// Says when the diary or, where one is named, an inbox may have grown.
    pub async fn watch_growth(&self, inbox: Option<&AgentName>) -> Result<Box<dyn Watch>, StoreError> {
        let grown: Vec<_> = std::iter::once(keys::global()).chain(inbox.map(keys::inbox)).collect();
        self.shared.watch(&grown).await
    }

    /// Says when an inbox may have changed: mail was stored, or something became of it.
    pub async fn watch_inbox(&self, agent: &AgentName) -> Result<Box<dyn Watch>, StoreError> {
        self.shared.watch(&[keys::inbox(agent), keys::receipts(agent)]).await
    }

    /// Says when anything may have changed that a status shows: agents and their mail, sessions, reservations,
    /// commands.
    pub async fn watch_status(&self) -> Result<Box<dyn Watch>, StoreError> {
        let shared = self.shared.watch(&[keys::agents(), keys::reservations(), keys::commands()]).await?;
        let local = self.local.watch(&[keys::sessions()]).await?;
        Ok(Box::new(Either(shared, local)))
    }

    /// Says when a session of a harness on this machine may have changed: it was seen, invited, bound to an
    /// agent, moved to another id, or it ended; or whoever listened for it went away.
    pub async fn watch_sessions(&self, harness: &str) -> Result<Box<dyn Watch>, StoreError> {
        let all = [keys::sessions(), keys::invitations(), keys::listeners()];
        self.local.watch(&all.map(|kind| kind.child(harness))).await
    }

    /// The right to bring mail to a session, for as long as it is kept; none where another process
    /// has it. A connector that can wake a session keeps it, so that no other route is tried beside it.
    pub async fn hold_delivery(&self, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
        self.local.hold(&keys::delivery(session)).await
    }
}
