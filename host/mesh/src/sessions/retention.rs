//! Deletes what is left of sessions that are over.
//!
//! A session's record goes if all of this holds: it has ended (it said so, or its process is gone), nothing was heard of
//! it for `keep`, it is the current session of no agent, and no kept session names it as its parent. Where nobody can
//! tell whether a process lives, in another container or behind a client that holds nothing open, `expire-after` of
//! silence is what counts as an end.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use store::{Durability, Key, Revision, StoreError};

use crate::agents::list::summaries_with_heartbeats;
use crate::cleanup::{DryRun, RecordKind, Tally};
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::data_files::{Amount, DataFiles};
use crate::ports::machine::{Instant, Life};
use crate::reservations::renamed::ReservedFolder;
use crate::sessions::listeners;
use crate::sessions::record;
use crate::sessions::{Activity, SessionRecord, SessionRef, Sign};
use crate::storage::{keys, records};

/// Deletes the records of sessions that are over. `leaving` are agents that a dry run takes for deleted.
pub(crate) async fn clean_up_sessions(
    core: &Core,
    leaving: &[AgentName],
    (dry_run, files): (DryRun, &dyn DataFiles),
    tally: &mut Tally,
) -> Result<(), StoreError> {
    let current = CurrentSessions::of(core, leaving).await?;
    let (mut over, mut parents) = (Vec::new(), BTreeSet::new());
    let mut all = core.local.list(&keys::sessions()).await?;
    all.extend(core.local.list(&keys::ended_sessions()).await?);
    for key in all {
        let Some((revision, record)) = sound::<SessionRecord>(core, &key).await? else { continue };
        if is_over(core, &record) && !current.includes(&record) {
            over.push((key, revision, record.session));
        } else if let Some(parent) = record.parent {
            parents.insert(SessionRef { harness: record.session.harness, id: parent });
        }
    }
    for (key, revision, session) in over {
        let is_listened_to = match listeners::is_listened_to(core, &session).await {
            Err(StoreError::Damaged { .. }) => true,
            known => known?,
        };
        if parents.contains(&session) || is_listened_to {
            continue;
        }
        let Some(value) = core.local.get(&key).await?.filter(|value| value.revision == revision) else { continue };
        if dry_run == DryRun::Yes
            || records::remove_if(core.local.as_ref(), &key, revision, Durability::Process).await?
        {
            tally.add(RecordKind::Sessions, Amount { count: 1, bytes: value.bytes.len() as u64 });
            forget_wake_file(core, &session, (dry_run, files), tally).await?;
        }
    }
    Ok(())
}

async fn forget_wake_file(
    core: &Core,
    session: &SessionRef,
    (dry_run, files): (DryRun, &dyn DataFiles),
    tally: &mut Tally,
) -> Result<(), StoreError> {
    let log = keys::wake_file(session);
    match files.forget(&log, &[keys::delivery(session), keys::running(session)], dry_run) {
        Some(amount) => tally.add(RecordKind::WakeFiles, amount),
        None if dry_run == DryRun::No => core.local.remove(&log).await?,
        None => {}
    }
    Ok(())
}

fn is_over(core: &Core, record: &SessionRecord) -> bool {
    let silence = core.machine.now().since(record.last_sign());
    let keep = match end_of(core, record) {
        End::Proven => core.limits.keep,
        End::Unproven => core.limits.keep.max(core.limits.expire_after),
        End::Not => return false,
    };
    silence >= keep
}

/// Whether a session has provably ended.
pub(crate) fn has_ended(core: &Core, record: &SessionRecord) -> bool {
    matches!(end_of(core, record), End::Proven)
}

/// What is known of a session's end.
enum End {
    /// It said so, or its process is gone.
    Proven,
    /// Only its silence can show it.
    Unproven,
    /// It is alive.
    Not,
}

fn end_of(core: &Core, record: &SessionRecord) -> End {
    if record.activity == Activity::Ended || record.succeeded_by.is_some() {
        return End::Proven;
    }
    match (record::life(core, record), record.shown_by) {
        (Some(Life::Ended), _) => End::Proven,
        (Some(Life::Runs), Sign::Process | Sign::Stream) => End::Not,
        // Its process cannot be looked up from here, or is the server's, which outlives its clients.
        (Some(Life::Unknown), _) | (Some(Life::Runs), Sign::Calls) | (None, _) => End::Unproven,
    }
}

/// The sessions that agents are bound to.
struct CurrentSessions {
    sessions: BTreeSet<SessionRef>,
    /// Agents whose records are damaged: any session of theirs may be the current one.
    unreadable: BTreeSet<AgentName>,
}

impl CurrentSessions {
    async fn of(core: &Core, leaving: &[AgentName]) -> Result<CurrentSessions, StoreError> {
        let mut found = CurrentSessions { sessions: BTreeSet::new(), unreadable: BTreeSet::new() };
        for agent in summaries_with_heartbeats(core).await? {
            match agent.agent {
                Ok(_) if leaving.contains(&agent.name) => {}
                Ok(record) => found.sessions.extend(record.session),
                Err(_) => drop(found.unreadable.insert(agent.name)),
            }
        }
        Ok(found)
    }

    fn includes(&self, record: &SessionRecord) -> bool {
        self.sessions.contains(&record.session)
            || record.agent.as_ref().is_some_and(|agent| self.unreadable.contains(agent))
    }
}

/// Deletes what this machine noted of agents that have no record any more, and chains of messages that ended long ago.
pub(crate) async fn clean_up_notes(core: &Core, dry_run: DryRun, tally: &mut Tally) -> Result<(), StoreError> {
    let now = core.machine.now();
    for key in core.local.list(&keys::speakers()).await? {
        let Some((revision, _)) = sound::<Instant>(core, &key).await? else { continue };
        let Ok(name) = key.leaf().parse::<AgentName>() else { continue };
        if !has_record(core, &name).await? {
            remove_one(core, RecordKind::Speakers, (&key, revision), dry_run, tally).await?;
        }
    }
    for key in core.local.list(&keys::pauses()).await? {
        let Some((revision, _)) = sound::<serde_json::Value>(core, &key).await? else { continue };
        let Ok(name) = key.leaf().parse::<AgentName>() else { continue };
        if !has_record(core, &name).await? {
            remove_one(core, RecordKind::Pauses, (&key, revision), dry_run, tally).await?;
        }
    }
    for key in core.local.list(&keys::reserved_folders()).await? {
        let Some((revision, noted)) = sound::<ReservedFolder>(core, &key).await? else { continue };
        let is_old = now.since(noted.at) >= core.limits.keep;
        if is_old && core.shared.get(&keys::reservations_of(&noted.repository)).await?.is_none() {
            remove_one(core, RecordKind::Folders, (&key, revision), dry_run, tally).await?;
        }
    }
    let rest = core.limits.keep.max(core.limits.loops.rest);
    for key in core.local.list(&keys::works()).await? {
        let Some((revision, Dated { at })) = sound::<Dated>(core, &key).await? else { continue };
        if now.since(at) >= rest {
            remove_one(core, RecordKind::Chains, (&key, revision), dry_run, tally).await?;
        }
    }
    let mut known: BTreeMap<AgentName, bool> = BTreeMap::new();
    for key in core.local.list(&keys::offline_notices()).await? {
        let Some((revision, _)) = sound::<serde_json::Value>(core, &key).await? else { continue };
        let Ok(name) = key.leaf().parse::<AgentName>() else { continue };
        let is_known = match known.get(&name) {
            Some(is_known) => *is_known,
            None => has_record(core, &name).await?,
        };
        known.insert(name, is_known);
        if !is_known {
            remove_one(core, RecordKind::OfflineNotices, (&key, revision), dry_run, tally).await?;
        }
    }
    Ok(())
}

/// Whether an agent has a record, also one that is damaged.
pub(crate) async fn has_record(core: &Core, name: &AgentName) -> Result<bool, StoreError> {
    match core.shared.get(&keys::meta(name)).await {
        Ok(found) => Ok(found.is_some()),
        Err(StoreError::Damaged { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// The one field of a record that says how old it is.
#[derive(Serialize, Deserialize)]
struct Dated {
    at: Instant,
}

/// Deletes a value unless it changed since it was read, or only counts it.
pub(crate) async fn remove_one(
    core: &Core,
    kind: RecordKind,
    (key, revision): (&Key, Revision),
    dry_run: DryRun,
    tally: &mut Tally,
) -> Result<(), StoreError> {
    let bytes = core.local.get(key).await?.map_or(0, |value| value.bytes.len() as u64);
    if dry_run == DryRun::Yes || records::remove_if(core.local.as_ref(), key, revision, Durability::Process).await? {
        tally.add(kind, Amount { count: 1, bytes });
    }
    Ok(())
}

/// A record of this machine; none if it is gone or damaged. What is damaged is kept for `status` to name.
pub(crate) async fn sound<T: serde::de::DeserializeOwned>(
    core: &Core,
    key: &Key,
) -> Result<Option<(Revision, T)>, StoreError> {
    match records::load::<T>(core.local.as_ref(), key).await {
        Err(StoreError::Damaged { .. }) => Ok(None),
        found => found,
    }
}
