//! The verbs of sessions.

use crate::Mesh;
use crate::sessions::bind::{BindError, Bound};
use crate::sessions::discover::{Roster, RosterError};
use crate::sessions::identify::IdentifyError;
use crate::sessions::record::SessionView;
use crate::sessions::ticket::TicketError;
use crate::sessions::{
    ConnectionId, Principal, SessionRef, Ticket, bind, discover, identify, listeners, record, ticket,
};
use store::StoreError;

impl Mesh {
    /// Binds the caller's agent to a session: the detected one, or a named one with its ticket.
    pub async fn bind(
        &self,
        caller: &Principal,
        named: Option<SessionRef>,
        ticket: Option<Ticket>,
    ) -> Result<Bound, BindError> {
        bind::bind(&self.core, caller, named, ticket).await
    }

    /// The live sessions, of one harness or of all.
    pub async fn roster(&self, harness: Option<&str>) -> Result<Roster, RosterError> {
        discover::roster(&self.core, harness).await
    }

    /// Notes which process the client of a connection is, if that process started this one.
    pub fn connected(&self, connection: &ConnectionId, client: u32) {
        self.connections.set_client(connection, client);
    }

    /// Forgets a closed connection. An agent that was bound only to it counts as offline.
    pub async fn disconnect(&self, connection: &ConnectionId) -> Result<(), IdentifyError> {
        identify::disconnect(&self.core, &self.connections, connection).await
    }

    /// Notes that this process no longer listens for a session.
    pub async fn listens_no_more(&self, session: &SessionRef) -> Result<(), StoreError> {
        listeners::listens_no_more(&self.core, session).await
    }

    /// Notes that this process listens for a session, unless another live process already does.
    pub async fn listens_for(&self, session: &SessionRef) -> Result<(), StoreError> {
        listeners::listens_for(&self.core, session).await
    }

    /// How often a process that listens for a session has to call [`Mesh::listens_for`] again: readers in another PID
    /// namespace have nothing else to go by.
    pub fn listening_interval(&self) -> std::time::Duration {
        listeners::interval(&self.core)
    }

    /// The live sessions of a harness whose listener died without deregistering and was not replaced.
    pub async fn deserted(&self, harness: &str) -> Result<Vec<SessionRef>, StoreError> {
        listeners::deserted(&self.core, harness).await
    }

    /// One session of this machine, or the session that succeeded it.
    pub async fn session(&self, session: &SessionRef) -> Result<Option<SessionView>, StoreError> {
        record::session(&self.core, session).await
    }

    /// The sessions that this machine has seen and that have not ended.
    pub async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        record::sessions(&self.core).await
    }

    /// Ends every session of a harness whose adapter was removed: nothing can be heard of them any more. Returns their
    /// number.
    pub async fn end_sessions_of(&self, harness: &str) -> Result<usize, StoreError> {
        record::end_all_of(&self.core, harness).await
    }

    /// Issues a ticket for a session that a hook or a connector has just named.
    pub async fn ticket(&self, session: &SessionRef) -> Result<Ticket, TicketError> {
        ticket::ticket(&self.core, session).await
    }

    /// Checks that this machine issued a ticket.
    pub async fn check_ticket(&self, ticket: &Ticket) -> Result<(), TicketError> {
        ticket::check_ticket(&self.core, ticket).await
    }
}
