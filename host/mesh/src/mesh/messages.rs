//! The verbs of messages.

use std::collections::BTreeMap;

use crate::commands::Command;
use crate::messages::address::AddressError;
use crate::messages::all_receipts::{GrownReceipts, ReceiptCounts};
use crate::messages::fetch::{AckError, Acknowledged, Fetch, FetchError, Fetched, Lease};
use crate::messages::id_prefix::IdError;
use crate::messages::receipt::DeliveryStatus;
use crate::messages::status::{MeshStatus, MessageStatus, StatusError};
use crate::messages::wake::{Wake, WakeError};
use crate::messages::watch::{Mailed, ReceiptsOf, Received};
use crate::messages::{Message, address, all_receipts, fetch, hand_over, id_prefix, kept, outbox, status, wake, watch};
use crate::names::{AgentName, MessageId};
use crate::sessions::{Principal, SessionRef};
use crate::{Mesh, Queued, RepositoryReservations};
use store::{Hold, Position, StoreError, Watch};

impl Mesh {
    /// The agent that an address names: exactly that name; or, for a name without a team, the agent of that name in the
    /// asker's own team. Never a guess.
    pub async fn resolve(&self, address: &str, asker: Option<&AgentName>) -> Result<AgentName, AddressError> {
        address::resolve(&self.core, &self.remote, address, asker).await
    }

    /// Gives up a lease: its messages will not be presented after all.
    pub async fn release(&self, lease: Lease) -> Result<(), FetchError> {
        Ok(fetch::release(&self.core, lease).await?)
    }

    /// Gives up a lease whose messages were passed on to a program that has gone: they may have been read, and are
    /// presented again marked so.
    pub async fn release_passed_on(&self, lease: Lease) -> Result<(), FetchError> {
        Ok(fetch::release_passed_on(&self.core, lease).await?)
    }

    /// Notes that leased messages go to a program that presents them: what their agent writes from now on goes on with
    /// their chain.
    pub async fn passes_on(&self, lease: &Lease) -> Result<(), FetchError> {
        Ok(fetch::note_chain(&self.core, lease).await?)
    }

    /// Notes that the leased messages were presented; the receipts record `route` and `evidence`. Also notes the chain
    /// of messages that the agent now works on.
    pub async fn confirm(
        &self,
        lease: &Lease,
        status: DeliveryStatus,
        route: &str,
        evidence: Option<serde_json::Value>,
    ) -> Result<(), FetchError> {
        Ok(fetch::confirm(&self.core, &self.inboxes, lease, status, route, evidence).await?)
    }

    /// Records that the reply to a fetch was written out to a session, or to a caller without one.
    pub async fn fetched(&self, lease: &Lease, by: Option<&SessionRef>) -> Result<(), FetchError> {
        Ok(hand_over::fetched(&self.core, &self.inboxes, lease, by).await?)
    }

    /// Takes an agent's mail and leases it to the caller for presentation.
    pub async fn fetch(&self, agent: &AgentName, ask: &Fetch) -> Result<Fetched, FetchError> {
        fetch::fetch(&self.core, &self.inboxes, agent, ask).await
    }

    /// Like [`Mesh::confirm`], for a message whose lease expired or belonged to another process: its presenter reports
    /// late. Returns whether the message was still unsettled; a settled one does not change.
    pub async fn confirm_late(
        &self,
        agent: &AgentName,
        id: MessageId,
        status: DeliveryStatus,
        route: &str,
        evidence: Option<serde_json::Value>,
    ) -> Result<bool, FetchError> {
        Ok(fetch::confirm_late(&self.core, &self.inboxes, agent, id, status, route, evidence).await?)
    }

    /// Acknowledges messages. If one id is unknown, acknowledges none.
    pub async fn acknowledge(&self, agent: &AgentName, ids: &[MessageId]) -> Result<Vec<Acknowledged>, AckError> {
        fetch::acknowledge(&self.core, &self.inboxes, agent, ids).await
    }

    /// Messages that wait on this machine until the servers are reachable, and those that the servers returned, oldest
    /// first.
    pub async fn queued(&self) -> Result<Vec<Queued>, StoreError> {
        outbox::queued(&self.core).await
    }

    /// The id of a message or command from what was typed: the id, or its first characters if only one id that the
    /// asker may know begins so.
    pub async fn id_of(&self, asker: &Principal, typed: &str) -> Result<MessageId, IdError> {
        id_prefix::id_of(&self.core, asker, typed).await
    }

    /// A message's status and history. An agent may ask about messages that it sent or received; the user's own command
    /// line about any. Messages in this machine's outbox are known even while the servers are unreachable.
    pub async fn message_status(&self, asker: &Principal, id: MessageId) -> Result<MessageStatus, StatusError> {
        status::message_status(&self.core, asker, id).await
    }

    /// The state of the mesh now, or when this machine last reached its servers.
    pub async fn status(&self) -> Result<MeshStatus, StatusError> {
        status::status(&self.core, &self.inboxes).await
    }

    /// The reservations and commands that belong to a status; `None` while the servers are unreachable. If they became
    /// unreachable since, marks that in `status`.
    pub async fn coordination(
        &self,
        status: &mut MeshStatus,
    ) -> Result<Option<(Vec<RepositoryReservations>, Vec<Command>)>, StoreError> {
        status::coordination(&self.core, status).await
    }

    /// Notes in the event log which method delivered a wake, or that none did.
    pub async fn note_wake(&self, wake: &Wake, method: Option<&str>) {
        wake::note_wake(&self.core, wake, method).await
    }

    /// Composes a wake. Stores nothing and sends nothing.
    pub fn wake(
        &self,
        caller: &Principal,
        to: Option<&AgentName>,
        about: Option<MessageId>,
        text: &str,
    ) -> Result<Wake, WakeError> {
        wake::wake(&self.core, caller, to, about, text)
    }

    /// The exclusive right to deliver mail to a session, until dropped; `None` if another process has it. A connector
    /// that can wake a session holds it, so that no other route is tried at the same time.
    pub async fn hold_delivery(&self, session: &SessionRef) -> Result<Option<Box<dyn Hold>>, StoreError> {
        watch::hold_delivery(&self.core, session).await
    }

    /// Watches for growth of the event log and, if given, of an inbox and of receipts.
    pub async fn watch_growth(
        &self,
        inbox: Option<&AgentName>,
        receipts: Option<ReceiptsOf<'_>>,
    ) -> Result<Box<dyn Watch>, StoreError> {
        watch::watch_growth(&self.core, inbox, receipts).await
    }

    /// The receipts of an inbox from a position on, about `bytes` of them. Only reads.
    pub async fn received(&self, agent: &AgentName, from: Position, bytes: usize) -> Result<Received, StoreError> {
        watch::received(&self.core, agent, from, bytes).await
    }

    /// The current end position of an inbox's receipts.
    pub async fn receipts_end(&self, agent: &AgentName) -> Result<Position, StoreError> {
        watch::receipts_end(&self.core, agent).await
    }

    /// The current end of each inbox's receipts; without those that never had any.
    pub async fn ends_of_receipts(&self) -> Result<BTreeMap<AgentName, Position>, StoreError> {
        all_receipts::ends(&self.core).await
    }

    /// Which inboxes have more receipts than were read of each. `known` is what the last look left. Only reads.
    pub async fn grown_receipts(
        &self,
        read: &BTreeMap<AgentName, Position>,
        known: &mut ReceiptCounts,
    ) -> Result<GrownReceipts, StoreError> {
        all_receipts::grown(&self.core, read, known).await
    }

    /// A message as it is in an inbox, settled or not; none if it is not there, or no more.
    pub async fn message_in(&self, agent: &AgentName, id: MessageId) -> Result<Option<Message>, StoreError> {
        Ok(kept::one_of(&self.core, agent, id).await?.map(|kept| kept.message))
    }

    /// The messages of an inbox from a position on, about `bytes` of them. Only reads: takes no lease and writes no
    /// receipt.
    pub async fn mailed(&self, agent: &AgentName, from: Position, bytes: usize) -> Result<Mailed, StoreError> {
        watch::mailed(&self.core, agent, from, bytes).await
    }

    /// Watches for changes of anything that a status shows: agents and their mail, sessions, reservations, commands.
    pub async fn watch_status(&self) -> Result<Box<dyn Watch>, StoreError> {
        watch::watch_status(&self.core).await
    }

    /// Watches an inbox for new mail and new receipts.
    pub async fn watch_inbox(&self, agent: &AgentName) -> Result<Box<dyn Watch>, StoreError> {
        watch::watch_inbox(&self.core, agent).await
    }

    /// Watches the sessions of a harness on this machine: one was seen, invited, bound to an agent, moved to another
    /// id, or ended; or its listener went away.
    pub async fn watch_sessions(&self, harness: &str) -> Result<Box<dyn Watch>, StoreError> {
        watch::watch_sessions(&self.core, harness).await
    }

    /// The current end position of an inbox.
    pub async fn inbox_end(&self, agent: &AgentName) -> Result<Position, StoreError> {
        watch::inbox_end(&self.core, agent).await
    }
}
