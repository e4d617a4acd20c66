//! Pausing: the user lets an agent do nothing more until they say so.
//!
//! No route carries mail to a paused agent, so that no turn begins; it waits and comes in order afterwards. Hooks that
//! can refuse a tool refuse it. Nothing is typed, and no process is stopped.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use store::{Durability, StoreError};

use crate::Mesh;
use crate::agents::list::{load_agent, records_of_all};
use crate::core::Core;
use crate::delivery::wake_file;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::sessions::record;
use crate::sessions::{SessionRecord, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// Why an agent was not paused.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// Its user is another machine's.
    #[error("`{agent}` lives on the machine `{machine}`, whose user pauses it")]
    Elsewhere { agent: AgentName, machine: String },
    /// The store failed.
    #[error("the pause could not be stored")]
    Store(#[from] StoreError),
}

/// That an agent is paused, stored under `paused/NAME`, only in the local store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pause {
    at: Instant,
}

/// Pauses these agents, or all of this machine. Returns those that were not paused before. Nothing is paused if one of
/// them cannot be.
pub(crate) async fn pause(mesh: &Mesh, names: Option<&[AgentName]>) -> Result<Vec<AgentName>, PauseError> {
    let core = &mesh.core;
    let names = match names {
        Some(names) => {
            for name in names {
                let machine = load_agent(core, name).await?.map(|agent| agent.machine);
                if let Some(machine) = machine.filter(|machine| machine != core.machine.name()) {
                    return Err(PauseError::Elsewhere { agent: name.clone(), machine });
                }
            }
            names.to_vec()
        }
        None => {
            let here = records_of_all(core).await?.into_iter().filter(|agent| agent.machine == core.machine.name());
            here.map(|agent| agent.name.clone()).collect()
        }
    };
    let at = core.machine.now();
    let mut paused = Vec::new();
    for name in names {
        let put = |old: Option<Pause>| match old {
            Some(_) => (Next::Keep, false),
            None => (Next::Put(Pause { at }), true),
        };
        let is_new = records::update(core.local.as_ref(), &keys::pause(&name), Durability::Synced, put).await?;
        for session in sessions_to_note(core, &name, true).await? {
            record::change_session(core, &session.session, |record| record.paused = Some(at)).await?;
        }
        if is_new {
            core.event_log.note("paused", serde_json::json!({ "agent": name })).await;
            paused.push(name);
        }
    }
    Ok(paused)
}

/// Lets these agents, or all that are paused, go on. Returns those that were paused. A session that could not be woken
/// keeps no other one from that; the first such error is returned after all.
pub(crate) async fn resume(mesh: &Mesh, names: Option<&[AgentName]>) -> Result<Vec<AgentName>, StoreError> {
    let core = &mesh.core;
    let names = match names {
        Some(names) => names.to_vec(),
        None => {
            // A call that was cut off has removed the pauses of some, and woken no session of theirs.
            let noted = record::sessions(core).await?.into_iter().filter(|view| view.record.paused.is_some());
            let mut names: BTreeSet<AgentName> = noted.filter_map(|view| view.record.agent).collect();
            names.extend(paused(core).await?.into_iter().map(|(name, _)| name));
            names.into_iter().collect()
        }
    };
    let (mut resumed, mut failed) = (Vec::new(), None);
    for name in names {
        let gone = |old: Option<Pause>| match old {
            Some(_) => (Next::Remove, true),
            None => (Next::Keep, false),
        };
        let was_paused = records::update(core.local.as_ref(), &keys::pause(&name), Durability::Synced, gone).await?;
        if was_paused {
            core.event_log.note("resumed", serde_json::json!({ "agent": name })).await;
        }
        for session in sessions_to_note(core, &name, false).await? {
            // Where no process of ours delivers, the harness's own watch of the wake file brings what has waited. Until
            // that is written, the session is noted as paused, so that another call would write it.
            let resumed = SessionRecord { paused: None, ..session };
            if let Err(error) = wake_file::ring_if_mail_waits(core, &mesh.inboxes, &resumed).await {
                // As while the servers are out of reach: that keeps no other session paused.
                failed.get_or_insert(error);
                continue;
            }
            record::change_session(core, &resumed.session, |record| record.paused = None).await?;
        }
        if was_paused {
            resumed.push(name);
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(resumed),
    }
}

/// The paused agents, each with when it was paused.
pub(crate) async fn paused(core: &Core) -> Result<Vec<(AgentName, Instant)>, StoreError> {
    let mut all = Vec::new();
    for key in core.local.list(&keys::pauses()).await? {
        let Ok(name) = key.leaf().parse::<AgentName>() else { continue };
        if let Some((_, Pause { at })) = records::load(core.local.as_ref(), &key).await? {
            all.push((name, at));
        }
    }
    Ok(all)
}

/// Whether an agent is paused, by its name. Its session's record says the same, once a hook has looked.
pub(crate) async fn is_paused(core: &Core, name: &AgentName) -> Result<bool, StoreError> {
    Ok(core.local.get(&keys::pause(name)).await?.is_some())
}

/// Sees to it that a session's record says whether its agent is paused: it may be a new session of that agent.
pub(crate) async fn note_on(core: &Core, session: &SessionRef, is_paused: bool) -> Result<(), StoreError> {
    let Some(record) = record::current_record(core, session).await? else { return Ok(()) };
    if record.paused.is_some() == is_paused {
        return Ok(());
    }
    let paused = is_paused.then(|| core.machine.now());
    record::change_session(core, &record.session, |record| record.paused = paused).await
}

/// The sessions of an agent whose records do not say yet whether it is paused.
async fn sessions_to_note(core: &Core, name: &AgentName, is_paused: bool) -> Result<Vec<SessionRecord>, StoreError> {
    let is_one = |record: &SessionRecord| record.agent.as_ref() == Some(name) && record.paused.is_some() != is_paused;
    Ok(record::sessions(core).await?.into_iter().map(|view| view.record).filter(is_one).collect())
}
