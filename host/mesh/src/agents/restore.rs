//! Registers agents again whose records are gone while their sessions live: the servers came back with an empty store, or
//! a record was deleted by hand.

use store::{Durability, StoreError, SwapError};

use crate::agents::list;
use crate::agents::remote_presence;
use crate::agents::{Agent, Origin, Profile};
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::Life;
use crate::sessions::identify::CONNECTION;
use crate::sessions::record;
use crate::sessions::{SessionRecord, Sign};
use crate::storage::keys;
use crate::storage::records;

/// Registers the agents of this machine's live sessions and of its command line again, if their records are gone.
pub(crate) async fn restore_live(core: &Core) -> Result<Vec<AgentName>, StoreError> {
    let mut restored = Vec::new();
    for (session, _) in record::live_sessions(core).await? {
        if let Some(name) = &session.agent
            && restore(core, name, Some(&session)).await?
        {
            // What was told of it is gone too.
            record::change_session(core, &session.session, |record| record.told = None).await?;
            remote_presence::tell_of_session(core, &session.session).await;
            restored.push(name.clone());
        }
    }
    for key in core.local.list(&keys::speakers()).await? {
        if let Ok(name) = key.leaf().parse::<AgentName>()
            && restore(core, &name, None).await?
        {
            restored.push(name);
        }
    }
    Ok(restored)
}

/// Settles who has a name that has no record, although sessions of this machine act under it: one that is alive gets its
/// record back; the others act under it no more. Returns whether the name is taken.
pub(crate) async fn settle_claims(
    core: &Core,
    name: &AgentName,
    own: Option<&crate::sessions::SessionRef>,
) -> Result<bool, StoreError> {
    for (session, _) in record::live_sessions(core).await? {
        if session.agent.as_ref() != Some(name) || Some(&session.session) == own {
            continue;
        }
        if is_alive(core, &session) {
            return restore(core, name, Some(&session)).await.map(|_| true);
        }
        record::release_agent(core, name, &session.session).await?;
    }
    Ok(false)
}

/// Whether a session's own process proves that it lives.
fn is_alive(core: &Core, session: &SessionRecord) -> bool {
    match session.shown_by {
        Sign::Process | Sign::Stream => record::life(core, session) == Some(Life::Runs),
        Sign::Calls => false,
    }
}

/// Writes an agent's record, if there is none. Returns whether it was written.
async fn restore(core: &Core, name: &AgentName, session: Option<&SessionRecord>) -> Result<bool, StoreError> {
    let key = keys::meta(name);
    if core.shared.get(&key).await?.is_some() {
        return Ok(false);
    }
    let now = core.machine.now();
    let last_seen = list::last_roster(core).await.ok().flatten().unwrap_or_default();
    let last_seen = last_seen.into_iter().find(|seen| seen.agent.name == *name).map(|seen| *seen.agent);
    let origin = match session {
        None => Origin::CommandLine,
        Some(session) if session.session.harness == CONNECTION => Origin::Connection,
        Some(_) => Origin::Session,
    };
    let profile = last_seen.as_ref().map(|agent| agent.profile.clone()).unwrap_or_else(|| Profile {
        harness: session.map(|session| session.session.harness.clone()).filter(|harness| harness != CONNECTION),
        project: session.map(|session| session.workdir.clone()).filter(|folder| !folder.is_empty()),
        ..Profile::default()
    });
    let agent = Agent {
        name: name.clone(),
        profile,
        origin,
        session: session.map(|session| session.session.clone()),
        machine: core.machine.name().to_owned(),
        registered: last_seen.map_or(now, |agent| agent.registered),
        bound: now,
        moved_from: None,
        key_digest: None,
    };
    match core.shared.swap(&key, None, Some(&records::json(&agent)), Durability::Synced).await {
        Ok(_) => Ok(true),
        // Another process was faster, or another machine has the name.
        Err(SwapError::Changed { .. } | SwapError::Store(StoreError::Elsewhere { .. })) => Ok(false),
        Err(SwapError::Store(error)) => Err(error),
    }
}
