//! The verbs of messages.

use crate::commands::Command;
use crate::messages::address::AddressError;
use crate::messages::fetch::{AckError, Acknowledged, Fetch, FetchError, Fetched, Lease};
use crate::messages::receipt::DeliveryStatus;
use crate::messages::status::{MeshStatus, MessageStatus, StatusError};
use crate::messages::wake::{Wake, WakeError};
use crate::messages::watch::Mailed;
use crate::messages::{address, fetch, outbox, status, wake, watch};
use crate::names::{AgentName, MessageId};
use crate::sessions::{Principal, SessionRef};
use crate::{Listing, Mesh, Queued};
use store::{Hold, Position, StoreError, Watch};

impl Mesh {
    /// The agent that an address means: exactly that name; or, for a name without a team, the
    /// agent of that name in the asker's own team. Never a guess.
    pub async fn resolve(&self, address: &str, asker: Option<&AgentName>) -> Result<AgentName, AddressError> {
        address::resolve(&self.core, &self.remote, address, asker).await
    }

    /// Says that what was claimed will not be presented after all.
    pub async fn release(&self, claim: Lease) -> Result<(), FetchError> {
        fetch::release(&self.core, claim).await
    }

    /// Says that what was claimed has been presented: `route` and `evidence` show in the receipts.
    /// Also notes the chain of messages that the agent now works on.
    pub async fn confirm(
        &self,
        claim: &Lease,
        status: DeliveryStatus,
        route: &str,
        evidence: Option<serde_json::Value>,
    ) -> Result<(), FetchError> {
        fetch::confirm(&self.core, &self.inboxes, claim, status, route, evidence).await
    }

    /// Takes an agent's mail and claims it for presentation by whoever asked.
    pub async fn fetch(&self, agent: &AgentName, ask: &Fetch) -> Result<Fetched, FetchError> {
        fetch::fetch(&self.core, &self.inboxes, agent, ask).await
    }

    /// The same for a message whose claim has lapsed or was another process's: whoever put it before
    /// the model says so late. Whether it was still unsettled; what is settled stays as it is.
    pub async fn confirm_late(
        &self,
        agent: &AgentName,
        id: MessageId,
        status: DeliveryStatus,
        route: &str,
        evidence: Option<serde_json::Value>,
    ) -> Result<bool, FetchError> {
        fetch::confirm_late(&self.core, &self.inboxes, agent, id, status, route, evidence).await
    }

    /// Acknowledges messages. All are known, or nothing is acknowledged.
    pub async fn acknowledge(&self, agent: &AgentName, ids: &[MessageId]) -> Result<Vec<Acknowledged>, AckError> {
        fetch::acknowledge(&self.core, &self.inboxes, agent, ids).await
    }

    /// What waits on this machine until the servers can be reached, and what came back from there, oldest
    /// first.
    pub async fn queued(&self) -> Result<Vec<Queued>, StoreError> {
        outbox::queued(&self.core).await
    }

    /// Where a message stands. An agent may ask for what it sent or was sent; the person's own
    /// command line for any. What waits on this machine is told also while the servers are out of reach.
    pub async fn message_status(&self, asker: &Principal, id: MessageId) -> Result<MessageStatus, StatusError> {
        status::message_status(&self.core, asker, id).await
    }

    /// How the mesh is doing, or was when this machine last reached its servers.
    pub async fn status(&self) -> Result<MeshStatus, StatusError> {
        status::status(&self.core, &self.inboxes).await
    }

    /// What is reserved, and which commands there are, beside a status; none while the servers are out of reach.
    /// Where they went out of reach since, the status says so from now on.
    pub async fn coordination(&self, status: &mut MeshStatus) -> Result<Option<(Listing, Vec<Command>)>, StoreError> {
        status::coordination(&self.core, status).await
    }

    /// Notes in the event log what became of a wake: by which method it worked, or that none did.
    pub async fn note_wake(&self, wake: &Wake, method: Option<&str>) {
        wake::note_wake(&self.core, wake, method).await
    }

    /// Words a wake. Nothing is stored and nobody is told.
    pub fn wake(
        &self,
        caller: &Principal,
        to: Option<&AgentName>,
        about: Option<MessageId>,
        text: &str,
    ) -> Result<Wake, WakeError> {
        wake::wake(&self.core, caller, to, about, text)
    }

    /// The right to bring mail to a session, for as long as it is kept; none where another process
    /// has it. A connector that can wake a session keeps it, so that no other route is tried beside it.
    pub async fn hold_delivery(&self, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
        watch::hold_delivery(&self.core, session).await
    }

    /// Says when the event log or, where one is named, an inbox may have grown.
    pub async fn watch_growth(&self, inbox: Option<&AgentName>) -> Result<Box<dyn Watch>, StoreError> {
        watch::watch_growth(&self.core, inbox).await
    }

    /// What was stored in an inbox from a place on, a stretch of about so many bytes. Looking changes nothing:
    /// it is claimed from nobody and no receipt is written.
    pub async fn mailed(&self, agent: &AgentName, from: Position, bytes: usize) -> Result<Mailed, StoreError> {
        watch::mailed(&self.core, agent, from, bytes).await
    }

    /// Says when anything may have changed that a status shows: agents and their mail, sessions, reservations,
    /// commands.
    pub async fn watch_status(&self) -> Result<Box<dyn Watch>, StoreError> {
        watch::watch_status(&self.core).await
    }

    /// Says when an inbox may have changed: mail was stored, or something became of it.
    pub async fn watch_inbox(&self, agent: &AgentName) -> Result<Box<dyn Watch>, StoreError> {
        watch::watch_inbox(&self.core, agent).await
    }

    /// Says when a session of a harness on this machine may have changed: it was seen, invited, bound to an
    /// agent, moved to another id, or it ended; or whoever listened for it went away.
    pub async fn watch_sessions(&self, harness: &str) -> Result<Box<dyn Watch>, StoreError> {
        watch::watch_sessions(&self.core, harness).await
    }

    /// Where an inbox ends now.
    pub async fn inbox_end(&self, agent: &AgentName) -> Result<Position, StoreError> {
        watch::inbox_end(&self.core, agent).await
    }
}
