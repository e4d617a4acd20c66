//! The verbs of agents.

use crate::agents::adopt::{AdoptError, Adopted};
use crate::agents::find::AgentMatch;
use crate::agents::heartbeat::HeartbeatError;
use crate::agents::offline_notice::OfflineNoticeError;
use crate::agents::pause::PauseError;
use crate::agents::retention::{self, ForgetError};
use crate::agents::{AgentSummary, adopt, heartbeat, offline_notice, pause, presence};
use crate::names::AgentName;
use crate::sessions::{ConnectionId, Principal, Sign};
use crate::storage::keys;
use crate::{FindError, Mesh, agents};
use store::{StoreError, Watch};

impl Mesh {
    /// Removes an agent of this machine that is gone, has got its mail, holds nothing and was asked for nothing.
    pub async fn forget(&self, agent: &AgentName) -> Result<(), ForgetError> {
        retention::forget(&self.core, &self.inboxes, agent).await
    }

    /// Pauses these agents of this machine, or all of it, until they are resumed. Returns those that were not paused. The
    /// caller has made sure that it is the user who asks.
    pub async fn pause(&self, names: Option<&[AgentName]>) -> Result<Vec<AgentName>, PauseError> {
        pause::pause(self, names).await
    }

    /// Lets these agents, or all, go on. What has waited for them is delivered, in order. Returns those that were paused.
    pub async fn resume(&self, names: Option<&[AgentName]>) -> Result<Vec<AgentName>, StoreError> {
        pause::resume(self, names).await
    }

    /// Whether the user has paused an agent: nothing is given to it then.
    pub async fn is_paused(&self, name: &AgentName) -> Result<bool, StoreError> {
        pause::is_paused(&self.core, name).await
    }

    /// Watches which agents are paused from now on.
    pub async fn watch_pauses(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.core.local.watch(&[keys::pauses()]).await
    }

    /// Moves an agent from another machine to this one. It must be away, or offline by its machine's own word. The next
    /// caller that registers its name here becomes this agent.
    pub async fn adopt(&self, name: &AgentName) -> Result<Adopted, AdoptError> {
        adopt::adopt(&self.core, &self.inboxes, name).await
    }

    /// Notes a sign of life of the caller's agent, and its task if given. An empty task clears it.
    pub async fn heartbeat(&self, caller: &Principal, task: Option<&str>) -> Result<AgentSummary, HeartbeatError> {
        heartbeat::heartbeat(&self.core, &self.inboxes, caller, task).await
    }

    /// Waits until at least one of these agents is away or offline, and returns those. Skips unregistered names. Cancel
    /// it to stop waiting.
    pub async fn stale(&self, names: &[AgentName]) -> Result<Vec<AgentSummary>, FindError> {
        heartbeat::stale(&self.core, &self.inboxes, names).await
    }

    /// Waits until all of these agents are here (busy, needs-input or idle), and returns them in the same order. Cancel
    /// it to stop waiting.
    pub async fn here(&self, names: &[AgentName]) -> Result<Vec<AgentSummary>, FindError> {
        heartbeat::here(&self.core, &self.inboxes, names).await
    }

    /// Agents whose name, role, task, project, harness, model or skills match a query, best first.
    /// An empty query matches every agent.
    pub async fn find(&self, query: &str, limit: usize) -> Result<Vec<AgentMatch>, FindError> {
        agents::find::find(&self.core, &self.inboxes, query, limit).await
    }

    /// One agent, if it is registered.
    pub async fn agent(&self, name: &AgentName) -> Result<Option<AgentSummary>, FindError> {
        agents::list::agent(&self.core, &self.inboxes, name).await
    }

    /// Every agent, sorted by name. If the servers are unreachable, as this machine last saw them.
    pub async fn agents(&self) -> Result<Vec<AgentSummary>, FindError> {
        agents::list::agents(&self.core, &self.inboxes).await
    }

    /// Every agent, sorted by name, sooner than `agents`: its mail is not counted, so that `waiting` is 0.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn agents_without_mail(&self) -> Result<Vec<AgentSummary>, FindError> {
        agents::list::agents_without_mail(&self.core, &self.inboxes).await
    }

    /// Sends the caller's agent one message for each of these agents, as soon as that agent is away or offline.
    pub async fn notify_when_offline(
        &self,
        caller: &Principal,
        agents: &[AgentName],
    ) -> Result<(), OfflineNoticeError> {
        offline_notice::notify_when_offline(&self.core, caller, agents).await
    }

    /// Notes whether the client of an HTTP connection holds a stream open. While it does, it counts as here even if it
    /// is silent; without a stream, only its calls show that it is here.
    pub async fn note_stream(&self, connection: &ConnectionId, sign: Sign) -> Result<(), store::StoreError> {
        presence::note_stream(&self.core, &self.connections, connection, sign).await
    }
}
