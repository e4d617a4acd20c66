//! The verbs of agents.

use crate::agents::adopt::{AdoptError, Adopted};
use crate::agents::heartbeat::HeartbeatError;
use crate::agents::list::Found;
use crate::agents::offline_notice::OfflineNoticeError;
use crate::agents::{AgentSummary, adopt, heartbeat, offline_notice, presence};
use crate::names::AgentName;
use crate::sessions::{ConnectionId, Principal, Sign};
use crate::{FindError, Mesh, agents};

impl Mesh {
    /// Brings an agent of another machine here, of which nothing was heard for as long as an agent may be silent,
    /// or of which its machine says that it has gone. Who registers under its name here next is it.
    pub async fn adopt(&self, name: &AgentName) -> Result<Adopted, AdoptError> {
        adopt::adopt(&self.core, &self.inboxes, name).await
    }

    /// Notes that the caller's agent lives, and what it is doing where it says so. An empty task is none.
    pub async fn heartbeat(&self, caller: &Principal, task: Option<&str>) -> Result<AgentSummary, HeartbeatError> {
        heartbeat::heartbeat(&self.core, &self.inboxes, caller, task).await
    }

    /// Returns when one of these is no longer here, away or offline: at once, or as soon as it is. Gives those. Who is
    /// not registered is passed over. Cancel it to stop waiting.
    pub async fn stale(&self, names: &[AgentName]) -> Result<Vec<AgentSummary>, FindError> {
        heartbeat::stale(&self.core, &self.inboxes, names).await
    }

    /// Returns when all of these are here, busy or idle: at once, or as soon as they are. Gives them in the same
    /// order. Cancel it to stop waiting.
    pub async fn here(&self, names: &[AgentName]) -> Result<Vec<AgentSummary>, FindError> {
        heartbeat::here(&self.core, &self.inboxes, names).await
    }

    /// Agents whose name, role, task, project, harness, model or skills match a query, best first.
    /// An empty query matches everybody.
    pub async fn find(&self, query: &str, limit: usize) -> Result<Vec<Found>, FindError> {
        agents::list::find(&self.core, &self.inboxes, query, limit).await
    }

    /// One agent.
    pub async fn agent(&self, name: &AgentName) -> Result<Option<AgentSummary>, FindError> {
        agents::list::agent(&self.core, &self.inboxes, name).await
    }

    /// Every agent, in the order of names. Where the servers cannot be reached, as this machine last saw
    /// them.
    pub async fn agents(&self) -> Result<Vec<AgentSummary>, FindError> {
        agents::list::agents(&self.core, &self.inboxes).await
    }

    /// Has a message sent to the caller's agent as soon as each of these is no longer here, once.
    pub async fn notify_when_offline(
        &self,
        caller: &Principal,
        agents: &[AgentName],
    ) -> Result<(), OfflineNoticeError> {
        offline_notice::notify_when_offline(&self.core, caller, agents).await
    }

    /// Notes whether the client of a connection over HTTP holds a stream open. While it does, it counts
    /// as here however quiet it is; without one, its calls alone show that it is.
    pub async fn note_stream(&self, connection: &ConnectionId, sign: Sign) -> Result<(), store::StoreError> {
        presence::note_stream(&self.core, &self.connections, connection, sign).await
    }
}
