//! Sessions on this machine: seen, bound, moved, ended.

use store::{Durability, StoreError};

use crate::agents;
use crate::agents::Agent;
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::Process;
use crate::sessions::{Activity, Session, SessionRecord, SessionRef, Sign};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How many successors of a session are followed before a circle is assumed.
const LONGEST_CHAIN: usize = 64;

/// A session of this machine, for listings. Never shows the route hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// What is kept of it.
    pub record: SessionRecord,
    /// What it is doing: gone where its process is dead, whatever its last hook said.
    pub activity: Activity,
}

pub(crate) async fn sessions(core: &Core) -> Result<Vec<SessionView>, StoreError> {
    let mut views = Vec::new();
    for key in core.local.list(&keys::sessions()).await? {
        let record = match records::load::<SessionRecord>(core.local.as_ref(), &key).await {
            Ok(Some((_, record))) => record,
            Ok(None) => continue,
            // One damaged record hides one session, not all of them.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(%key, %error, "a session's record is passed over");
                continue;
            }
            Err(error) => return Err(error),
        };
        let activity = self::activity(core, &record);
        if activity != Activity::Ended {
            views.push(SessionView { record: SessionRecord { route_hint: None, ..record }, activity });
        }
    }
    Ok(views)
}

pub(crate) async fn session(core: &Core, session: &SessionRef) -> Result<Option<SessionView>, StoreError> {
    let Some(record) = current_record(core, session).await? else { return Ok(None) };
    let activity = self::activity(core, &record);
    Ok(Some(SessionView { record: SessionRecord { route_hint: None, ..record }, activity }))
}

/// What a session does, by its record and its process.
pub(crate) fn activity(core: &Core, record: &SessionRecord) -> Activity {
    match record.process {
        Some(process) if !core.machine.lives(process) => Activity::Ended,
        Some(_) | None => record.activity,
    }
}

/// The record of exactly this session.
pub(crate) async fn session_record(core: &Core, session: &SessionRef) -> Result<Option<SessionRecord>, StoreError> {
    let found = records::load::<SessionRecord>(core.local.as_ref(), &keys::session(session)).await?;
    Ok(found.map(|(_, record)| record))
}

/// The record of this session or of the one that took its place.
pub(crate) async fn current_record(core: &Core, session: &SessionRef) -> Result<Option<SessionRecord>, StoreError> {
    let mut at = session.clone();
    for _ in 0..LONGEST_CHAIN {
        match session_record(core, &at).await? {
            Some(SessionRecord { succeeded_by: Some(next), .. }) => at.id = next,
            other => return Ok(other),
        }
    }
    Ok(None)
}

/// The agent that speaks in a session: its own, or its root session's where it is a subagent
/// that has not registered.
pub(crate) async fn agent_of(core: &Core, session: &SessionRef) -> Result<Option<AgentName>, StoreError> {
    let Some(record) = current_record(core, session).await? else { return Ok(None) };
    if record.agent.is_some() {
        return Ok(record.agent);
    }
    let Some(parent) = record.parent else { return Ok(None) };
    let parent = SessionRef { harness: session.harness.clone(), id: parent };
    Ok(current_record(core, &parent).await?.and_then(|record| record.agent))
}

/// Whether an agent has gone on at another machine, while this one was out of reach or asleep: then its
/// mail is that one's to bring.
pub(crate) async fn lives_elsewhere(core: &Core, name: &AgentName) -> Result<bool, StoreError> {
    if !core.topology.has_other_machines() {
        return Ok(false);
    }
    Ok(agents::list::load_agent(core, name).await?.is_some_and(|agent| agent.machine != core.machine.name()))
}

/// Whether a hook said of a session that it is nobody's successor.
pub(crate) async fn stands_alone(core: &Core, session: &SessionRef) -> Result<bool, StoreError> {
    Ok(session_record(core, session).await?.is_some_and(|record| record.stands_alone))
}

/// Notes what an adapter or a connection shows of a session, and what it does where that is known.
pub(crate) async fn observe(
    core: &Core,
    harness: &str,
    session: &Session,
    activity: Option<Activity>,
) -> Result<SessionRecord, StoreError> {
    let now = core.machine.now();
    let reference = SessionRef { harness: harness.to_owned(), id: session.id.clone() };
    let process: Option<Process> = session.process.and_then(|pid| core.machine.process(pid));
    records::update(core.local.as_ref(), &keys::session(&reference), Durability::Process, |old| {
        let mut record = old.clone().unwrap_or_else(|| SessionRecord {
            session: reference.clone(),
            parent: None,
            workdir: String::new(),
            process: None,
            shown_by: Sign::Process,
            route_hint: None,
            agent: None,
            activity: Activity::Idle,
            heard: now,
            first_seen: now,
            watches_wake_file: false,
            stands_alone: false,
            advice: None,
            succeeded_by: None,
            told: None,
        });
        if session.parent.is_some() {
            record.parent.clone_from(&session.parent);
        }
        if !session.workdir.is_empty() {
            record.workdir.clone_from(&session.workdir);
        }
        if session.route_hint.is_some() {
            record.route_hint.clone_from(&session.route_hint);
        }
        let died = record.process.is_some_and(|process| !core.machine.lives(process));
        // A process that is named and does not run has left a hook behind: that is no sign of life.
        let late = session.process.is_some() && process.is_none();
        record.process = match process {
            None if died && !late => None,
            None => record.process,
            Some(process) => Some(process),
        };
        match activity {
            Some(activity) => record.activity = activity,
            // Whoever speaks is not gone: a session that was closed or crashed has been resumed, and
            // whatever it had asked its person before is no longer asked.
            None if record.activity == Activity::Ended || (died && !late) => record.activity = Activity::Idle,
            None => {}
        }
        // The clock alone is not worth a write on every tool call.
        let only_heard = old.as_ref().is_some_and(|old| {
            now.since(old.heard) < 5_000 && SessionRecord { heard: old.heard, ..record.clone() } == *old
        });
        record.heard = now;
        if only_heard { (Next::Keep, record) } else { (Next::Put(record.clone()), record) }
    })
    .await
}

/// Changes the record of a session that is known; nothing happens where it is not.
pub(crate) async fn change_session(
    core: &Core,
    session: &SessionRef,
    mut change: impl FnMut(&mut SessionRecord) + Send,
) -> Result<(), StoreError> {
    let now = core.machine.now();
    records::update(core.local.as_ref(), &keys::session(session), Durability::Process, |old: Option<SessionRecord>| {
        match old {
            None => (Next::Keep, ()),
            Some(old) => {
                let mut record = old.clone();
                change(&mut record);
                if record == old {
                    return (Next::Keep, ());
                }
                record.heard = now;
                (Next::Put(record), ())
            }
        }
    })
    .await
}

/// A session goes on under another id: its agent goes with it, and its old id leads there.
pub(crate) async fn rebind(core: &Core, harness: &str, from: &str, to: &Session) -> Result<(), StoreError> {
    if from == to.id {
        return Ok(());
    }
    let old = SessionRef { harness: harness.to_owned(), id: from.to_owned() };
    let new = SessionRef { harness: harness.to_owned(), id: to.id.clone() };
    let agent = session_record(core, &old).await?.and_then(|record| record.agent);
    observe(core, harness, to, None).await?;
    if let Some(agent) = &agent {
        bind_agent(core, agent, &new).await?;
    }
    change_session(core, &old, |record| {
        record.succeeded_by = Some(to.id.clone());
        record.activity = Activity::Ended;
        record.agent = None;
    })
    .await
}

/// Binds an agent to a session, on both sides.
pub(crate) async fn bind_agent(core: &Core, name: &AgentName, session: &SessionRef) -> Result<(), StoreError> {
    let now = core.machine.now();
    let machine = core.machine.name().to_owned();
    change_session(core, session, |record| {
        record.agent = Some(name.clone());
        record.succeeded_by = None;
    })
    .await?;
    records::update(core.shared.as_ref(), &keys::meta(name), Durability::Synced, |agent: Option<Agent>| match agent {
        None => (Next::Keep, ()),
        Some(mut agent) => {
            if agent.session.as_ref() == Some(session) && agent.machine == machine {
                return (Next::Keep, ());
            }
            agent.session = Some(session.clone());
            agent.machine.clone_from(&machine);
            agent.moved_from = None;
            agent.bound = now;
            (Next::Put(agent), ())
        }
    })
    .await
}
