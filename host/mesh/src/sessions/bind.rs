//! Binding an agent to its session, by proof and never by what a model typed.

use crate::agents;
use crate::agents::Presence;
use crate::agents::presence;
use crate::core::Core;
use crate::names::AgentName;
use crate::sessions::identify::bare;
use crate::sessions::record;
use crate::sessions::ticket;
use crate::sessions::{Principal, SessionRef, Ticket};

/// The result of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub session: SessionRef,
    /// The agent, if one is registered.
    pub agent: Option<AgentName>,
    /// The agent's previous session, if it changed.
    pub moved_from: Option<SessionRef>,
}

/// Why a caller could not be bound to a session.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No adapter found a session in the call, and none was named.
    #[error("no session was detected in this call")]
    Nothing,
    /// The session was named without proof.
    #[error("session `{0}` was named without proof that it is yours")]
    Unproven(String),
    /// The session belongs to another agent, which is alive.
    #[error("session `{session}` belongs to `{agent}`, which is alive")]
    Taken { session: String, agent: AgentName },
    /// No such harness.
    #[error("no adapter is named `{0}`")]
    UnknownHarness(String),
    /// This machine did not issue the ticket.
    #[error("the ticket is not valid")]
    Ticket(#[from] crate::TicketError),
    /// The store failed.
    #[error("the binding could not be stored")]
    Store(#[from] store::StoreError),
}

pub(crate) async fn bind(
    core: &Core,
    caller: &Principal,
    named: Option<SessionRef>,
    ticket: Option<Ticket>,
) -> Result<Bound, BindError> {
    let (session, details) = match (named, &caller.session) {
        (None, Some((reference, session))) => (reference.clone(), session.clone()),
        (None, None) => return Err(BindError::Nothing),
        (Some(named), Some((reference, session))) if named == *reference => (named, session.clone()),
        (Some(named), _) => {
            if core.harnesses.get(&named.harness).await.ok().flatten().is_none() {
                return Err(BindError::UnknownHarness(named.harness));
            }
            match ticket {
                Some(ticket) if ticket.session == named => ticket::check_ticket(core, &ticket).await?,
                Some(_) | None => return Err(BindError::Unproven(named.id)),
            }
            let details = bare(&named, caller.profile.project.as_deref());
            (named, details)
        }
    };
    let holder = record::agent_of(core, &session).await?;
    let Some(name) = caller.agent.clone() else {
        return Ok(Bound { session, agent: holder, moved_from: None });
    };
    if let Some(holder) = holder.filter(|holder| *holder != name) {
        let lives = match agents::list::load_agent(core, &holder).await? {
            Some(agent) => presence::presence(core, &agent).await? != Presence::Offline,
            None => false,
        };
        if lives {
            return Err(BindError::Taken { session: session.id, agent: holder });
        }
    }
    let before = agents::list::load_agent(core, &name).await?.and_then(|agent| agent.session);
    record::observe(core, &session.harness, &details, None).await?;
    record::bind_agent(core, &name, &session).await?;
    Ok(Bound { moved_from: before.filter(|before| *before != session), session, agent: Some(name) })
}
