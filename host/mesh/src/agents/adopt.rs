//! Adopting: an agent whose session ended, or whose machine is lost, continues here with its name and its waiting mail.
//! Never triggered by a timer: a machine that is only cut off looks the same from outside, so the user decides, with
//! the operator's login if the servers separate machines.

use store::{Durability, Moving, StoreError, SwapError};

use crate::agents;
use crate::agents::presence;
use crate::agents::remote_cache::RemoteCache;
use crate::agents::{Agent, Origin, Presence};
use crate::commands::Command;
use crate::core::Core;
use crate::messages::inboxes::Inboxes;
use crate::messages::receipt::{Event, Receipt};
use crate::names::AgentName;
use crate::reservations::repository::Repository;
use crate::sessions::{SessionRef, record};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// The result of an adoption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    pub agent: AgentName,
    /// The machine that it came from.
    pub from: String,
    /// How many messages wait for it.
    pub waiting: usize,
}

/// Why an adoption failed.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// No agent has that name.
    #[error("{}", crate::names::no_such_agent(.0))]
    Unknown(AgentName),
    /// The command line can act as it already.
    #[error("`{0}` lives on this machine already")]
    Here(AgentName),
    /// Its session on this machine has not ended.
    #[error("`{agent}` is {} on this machine: {evidence}", presence.as_str())]
    Alive {
        agent: AgentName,
        presence: Presence,
        /// The evidence for that presence, as a sentence.
        evidence: String,
    },
    /// The agent does not look lost.
    #[error("`{agent}` is {} on the machine `{machine}`: {evidence}", presence.as_str())]
    Heard {
        agent: AgentName,
        /// The machine that it lives on.
        machine: String,
        presence: Presence,
        /// The evidence for that presence, as a sentence.
        evidence: String,
    },
    /// The store failed.
    #[error("the agent could not be adopted")]
    Store(#[from] StoreError),
}

pub(crate) async fn adopt(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<Adopted, AdoptError> {
    let agent = agents::list::load_agent(core, name).await?.ok_or_else(|| AdoptError::Unknown(name.clone()))?;
    if agent.machine == core.machine.name() {
        return take_from_session(core, inboxes, agent).await;
    }
    let (_, presence, evidence) = presence::judged(core, &agent).await?;
    match presence {
        Presence::Away | Presence::Offline => {}
        Presence::Busy | Presence::NeedsInput | Presence::Idle => {
            return Err(AdoptError::Heard { agent: name.clone(), machine: agent.machine, presence, evidence });
        }
    }
    take_over_what_others_share(core, name).await?;
    let now = core.machine.now();
    let event = Event::Released { lease: String::new(), went_out: false };
    let nothing = Receipt { message: core.new_id(now), at: now, event };
    let moving = Moving {
        home: &keys::agents().child(name.as_str()),
        left: &[keys::cursor(name), keys::heartbeat(name)],
        decides: &keys::receipts(name),
        // A receipt of a message that does not exist has no effect, and marks the end of the log.
        fence: &records::json(&nothing),
    };
    let moved = core.shared.move_home(&moving).await?.ok_or_else(|| AdoptError::Unknown(name.clone()))?;
    let from = moved.from.unwrap_or_else(|| agent.machine.clone());
    let here = core.machine.name().to_owned();
    records::update(core.shared.as_ref(), &keys::meta(name), Durability::Synced, |old: Option<Agent>| match old {
        // A caller that registered here meanwhile already took the name over.
        Some(old) if old.machine == here => (Next::Keep, ()),
        Some(old) => {
            let moved_from = Some(from.clone());
            (Next::Put(Agent { session: None, machine: here.clone(), moved_from, key_digest: None, ..old }), ())
        }
        None => (Next::Keep, ()),
    })
    .await?;
    core.event_log.note("adopted", serde_json::json!({ "agent": name, "from": from, "to": here })).await;
    Ok(Adopted { agent: name.clone(), waiting: presence::waiting(core, inboxes, name).await?, from })
}

/// Takes an agent of this machine from a session that is over: the next caller that registers its name is that agent.
async fn take_from_session(core: &Core, inboxes: &Inboxes, agent: Agent) -> Result<Adopted, AdoptError> {
    let name = agent.name.clone();
    if agent.origin == Origin::CommandLine && agent.moved_from.is_none() {
        return Err(AdoptError::Here(name));
    }
    let (_, presence, evidence) = presence::judged(core, &agent).await?;
    match presence {
        Presence::Away | Presence::Offline => {}
        Presence::Busy | Presence::NeedsInput | Presence::Idle => {
            return Err(AdoptError::Alive { agent: name, presence, evidence });
        }
    }
    let_go(core, &name, agent.session.as_ref()).await?;
    core.event_log
        .note("adopted", serde_json::json!({ "agent": name, "from": agent.machine, "to": agent.machine }))
        .await;
    Ok(Adopted { waiting: presence::waiting(core, inboxes, &name).await?, agent: name, from: agent.machine })
}

/// Takes an agent of this machine from its session. Its name and its mail are the next caller's that registers as it.
pub(crate) async fn let_go(core: &Core, name: &AgentName, session: Option<&SessionRef>) -> Result<(), StoreError> {
    let here = core.machine.name().to_owned();
    let is_let_go =
        records::update(core.shared.as_ref(), &keys::meta(name), Durability::Synced, |old: Option<Agent>| match old {
            // A caller that registered as it meanwhile keeps it.
            Some(old) if old.machine == here && old.session.as_ref() == session => {
                let moved_from = Some(here.clone());
                (Next::Put(Agent { session: None, moved_from, key_digest: None, ..old }), true)
            }
            Some(_) | None => (Next::Keep, false),
        })
        .await?;
    match session {
        Some(session) if is_let_go => record::release_agent(core, name, session).await,
        Some(_) | None => Ok(()),
    }
}

/// Rewrites, as this machine, the records that several machines write: from then on this machine's version decides
/// about the agent's part of them, even if this machine wrote an older version long ago.
async fn take_over_what_others_share(core: &Core, name: &AgentName) -> Result<(), StoreError> {
    for key in core.shared.list(&keys::reservations()).await? {
        loop {
            let (revision, ledger) = match core.shared.get(&key).await? {
                Some(found) => (Some(found.revision), found.bytes),
                None => {
                    let repository = Repository::named(&key.leaf());
                    (None, records::json(&serde_json::json!({ "repository": repository, "reservations": [] })))
                }
            };
            if say_again(core, &key, revision, &ledger).await? {
                break;
            }
        }
    }
    for key in core.shared.list(&keys::commands()).await? {
        while let Some((revision, command)) = records::load::<Command>(core.shared.as_ref(), &key).await? {
            let concerned = command.from == *name || command.to == *name;
            if !concerned || say_again(core, &key, Some(revision), &records::json(&command)).await? {
                break;
            }
        }
    }
    Ok(())
}

/// Returns whether the write succeeded; false if another process was faster.
async fn say_again(
    core: &Core,
    key: &store::Key,
    revision: Option<store::Revision>,
    value: &[u8],
) -> Result<bool, StoreError> {
    match core.shared.swap(key, revision, Some(value), Durability::Synced).await {
        Ok(_) => Ok(true),
        Err(SwapError::Changed { .. }) => Ok(false),
        Err(SwapError::Store(error)) => Err(error),
    }
}

/// Drops an agent of this machine that another machine adopted meanwhile: from then on it acts only there. While the
/// servers are unreachable, the agent counts as still here.
pub(crate) async fn unless_adopted(core: &Core, remote: &RemoteCache, agent: Option<AgentName>) -> Option<AgentName> {
    let agent = agent?;
    let now = core.machine.now();
    if !core.topology.has_other_machines() || remote.was_here(&agent, now) {
        return Some(agent);
    }
    match record::lives_elsewhere(core, &agent).await {
        Ok(true) => None,
        Ok(false) => {
            remote.note_here(&agent, now);
            Some(agent)
        }
        Err(error) => {
            tracing::debug!(%agent, %error, "it is unknown whether another machine has adopted the agent");
            Some(agent)
        }
    }
}
