//! Session records of this machine: created, bound, moved, ended.

use store::{Durability, StoreError};

use crate::agents;
use crate::agents::Agent;
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::Process;
use crate::sessions::archive;
use crate::sessions::{Activity, Session, SessionRecord, SessionRef, Sign};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// How many successors of a session to follow before assuming a cycle.
const LONGEST_CHAIN: usize = 64;

/// A session of this machine, for listings. Never shows the route hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its record, without the route hint.
    pub record: SessionRecord,
    /// Its activity: ended if its process is dead, whatever its last hook said.
    pub activity: Activity,
}

pub(crate) async fn sessions(core: &Core) -> Result<Vec<SessionView>, StoreError> {
    let live = live_sessions(core).await?.into_iter();
    let view = |(record, activity)| SessionView { record: SessionRecord { route_hint: None, ..record }, activity };
    Ok(live.map(view).collect())
}

/// The records of live sessions with their route hints, which must not be shown, and their activity.
pub(crate) async fn live_sessions(core: &Core) -> Result<Vec<(SessionRecord, Activity)>, StoreError> {
    let mut live = Vec::new();
    for key in core.local.list(&keys::sessions()).await? {
        let (revision, record) = match records::load::<SessionRecord>(core.local.as_ref(), &key).await {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            // A damaged record must hide only its own session.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(%key, %error, "a damaged session record is skipped");
                continue;
            }
            Err(error) => return Err(error),
        };
        let activity = self::activity(core, &record);
        if activity == Activity::Ended {
            // Other machines have to be told first: the task that tells them puts it away.
            if core.topology.has_other_machines() {
                continue;
            }
            archive::put_away(core, revision, &record).await;
        } else {
            live.push((record, activity));
        }
    }
    Ok(live)
}

pub(crate) async fn session(core: &Core, session: &SessionRef) -> Result<Option<SessionView>, StoreError> {
    let Some(record) = current_record(core, session).await? else { return Ok(None) };
    let activity = self::activity(core, &record);
    Ok(Some(SessionView { record: SessionRecord { route_hint: None, ..record }, activity }))
}

/// A session's activity, by its record and its process.
pub(crate) fn activity(core: &Core, record: &SessionRecord) -> Activity {
    match record.process {
        Some(process) if !core.machine.lives(process) => Activity::Ended,
        Some(_) | None => record.activity,
    }
}

/// The record of exactly this session.
pub(crate) async fn session_record(core: &Core, session: &SessionRef) -> Result<Option<SessionRecord>, StoreError> {
    for key in [keys::session(session), keys::ended_session(session)] {
        if let Some((_, record)) = records::load::<SessionRecord>(core.local.as_ref(), &key).await? {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// The record of this session or of its successor.
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

/// The agent that acts in a session: its own, or its root session's if it is a subagent that has not registered.
pub(crate) async fn agent_of(core: &Core, session: &SessionRef) -> Result<Option<AgentName>, StoreError> {
    let Some(record) = current_record(core, session).await? else { return Ok(None) };
    if record.agent.is_some() {
        return Ok(record.agent);
    }
    let Some(parent) = record.parent else { return Ok(None) };
    let parent = SessionRef { harness: session.harness.clone(), id: parent };
    Ok(current_record(core, &parent).await?.and_then(|record| record.agent))
}

/// Whether another machine adopted an agent while this one was offline or asleep. Then that machine delivers its mail.
pub(crate) async fn lives_elsewhere(core: &Core, name: &AgentName) -> Result<bool, StoreError> {
    if !core.topology.has_other_machines() {
        return Ok(false);
    }
    Ok(agents::list::load_agent(core, name).await?.is_some_and(|agent| agent.machine != core.machine.name()))
}

/// Whether a hook reported that a session succeeds no other one.
pub(crate) async fn stands_alone(core: &Core, session: &SessionRef) -> Result<bool, StoreError> {
    Ok(session_record(core, session).await?.is_some_and(|record| record.stands_alone))
}

/// Notes what an adapter or a connection reports about a session, with its activity if known.
pub(crate) async fn observe(
    core: &Core,
    harness: &str,
    session: &Session,
    activity: Option<Activity>,
) -> Result<SessionRecord, StoreError> {
    let now = core.machine.now();
    let reference = SessionRef { harness: harness.to_owned(), id: session.id.clone() };
    let process: Option<Process> = session.process.and_then(|pid| core.machine.process(pid));
    let observed = |old: Option<SessionRecord>| {
        let mut record = old.clone().unwrap_or_else(|| SessionRecord {
            session: reference.clone(),
            parent: None,
            workdir: String::new(),
            process: None,
            process_space: None,
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
        // The named process no longer runs: a late hook of it is no sign of life.
        let late = session.process.is_some() && process.is_none();
        record.process = match process {
            None if died && !late => None,
            None => record.process,
            Some(process) => Some(process),
        };
        if process.is_some() {
            record.process_space = core.machine.process_space();
        }
        match activity {
            Some(activity) => record.activity = activity,
            // A session that reports is not over: after a close or a crash it was resumed, and no longer waits for an
            // answer to an old question.
            None if record.activity == Activity::Ended || (died && !late) => record.activity = Activity::Idle,
            None => {}
        }
        // A new time alone is not worth a write on every tool call.
        let only_heard = old.as_ref().is_some_and(|old| {
            now.since(old.heard) < 5_000 && SessionRecord { heard: old.heard, ..record.clone() } == *old
        });
        record.heard = now;
        if only_heard { (Next::Keep, record) } else { (Next::Put(record.clone()), record) }
    };
    let key = keys::session(&reference);
    let known = |old: Option<SessionRecord>| match old {
        Some(_) => {
            let (next, record) = observed(old);
            (next, Some(record))
        }
        None => (Next::Keep, None),
    };
    // A session that is not among the live ones is new, or was resumed.
    if let Some(record) = records::update(core.local.as_ref(), &key, Durability::Process, known).await? {
        return Ok(record);
    }
    archive::bring_back(core, &reference).await?;
    records::update(core.local.as_ref(), &key, Durability::Process, observed).await
}

/// Changes a session's record; does nothing if there is none.
pub(crate) async fn change_session(
    core: &Core,
    session: &SessionRef,
    mut change: impl FnMut(&mut SessionRecord) + Send,
) -> Result<(), StoreError> {
    let now = core.machine.now();
    let key = keys::session(session);
    let mut changed = |old: Option<SessionRecord>| {
        let Some(old) = old else { return (Next::Keep, false) };
        let mut record = old.clone();
        change(&mut record);
        if record == old {
            return (Next::Keep, true);
        }
        record.heard = now;
        (Next::Put(record), true)
    };
    let is_there = records::update(core.local.as_ref(), &key, Durability::Process, &mut changed).await?;
    if !is_there && archive::bring_back(core, session).await? {
        records::update(core.local.as_ref(), &key, Durability::Process, &mut changed).await?;
    }
    Ok(())
}

/// Moves a session to another id: its agent moves along, and the old record points to the new one.
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

/// Binds an agent to a session, in both records.
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
