//! Watching an inbox or the sessions of a harness, for those who follow them for a long time.

use store::{Hold, StoreError, Watch};

use crate::names::AgentName;
use crate::session::SessionRef;
use crate::{Mesh, keys};

impl Mesh {
    /// Says when an inbox may have changed: mail was stored, or something became of it.
    pub async fn watch_inbox(&self, agent: &AgentName) -> Result<Box<dyn Watch>, StoreError> {
        self.shared.watch(&[keys::inbox(agent), keys::receipts(agent)]).await
    }

    /// Says when a session of a harness on this machine may have changed: it was seen, bound to an
    /// agent, moved to another id, or it ended.
    pub async fn watch_sessions(&self, harness: &str) -> Result<Box<dyn Watch>, StoreError> {
        self.local.watch(&[keys::sessions().child(harness)]).await
    }

    /// The right to bring mail to a session, for as long as it is kept; none where another process
    /// has it. A connector that can wake a session keeps it, so that no other route is tried beside it.
    pub async fn hold_delivery(&self, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
        self.local.hold(&keys::delivery(session)).await
    }
}
