//! Heartbeats that an agent sends itself, and waiting for other agents to come or go.

use std::time::Duration;

use store::{Durability, StoreError};

use crate::FindError;
use crate::agents;
use crate::agents::presence;
use crate::agents::presence::is_here;
use crate::agents::{Agent, AgentSummary};
use crate::core::Core;
use crate::messages::LONGEST_LABEL;
use crate::messages::inboxes::Inboxes;
use crate::names::AgentName;
use crate::sessions::Principal;
use crate::sessions::record;
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Poll interval. A process that starts or ends changes nothing in the store, so watching is not enough.
const LOOK: Duration = Duration::from_secs(1);

/// Why a heartbeat was not noted.
#[derive(Debug, thiserror::Error)]
pub enum HeartbeatError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The task is too long.
    #[error("the task has {0} bytes and may have {LONGEST_LABEL}")]
    TooLong(usize),
    /// The store failed.
    #[error("the heartbeat could not be stored")]
    Store(#[from] StoreError),
}

pub(crate) async fn heartbeat(
    core: &Core,
    inboxes: &Inboxes,
    caller: &Principal,
    task: Option<&str>,
) -> Result<AgentSummary, HeartbeatError> {
    let name = caller.agent().ok_or(HeartbeatError::NotRegistered)?.clone();
    if let Some(task) = task.filter(|task| task.len() > LONGEST_LABEL) {
        return Err(HeartbeatError::TooLong(task.len()));
    }
    // Synced: a power loss must not leave an empty file where the agent's record was.
    let agent = records::update(core.shared.as_ref(), &keys::meta(&name), Durability::Synced, |old: Option<Agent>| {
        match (old, task) {
            (None, _) => (Next::Keep, None),
            (Some(agent), None) => (Next::Keep, Some(agent)),
            (Some(mut agent), Some(task)) => {
                agent.profile.task = (!task.is_empty()).then(|| task.to_owned());
                (Next::Put(agent.clone()), Some(agent))
            }
        }
    })
    .await?;
    let agent = agent.ok_or(HeartbeatError::NotRegistered)?;
    let now = core.machine.now();
    match &agent.session {
        // A session's record already holds the time of its last sign of life.
        Some(session) => record::change_session(core, session, |record| record.heard = now).await?,
        None => presence::put_heartbeat(core, &name).await?,
    }
    Ok(presence::seen(core, inboxes, agent).await?)
}

pub(crate) async fn here(core: &Core, inboxes: &Inboxes, names: &[AgentName]) -> Result<Vec<AgentSummary>, FindError> {
    // Watch before reading, so that no change in between is lost.
    let mut joining = core.shared.watch(&[keys::agents()]).await?;
    let mut living = core.local.watch(&[keys::sessions()]).await?;
    loop {
        let mut here = Vec::with_capacity(names.len());
        for name in names {
            match agents::list::agent(core, inboxes, name).await? {
                Some(seen) if is_here(seen.presence) => here.push(seen),
                Some(_) | None => break,
            }
        }
        if here.len() == names.len() {
            return Ok(here);
        }
        tokio::select! {
            changed = joining.changed() => changed?,
            changed = living.changed() => changed?,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

pub(crate) async fn stale(core: &Core, inboxes: &Inboxes, names: &[AgentName]) -> Result<Vec<AgentSummary>, FindError> {
    let mut living = core.local.watch(&[keys::sessions()]).await?;
    loop {
        let mut stale = Vec::new();
        for name in names {
            stale.extend(agents::list::agent(core, inboxes, name).await?.filter(|seen| !is_here(seen.presence)));
        }
        if !stale.is_empty() {
            return Ok(stale);
        }
        tokio::select! {
            changed = living.changed() => changed?,
            // Silence changes nothing in the store.
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}
