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
    /// Binds the caller's agent to a session: the one that was detected, or a named one with its ticket.
    pub async fn bind(
        &self,
        caller: &Principal,
        named: Option<SessionRef>,
        ticket: Option<Ticket>,
    ) -> Result<Bound, BindError> {
        bind::bind(&self.core, caller, named, ticket).await
    }

    /// The sessions that live now, of one harness or of all.
    pub async fn roster(&self, harness: Option<&str>) -> Result<Roster, RosterError> {
        discover::roster(&self.core, harness).await
    }

    /// Forgets a connection that closed. The agent that was bound to it alone counts as gone.
    pub async fn disconnect(&self, connection: &ConnectionId) -> Result<(), IdentifyError> {
        identify::disconnect(&self.core, &self.connections, connection).await
    }

    /// Notes that this process no longer does.
    pub async fn listens_no_more(&self, session: &SessionRef) -> Result<(), StoreError> {
        listeners::listens_no_more(&self.core, session).await
    }

    /// Notes that this process listens for a session, where no living one does already.
    pub async fn listens_for(&self, session: &SessionRef) -> Result<(), StoreError> {
        listeners::listens_for(&self.core, session).await
    }

    /// The live sessions of a harness whose listener has died without a word, and that nobody listens for since.
    pub async fn deserted(&self, harness: &str) -> Result<Vec<SessionRef>, StoreError> {
        listeners::deserted(&self.core, harness).await
    }

    /// One session of this machine, followed to whatever took its place.
    pub async fn session(&self, session: &SessionRef) -> Result<Option<SessionView>, StoreError> {
        record::session(&self.core, session).await
    }

    /// The sessions that this machine has seen and that have not ended.
    pub async fn sessions(&self) -> Result<Vec<SessionView>, StoreError> {
        record::sessions(&self.core).await
    }

    /// Makes a ticket for a session that a hook or a connector has just named.
    pub async fn ticket(&self, session: &SessionRef) -> Result<Ticket, TicketError> {
        ticket::ticket(&self.core, session).await
    }

    /// Whether this machine made a ticket.
    pub async fn check_ticket(&self, ticket: &Ticket) -> Result<(), TicketError> {
        ticket::check_ticket(&self.core, ticket).await
    }
}
