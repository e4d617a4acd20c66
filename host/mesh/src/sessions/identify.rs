//! Identifies the caller, once per call, from evidence and never from what a model typed.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::Mesh;
use crate::agents;
use crate::agents::adopt;
use crate::agents::presence;
use crate::agents::remote_cache::RemoteCache;
use crate::agents::remote_presence;
use crate::agents::{Origin, Profile};
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::harness::Harness;
use crate::ports::machine::Instant;
use crate::sessions::connections::Connections;
use crate::sessions::record;
use crate::sessions::{
    Activity, Call, Caller, Certainty, ConnectionId, Detection, Evidence, Principal, Session, SessionRef, Transport,
    ticket,
};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// The harness name of pseudo-sessions: the connections of clients without sessions.
pub(crate) const CONNECTION: &str = "generic";

/// Why a caller could not be identified.
#[derive(Debug, thiserror::Error)]
pub enum IdentifyError {
    /// This machine did not issue the ticket.
    #[error("the ticket that came with this call is not valid")]
    Ticket(#[from] crate::TicketError),
    /// The key is not an agent's.
    #[error("the agent key that came with this call is not valid")]
    Key,
    /// A command line named an agent that was not registered from a command line.
    #[error("`{0}` was not registered from the command line, so the command line cannot act for it")]
    NotYours(AgentName),
    /// A command line named an agent of another machine.
    #[error("`{agent}` lives on the machine `{machine}`, and only a command line there can act for it")]
    Elsewhere {
        agent: AgentName,
        /// The machine where it was registered.
        machine: String,
    },
    /// A command line named an agent that does not exist.
    #[error("{}", crate::names::no_such_agent(.0))]
    Unknown(AgentName),
    /// The store failed.
    #[error("the store could not be read")]
    Store(#[from] store::StoreError),
}

impl Mesh {
    /// Identifies the caller. A caller that has not registered has no agent yet; that is no error.
    pub async fn identify(&self, call: &Call) -> Result<Principal, IdentifyError> {
        let outcome = self.identify_once(call).await;
        // Identifying reads the shared store, so by now it is open. If it is another one, who calls may change.
        if self.notice_stores().await { self.identify_once(call).await } else { outcome }
    }

    async fn identify_once(&self, call: &Call) -> Result<Principal, IdentifyError> {
        if let Some(ticket) = &call.ticket {
            ticket::check_ticket(&self.core, ticket).await?;
        }
        let detected = detect(&self.core, call).await;
        let mut profile = Profile {
            harness: detected.as_ref().map(|(harness, _)| harness.about().harness.clone()),
            program: program(&call.caller),
            project: call.caller.workdir.clone(),
            ..Profile::default()
        };
        if let Some(ticket) = &call.ticket {
            profile.harness = Some(ticket.session.harness.clone());
        }
        let known = match (detected, &call.ticket) {
            (Some((harness, detection)), _) if detection.certainty == Certainty::Certain => {
                let per_connection = harness.about().connection_per_session;
                let mut session = detection.session;
                // The client keeps the session's record open, so it runs the session.
                if session.process.is_none() && harness.traces().record.is_some() {
                    session.process = self.connections.client(call.connection.as_ref());
                }
                Some((named(harness.as_ref(), session), Evidence::Call, per_connection))
            }
            (_, Some(ticket)) => {
                let session = as_last_seen(&self.core, &ticket.session, call.caller.workdir.as_deref()).await?;
                Some(((ticket.session.clone(), session), Evidence::Ticket, false))
            }
            (Some((harness, detection)), None) => {
                let per_connection = harness.about().connection_per_session;
                Some((named(harness.as_ref(), detection.session), Evidence::Connection, per_connection))
            }
            (None, None) => None,
        };
        let owns_connection = known.as_ref().is_none_or(|(_, _, per_connection)| *per_connection);
        let caller = |session, agent, evidence| Principal {
            session,
            connection: call.connection.clone(),
            agent,
            evidence,
            owns_connection,
            transport: call.caller.transport,
            profile: profile.clone(),
        };
        if call.caller.transport == Transport::CommandLine {
            return identify_command_line(&self.core, &self.remote, call, known.map(|(session, ..)| session), caller)
                .await;
        }
        if let Some((session, evidence, per_connection)) = known {
            // An inherited session may be older than the agent that the connection registered.
            let registered = if per_connection { self.connections.speaker(call.connection.as_ref()) } else { None };
            let registered = adopt::unless_adopted(&self.core, &self.remote, registered).await;
            let own =
                adopt::unless_adopted(&self.core, &self.remote, record::agent_of(&self.core, &session.0).await?).await;
            let agent = match (evidence, own, registered) {
                (Evidence::Connection, own, registered) => registered.or(own),
                (_, Some(own), _) => Some(own),
                (_, None, Some(registered))
                    if session.1.parent.is_none()
                        && !record::may_not_follow(&self.core, &session.0, &registered).await? =>
                {
                    // The session on this connection changed without a hook: its agent follows.
                    record::observe(&self.core, &session.0.harness, &session.1, None).await?;
                    record::bind_agent(&self.core, &registered, &session.0).await?;
                    Some(registered)
                }
                (_, None, _) => None,
            };
            // A resumed session has not registered here, and this process delivers its mail all the same.
            if let (Some(connection), Some(agent)) = (&call.connection, &agent)
                && self.connections.serves(connection, agent)
            {
                self.delivery.joined.notify_waiters();
            }
            return Ok(caller(Some(session), agent, evidence));
        }
        if let Some(agent) =
            adopt::unless_adopted(&self.core, &self.remote, self.connections.speaker(call.connection.as_ref())).await
        {
            if let Some(connection) = &call.connection {
                let session = connection_session(&self.core, connection, &call.caller);
                let record = record::observe(&self.core, CONNECTION, &session, None).await?;
                if record.released.as_ref() == Some(&agent) {
                    return Ok(caller(None, None, Evidence::None));
                }
            }
            return Ok(caller(None, Some(agent), Evidence::Connection));
        }
        match &call.key {
            Some(key) => {
                let agent = agent_with_key(&self.core, key).await?;
                if record::lives_elsewhere(&self.core, &agent).await? {
                    return Err(IdentifyError::Key);
                }
                presence::beat(&self.core, &agent).await;
                Ok(caller(None, Some(agent), Evidence::Key))
            }
            None => Ok(caller(None, None, Evidence::None)),
        }
    }
}

pub(crate) async fn disconnect(
    core: &Core,
    connections: &Connections,
    connection: &ConnectionId,
) -> Result<(), IdentifyError> {
    if connections.closed(connection).is_some() {
        let session = SessionRef { harness: CONNECTION.to_owned(), id: connection.0.clone() };
        record::change_session(core, &session, |record| record.activity = Activity::Ended).await?;
        remote_presence::tell_of_session(core, &session).await;
    }
    Ok(())
}

/// The first session that an adapter is certain of, else the first inherited one. A ticket proves which harness calls,
/// so no other one is asked then.
async fn detect(core: &Core, call: &Call) -> Option<(Arc<dyn Harness>, Detection)> {
    let mut inherited = None;
    for candidate in core.harnesses.candidates(&call.caller).await {
        let harness = Arc::clone(&candidate.harness);
        if call.ticket.as_ref().is_some_and(|ticket| ticket.session.harness != harness.about().harness) {
            continue;
        }
        match candidate.detect(&call.caller).await {
            Ok(Some(detection)) if detection.certainty == Certainty::Certain => return Some((harness, detection)),
            Ok(Some(detection)) => {
                inherited.get_or_insert((harness, detection));
            }
            Ok(None) => {}
            // A faulty adapter must not affect other harnesses.
            Err(error) => tracing::warn!(harness = harness.about().harness, %error, "no session was detected"),
        }
    }
    inherited
}

async fn identify_command_line(
    core: &Core,
    remote: &RemoteCache,
    call: &Call,
    session: Option<(SessionRef, Session)>,
    caller: impl Fn(Option<(SessionRef, Session)>, Option<AgentName>, Evidence) -> Principal,
) -> Result<Principal, IdentifyError> {
    let of_session = match &session {
        Some((reference, _)) => adopt::unless_adopted(core, remote, record::agent_of(core, reference).await?).await,
        None => None,
    };
    let Some(claimed) = &call.claims_to_be else {
        let evidence = if session.is_some() { Evidence::Connection } else { Evidence::None };
        return Ok(caller(session, of_session, evidence));
    };
    if of_session.as_ref() == Some(claimed) {
        return Ok(caller(session, of_session, Evidence::Connection));
    }
    let agent = match agents::list::load_agent(core, claimed).await {
        Ok(agent) => agent.ok_or_else(|| IdentifyError::Unknown(claimed.clone()))?,
        // Agents of this machine's command line are known without the servers.
        Err(error) if error.is_out_of_reach() && is_registered_here(core, claimed).await? => {
            return Ok(caller(None, Some(claimed.clone()), Evidence::CommandLine));
        }
        Err(error) => return Err(error.into()),
    };
    match agent.origin {
        Origin::CommandLine if agent.machine != core.machine.name() => {
            Err(IdentifyError::Elsewhere { agent: claimed.clone(), machine: agent.machine })
        }
        Origin::CommandLine => {
            presence::beat(core, claimed).await;
            Ok(caller(None, Some(claimed.clone()), Evidence::CommandLine))
        }
        // It was adopted, and no caller has registered as it since.
        Origin::Session | Origin::Connection if agent.moved_from.is_some() && agent.machine == core.machine.name() => {
            Ok(caller(None, Some(claimed.clone()), Evidence::CommandLine))
        }
        Origin::Session | Origin::Connection => Err(IdentifyError::NotYours(claimed.clone())),
    }
}

/// Whether an agent was registered on this machine's command line.
async fn is_registered_here(core: &Core, agent: &AgentName) -> Result<bool, store::StoreError> {
    Ok(core.local.get(&keys::speaker(agent)).await?.is_some())
}

/// Notes that this machine's command line may act for an agent, also while the servers are unreachable.
pub(crate) async fn note_speaker(core: &Core, agent: &AgentName) -> Result<(), store::StoreError> {
    let at = core.machine.now();
    let note = |old: Option<Instant>| match old {
        Some(_) => (Next::Keep, ()),
        None => (Next::Put(at), ()),
    };
    records::update(core.local.as_ref(), &keys::speaker(agent), store::Durability::Process, note).await
}

/// The session that a ticket names, with what hooks reported about it, above all its parent.
async fn as_last_seen(core: &Core, session: &SessionRef, workdir: Option<&str>) -> Result<Session, store::StoreError> {
    let Some(record) = record::session_record(core, session).await? else { return Ok(bare(session, workdir)) };
    Ok(Session { parent: record.parent, ..bare(session, Some(&record.workdir)) })
}

/// The pseudo-session for the connection of a client without sessions: it lives as long as this process.
pub(crate) fn connection_session(core: &Core, connection: &ConnectionId, caller: &Caller) -> Session {
    Session {
        id: connection.0.clone(),
        parent: None,
        workdir: caller.workdir.clone().unwrap_or_default(),
        process: Some(core.machine.this_process().pid),
        route_hint: None,
    }
}

async fn agent_with_key(core: &Core, key: &str) -> Result<AgentName, IdentifyError> {
    let name: AgentName = key.split_once('.').and_then(|(name, _)| name.parse().ok()).ok_or(IdentifyError::Key)?;
    let agent = agents::list::load_agent(core, &name).await?.ok_or(IdentifyError::Key)?;
    // Compares digests, so the timing reveals nothing about the key.
    if agent.key_digest.is_some_and(|digest| digest == key_digest(key)) { Ok(name) } else { Err(IdentifyError::Key) }
}

/// The digest of an agent's key, as stored in its record.
pub(crate) fn key_digest(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}

fn named(harness: &dyn Harness, session: Session) -> (SessionRef, Session) {
    (SessionRef { harness: harness.about().harness.clone(), id: session.id.clone() }, session)
}

/// A session with only what a ticket tells about it.
pub(crate) fn bare(session: &SessionRef, workdir: Option<&str>) -> Session {
    Session {
        id: session.id.clone(),
        parent: None,
        workdir: workdir.unwrap_or_default().to_owned(),
        process: None,
        route_hint: None,
    }
}

fn program(caller: &Caller) -> Option<String> {
    let name = caller.client_name.as_ref()?;
    let program = match &caller.client_version {
        Some(version) => format!("{name} {version}"),
        None => name.clone(),
    };
    Some(program.chars().take(100).collect())
}
