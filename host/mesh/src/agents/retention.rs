//! Deletes the records of agents that were silent for a long time.

use std::collections::BTreeSet;

use store::{Durability, Revision, StoreError, SwapError};

use crate::agents::presence::is_here;
use crate::agents::{Agent, list, presence};
use crate::commands::order;
use crate::core::Core;
use crate::messages::inboxes::Inboxes;
use crate::names::AgentName;
use crate::reservations;
use crate::sessions::retention::has_record;
use crate::storage::{keys, records};
use crate::{DryRun, ReservationFilter};

/// Deletes the records of stale agents. Their mail, all of it settled, stays until its segments are old: the next agent
/// of that name finds a message that is being stored right now.
pub(crate) async fn clean_up_agents(
    core: &Core,
    inboxes: &Inboxes,
    dry_run: DryRun,
    stale: u64,
) -> Result<Vec<AgentName>, StoreError> {
    let held = reservations::list::reservations(core, &ReservationFilter::default()).await?;
    let holding: BTreeSet<&AgentName> =
        held.iter().flat_map(|listed| &listed.reservations).map(|one| &one.owner).collect();
    let now = core.machine.now();
    let asked: BTreeSet<AgentName> = order::commands(core, None)
        .await?
        .into_iter()
        .filter(|command| !command.standing(now).is_final())
        .map(|command| command.to)
        .collect();
    let mut cleanup = Vec::new();
    for name in list::names(core).await? {
        let key = keys::meta(&name);
        let (revision, agent) = match records::load::<Agent>(core.shared.as_ref(), &key).await {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            // `status` names a damaged record. It must not keep everything else from being deleted.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(agent = %name, %error, "an agent is skipped");
                continue;
            }
            Err(error) => return Err(error),
        };
        // An agent of another machine gives no sign of life here.
        if agent.machine != core.machine.name() || holding.contains(&name) || asked.contains(&name) {
            continue;
        }
        let seen = match presence::seen(core, inboxes, agent).await {
            Ok(seen) => seen,
            // Its session's record, which does not say whether it lives.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(agent = %name, %error, "an agent is skipped");
                continue;
            }
            Err(error) => return Err(error),
        };
        let silent = seen.last_heard.is_none_or(|heard| now.since(heard) >= stale);
        if is_here(seen.presence) || !silent || seen.waiting > 0 {
            continue;
        }
        if dry_run == DryRun::No && !remove(core, &name, revision).await? {
            continue;
        }
        cleanup.push(name);
    }
    Ok(cleanup)
}

/// Removes an agent's record and what belongs to it. Returns false if the agent has just come back.
async fn remove(core: &Core, name: &AgentName, revision: Revision) -> Result<bool, StoreError> {
    match core.shared.swap(&keys::meta(name), Some(revision), None, Durability::Process).await {
        Ok(_) => {}
        Err(SwapError::Changed { .. }) => return Ok(false),
        Err(SwapError::Store(error)) => return Err(error),
    }
    forget_the_rest(core, name).await?;
    Ok(true)
}

/// Removes what belonged to an agent that has no record any more: with the record, and if a process that removed that was
/// killed before it came to this. Else the next agent of the name would be in its channels.
pub(crate) async fn forget_the_rest(core: &Core, name: &AgentName) -> Result<(), StoreError> {
    // The user's shell never has a record.
    if name.is_shell() {
        return Ok(());
    }
    let rest = [
        (&core.shared, keys::heartbeat(name)),
        (&core.shared, keys::channels_of(name)),
        (&core.local, keys::work(name)),
    ];
    for (store, key) in rest {
        let Some(value) = store.get(&key).await? else { continue };
        // Looked at after the value: what an agent of the name that registers meanwhile writes is another one.
        if has_record(core, name).await? {
            return Ok(());
        }
        records::remove_if(store.as_ref(), &key, value.revision, Durability::Process).await?;
    }
    Ok(())
}

/// Why an agent is not forgotten.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// There is none.
    #[error("{}", crate::names::no_such_agent(.0))]
    Unknown(AgentName),
    /// Another machine judges it.
    #[error("`{agent}` lives on the machine `{machine}`, and only there it can be forgotten")]
    Elsewhere { agent: AgentName, machine: String },
    /// It is not gone, as far as is known.
    #[error("`{agent}` is {presence}: {because}")]
    Here {
        agent: AgentName,
        /// How present it is.
        presence: &'static str,
        /// The evidence.
        because: String,
    },
    /// It has not got all of its mail.
    #[error("mail waits for `{agent}`: {waiting} unread")]
    Mail { agent: AgentName, waiting: usize },
    /// It holds reservations.
    #[error("`{0}` holds reservations")]
    Holds(AgentName),
    /// Commands wait for it.
    #[error("a command waits for `{0}`")]
    Asked(AgentName),
    /// The store failed.
    #[error("the agent could not be removed")]
    Store(#[from] StoreError),
}

/// Removes an agent of this machine that is gone and settled, without waiting until it was silent for long. Its mail stays
/// until it is old, as if a cleanup had removed the agent.
pub(crate) async fn forget(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<(), ForgetError> {
    let found = records::load::<Agent>(core.shared.as_ref(), &keys::meta(name)).await?;
    let Some((revision, agent)) = found else { return Err(ForgetError::Unknown(name.clone())) };
    if agent.machine != core.machine.name() {
        return Err(ForgetError::Elsewhere { agent: name.clone(), machine: agent.machine });
    }
    let held = reservations::list::reservations(core, &ReservationFilter::default()).await?;
    if held.iter().flat_map(|listed| &listed.reservations).any(|one| one.owner == *name) {
        return Err(ForgetError::Holds(name.clone()));
    }
    let now = core.machine.now();
    if order::commands(core, None).await?.iter().any(|one| one.to == *name && !one.standing(now).is_final()) {
        return Err(ForgetError::Asked(name.clone()));
    }
    let seen = presence::seen(core, inboxes, agent).await?;
    let (agent, presence, because) = (name.clone(), seen.presence.as_str(), seen.evidence);
    if is_here(seen.presence) {
        return Err(ForgetError::Here { agent, presence, because });
    }
    if seen.waiting > 0 {
        return Err(ForgetError::Mail { agent, waiting: seen.waiting });
    }
    if !remove(core, name, revision).await? {
        return Err(ForgetError::Here { agent, presence: "back", because: "it has just registered again".to_owned() });
    }
    core.event_log.note("deleted", serde_json::json!({ "agents": [name] })).await;
    Ok(())
}
