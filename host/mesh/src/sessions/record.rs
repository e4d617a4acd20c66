//! Session records of this machine: created, bound, moved, ended.

use store::{Durability, StoreError};

use crate::agents;
use crate::agents::{Agent, remote_presence};
use crate::core::Core;
use crate::names::AgentName;
use crate::ports::machine::{Life, Process};
use crate::sessions::archive;
use crate::sessions::screens;
use crate::sessions::{Activity, Session, SessionRecord, SessionRef};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// The most processes that are remembered beside the latest one.
const MOST_TERMINALS: usize = 8;
/// How many successors of a session to follow before assuming a cycle.
const LONGEST_CHAIN: usize = 64;

/// A session of this machine, for listings. Never shows the route hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its record, without the route hint.
    pub record: SessionRecord,
    /// Its activity: ended if its process is dead, whatever its last hook said.
    pub activity: Activity,
    /// For how many milliseconds its mail still waits for the user who stopped it.
    pub stopped_for: Option<u64>,
}

fn view(core: &Core, record: SessionRecord, activity: Activity) -> SessionView {
    let now = core.machine.now();
    let stopped_for = record.stopped_until(now, core.limits.after_stop).map(|until| until.since(now));
    SessionView { record: SessionRecord { route_hint: None, ..record }, activity, stopped_for }
}

pub(crate) async fn sessions(core: &Core) -> Result<Vec<SessionView>, StoreError> {
    let live = live_sessions(core).await?.into_iter();
    Ok(live.map(|(record, activity)| view(core, record, activity)).collect())
}

/// The records of live sessions with their route hints, which must not be shown, and their activity.
pub(crate) async fn live_sessions(core: &Core) -> Result<Vec<(SessionRecord, Activity)>, StoreError> {
    let (mut live, mut is_told) = (Vec::new(), true);
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
            // Where other machines cannot be told now, the next listing tries again.
            if is_told && let Err(error) = remote_presence::tell_of_end(core, revision, &record).await {
                tracing::debug!(%key, %error, "the end of a session is not reported yet");
                is_told = false;
            }
        } else {
            live.push((record, activity));
        }
    }
    Ok(live)
}

pub(crate) async fn session(core: &Core, session: &SessionRef) -> Result<Option<SessionView>, StoreError> {
    let Some(record) = current_record(core, session).await? else { return Ok(None) };
    let activity = self::activity(core, &record);
    let agent = own_agent(core, &record).await?;
    Ok(Some(view(core, SessionRecord { agent, ..record }, activity)))
}

/// A session's activity, by its record, its process and its terminal.
pub(crate) fn activity(core: &Core, record: &SessionRecord) -> Activity {
    match has_ended(core, record) || is_left(core, record) {
        true => Activity::Ended,
        false => record.activity,
    }
}

/// Whether a session has ended, by its record and its process. One that its user has left may still finish its turn.
pub(crate) fn has_ended(core: &Core, record: &SessionRecord) -> bool {
    record.activity == Activity::Ended || life(core, record) == Some(Life::Ended)
}

/// Whether a session's process runs; none if the session has no known process.
pub(crate) fn life(core: &Core, record: &SessionRecord) -> Option<Life> {
    record.process.map(|process| life_of(core, record, process))
}

/// Whether one of the processes that a session's record names runs.
pub(crate) fn life_of(core: &Core, record: &SessionRecord, process: Process) -> Life {
    let own = core.machine.process_space().map(|own| own.namespace);
    match (process.space, record.process_space) {
        // Written by an earlier version, in another container.
        (None, Some(namespace)) if own != Some(namespace) => Life::Unknown,
        _ => core.machine.life(process),
    }
}

/// Whether nobody has a session on screen, and its user lets none work in the background.
pub(crate) fn is_left(core: &Core, record: &SessionRecord) -> bool {
    !core.limits.background && screens::is_unseen(core, record)
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
    if let Some(own) = own_agent(core, &record).await? {
        return Ok(Some(own));
    }
    let Some(parent) = record.parent else { return Ok(None) };
    let parent = SessionRef { harness: session.harness.clone(), id: parent };
    match current_record(core, &parent).await? {
        Some(record) => own_agent(core, &record).await,
        None => Ok(None),
    }
}

/// The agent that a session registered. The agent's own record says which session it has: the session's record may name
/// it still if a process was killed between the two writes. On servers, which may be out of reach, this is looked at
/// only when a session returns (see [`observe`]).
pub(crate) async fn own_agent(core: &Core, record: &SessionRecord) -> Result<Option<AgentName>, StoreError> {
    match &record.agent {
        Some(name) if !core.topology.may_be_out_of_reach() && !has_session(core, name, &record.session).await? => {
            Ok(None)
        }
        agent => Ok(agent.clone()),
    }
}

/// Whether this session is the one that an agent has.
async fn has_session(core: &Core, name: &AgentName, session: &SessionRef) -> Result<bool, StoreError> {
    let agent = agents::list::load_agent(core, name).await?;
    Ok(agent.is_some_and(|agent| agent.session.as_ref() == Some(session)))
}

/// Whether another machine adopted an agent while this one was offline or asleep. Then that machine delivers its mail.
pub(crate) async fn lives_elsewhere(core: &Core, name: &AgentName) -> Result<bool, StoreError> {
    if !core.topology.has_other_machines() {
        return Ok(false);
    }
    Ok(agents::list::load_agent(core, name).await?.is_some_and(|agent| agent.machine != core.machine.name()))
}

/// Whether a session takes over no agent of its connection: a hook reported that it succeeds no other one, or `adopt`
/// took this very agent from it.
pub(crate) async fn may_not_follow(core: &Core, session: &SessionRef, agent: &AgentName) -> Result<bool, StoreError> {
    let record = session_record(core, session).await?;
    Ok(record.is_some_and(|record| record.stands_alone || record.released.as_ref() == Some(agent)))
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
        let mut record = old.clone().unwrap_or_else(|| SessionRecord::new(reference.clone(), now));
        if session.parent.is_some() {
            record.parent.clone_from(&session.parent);
        }
        if !session.workdir.is_empty() {
            record.workdir.clone_from(&session.workdir);
        }
        if session.route_hint.is_some() {
            record.route_hint.clone_from(&session.route_hint);
        }
        let died = life(core, &record) == Some(Life::Ended);
        // The named process no longer runs: a late hook of it is no sign of life.
        let late = session.process.is_some() && process.is_none();
        record.process = match process {
            None if died && !late => None,
            None => record.process,
            Some(process) => Some(process),
        };
        if let Some(process) = process {
            // What had ended is open in the processes that it ended in no more, though those may go on with others.
            match &old {
                Some(old) if old.activity != Activity::Ended => record.others.extend(old.process),
                Some(_) | None => record.others.clear(),
            }
            let others = std::mem::take(&mut record.others).into_iter().filter(|other| !other.is(&process));
            record.others = others.filter(|other| life_of(core, &record, *other) != Life::Ended).collect();
            record.process_space = None;
            record.others.truncate(MOST_TERMINALS);
        }
        let returns = record.activity == Activity::Ended || (died && !late);
        match activity {
            Some(activity) => record.activity = activity,
            // A session that reports is not over: after a close or a crash it was resumed, and no longer waits for an
            // answer to an old question.
            None if returns => record.activity = Activity::Idle,
            None => {}
        }
        // A new time alone is not worth a write on every tool call.
        let only_heard = old.as_ref().is_some_and(|old| {
            now.since(old.heard) < 5_000 && SessionRecord { heard: old.heard, ..record.clone() } == *old
        });
        record.heard = now;
        let outcome = Observed { record: record.clone(), returns };
        if only_heard { (Next::Keep, outcome) } else { (Next::Put(record), outcome) }
    };
    let key = keys::session(&reference);
    let known = |old: Option<SessionRecord>| match old {
        Some(_) => {
            let (next, outcome) = observed(old);
            (next, Some(outcome))
        }
        None => (Next::Keep, None),
    };
    // A session that is not among the live ones is new, or was resumed.
    let outcome = match records::update(core.local.as_ref(), &key, Durability::Process, known).await? {
        Some(outcome) => outcome,
        None => {
            archive::bring_back(core, &reference).await?;
            records::update(core.local.as_ref(), &key, Durability::Process, observed).await?
        }
    };
    match outcome {
        Observed { record, returns: true } => returned(core, record).await,
        Observed { record, returns: false } => Ok(record),
    }
}

/// What a report about a session changed.
struct Observed {
    record: SessionRecord,
    /// The session had ended.
    returns: bool,
}

/// A session that has returned: meanwhile its agent may have moved to another one.
async fn returned(core: &Core, record: SessionRecord) -> Result<SessionRecord, StoreError> {
    let Some(name) = record.agent.clone() else { return Ok(record) };
    match has_session(core, &name, &record.session).await {
        Ok(true) => Ok(record),
        Ok(false) => {
            let_go(core, &record.session, &name).await?;
            Ok(SessionRecord { agent: None, ..record })
        }
        // So is the agent's mail.
        Err(error) if error.is_out_of_reach() => Ok(record),
        Err(error) => Err(error),
    }
}

/// Takes an agent from a session that it has left. An agent has one session.
pub(crate) async fn let_go(core: &Core, session: &SessionRef, name: &AgentName) -> Result<(), StoreError> {
    let without = |old: Option<SessionRecord>| match old {
        Some(record) if record.agent.as_ref() == Some(name) => (Next::Put(SessionRecord { agent: None, ..record }), ()),
        Some(_) | None => (Next::Keep, ()),
    };
    records::update(core.local.as_ref(), &keys::session(session), Durability::Process, without).await
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

/// Notes that a session has ended in a process, `None` if it is not known in which. If another one has it open still, it
/// goes on there.
pub(crate) async fn end(core: &Core, session: &SessionRef, process: Option<u32>) -> Result<(), StoreError> {
    change_session(core, session, |record| {
        let known: Vec<Process> = record.process.into_iter().chain(record.others.iter().copied()).collect();
        let (ended, mut rest): (Vec<Process>, Vec<Process>) =
            known.into_iter().partition(|known| Some(known.pid) == process && is_of_here(core, known));
        rest.retain(|other| life_of(core, record, *other) != Life::Ended);
        if !ended.is_empty() && !rest.is_empty() {
            record.process = Some(rest.remove(0));
            record.others = rest;
            return;
        }
        record.activity = Activity::Ended;
        record.watches_wake_file = false;
    })
    .await
}

/// Whether a process's id counts in this process's own PID namespace, as far as is known.
pub(crate) fn is_of_here(core: &Core, process: &Process) -> bool {
    process.space.is_none() || process.space == core.machine.process_space()
}

/// Ends every session of a harness whose adapter is no longer there, and returns how many there were.
pub(crate) async fn end_all_of(core: &Core, harness: &str) -> Result<usize, StoreError> {
    let live = live_sessions(core).await?.into_iter().map(|(record, _)| record.session);
    let of_it: Vec<SessionRef> = live.filter(|session| session.harness == harness).collect();
    for session in &of_it {
        end(core, session, None).await?;
    }
    // Whatever lists them puts those that ended aside, from where the daily cleanup deletes them.
    live_sessions(core).await?;
    Ok(of_it.len())
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

/// Takes an agent from its session, which acts as it no more until it registers anew.
pub(crate) async fn release_agent(core: &Core, name: &AgentName, session: &SessionRef) -> Result<(), StoreError> {
    let Some(current) = current_record(core, session).await? else { return Ok(()) };
    change_session(core, &current.session, |record| {
        if record.agent.as_ref() == Some(name) {
            record.agent = None;
            record.released = Some(name.clone());
        }
    })
    .await
}

/// Binds an agent to a session, in both records, and takes it from the session that it had.
pub(crate) async fn bind_agent(core: &Core, name: &AgentName, session: &SessionRef) -> Result<(), StoreError> {
    let now = core.machine.now();
    let machine = core.machine.name().to_owned();
    change_session(core, session, |record| {
        record.agent = Some(name.clone());
        record.released = None;
        record.succeeded_by = None;
    })
    .await?;
    let bind = |agent: Option<Agent>| match agent {
        None => (Next::Keep, None),
        Some(mut agent) => {
            if agent.session.as_ref() == Some(session) && agent.machine == machine {
                return (Next::Keep, None);
            }
            let before = agent.session.replace(session.clone());
            agent.machine.clone_from(&machine);
            agent.moved_from = None;
            agent.bound = now;
            (Next::Put(agent), before)
        }
    };
    let before = records::update(core.shared.as_ref(), &keys::meta(name), Durability::Synced, bind).await?;
    match before.filter(|before| before != session) {
        Some(before) => let_go(core, &before, name).await,
        None => Ok(()),
    }
}
