//! Presence, derived from evidence: a process, a session, a hook; never from a timer alone.

use crate::agents::list::{Prefetched, PrefetchedHeartbeat, PrefetchedMail};
use crate::agents::{Agent, AgentSummary, Presence};
use crate::core::Core;
use crate::messages::inboxes::Inboxes;
use crate::names::AgentName;
use crate::ports::machine::{Instant, Life};
use crate::sessions::connections::Connections;
use crate::sessions::identify::CONNECTION;
use crate::sessions::record;
use crate::sessions::screens;
use crate::sessions::{Activity, ConnectionId, SessionRecord, SessionRef, Sign};
use crate::storage::{keys, records};

/// For how long nothing is heard of a session that works before its harness is asked, in milliseconds.
const ASKED_AFTER: u64 = 10_000;

/// The evidence about an agent's session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    /// The session's record, if the session is on this machine.
    pub(crate) record: Option<SessionRecord>,
    /// Whether the session's process runs; `None` if its process is not known.
    pub(crate) process_runs: Option<bool>,
    /// Whether its process cannot be looked up, because it is in another PID namespace. Then its heartbeat counts.
    pub(crate) is_elsewhere: bool,
    /// Whether no terminal shows the session any more, as far as is known.
    pub(crate) unseen: Unseen,
    /// The last heartbeat of an agent that has no session here.
    pub(crate) heartbeat: Option<Instant>,
    /// The activity of its session on another machine, as reported by that machine.
    pub(crate) told: Option<Activity>,
}

/// Whether a session is on a screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// It may be, or that is not known.
    #[default]
    No,
    /// Its terminal was closed, or shows another session: it is offline.
    Offline,
    /// So it is, and its user lets sessions work in the background.
    Background,
}

/// Derives the presence, and the sentence that gives the evidence.
fn judge(agent: &Agent, traces: &Traces, now: Instant, away_after: u64) -> (Presence, String) {
    let heard = last_heard(agent, traces);
    let silence = now.since(heard);
    if agent.moved_from.as_ref() == Some(&agent.machine) {
        return (Presence::Offline, "was taken from its session, and no caller has registered as it since".to_owned());
    }
    if let Some(from) = &agent.moved_from {
        return (Presence::Offline, format!("was adopted from `{from}`, and has not registered here since"));
    }
    match &traces.record {
        Some(record) => match (record.activity, evidence_of_process(record, traces)) {
            (Activity::Ended, _) => {
                (Presence::Offline, format!("its session ended {} ago", span(now.since(record.heard))))
            }
            (_, Some(false)) => (Presence::Offline, "its process no longer runs".to_owned()),
            _ if traces.unseen == Unseen::Offline => (Presence::Offline, "no terminal shows it".to_owned()),
            (Activity::Busy, _) if traces.unseen == Unseen::Background => {
                (Presence::Busy, "works in the background: no terminal shows it".to_owned())
            }
            (Activity::Idle, _) if traces.unseen == Unseen::Background => {
                (Presence::Idle, "waits in the background: no terminal shows it".to_owned())
            }
            (Activity::Busy, Some(true)) => (Presence::Busy, format!("works, heard {} ago", span(silence))),
            (Activity::NeedsInput, Some(true)) => (Presence::NeedsInput, "waits for its user".to_owned()),
            (Activity::Idle, Some(true) | None) if record.stopped.is_some() && silence < away_after => {
                (Presence::Idle, format!("its user stopped it, heard {} ago", span(silence)))
            }
            (Activity::Idle, Some(true)) => (Presence::Idle, format!("waits, heard {} ago", span(silence))),
            (Activity::Busy, None) if silence < away_after => {
                (Presence::Busy, format!("works, heard {} ago", span(silence)))
            }
            (Activity::NeedsInput, None) if silence < away_after => {
                (Presence::NeedsInput, format!("waits for its user, heard {} ago", span(silence)))
            }
            (Activity::Idle, None) if silence < away_after => {
                (Presence::Idle, format!("waits, heard {} ago", span(silence)))
            }
            (Activity::Busy | Activity::NeedsInput | Activity::Idle, None) => {
                let what = match (traces.is_elsewhere, record.shown_by) {
                    (true, _) => "its process is in another PID namespace, such as a container's",
                    (false, Sign::Calls) => "its client holds no stream open",
                    (false, Sign::Process | Sign::Stream) => "its process is not known",
                };
                (Presence::Away, format!("nothing heard for {}, and {what}", span(silence)))
            }
        },
        None => match (traces.told, silence < away_after) {
            (Some(Activity::Ended), _) => {
                (Presence::Offline, format!("its session on another machine ended {} ago", span(silence)))
            }
            (Some(Activity::Busy), true) => {
                (Presence::Busy, format!("works on another machine, heard {} ago", span(silence)))
            }
            (Some(Activity::NeedsInput), true) => {
                (Presence::NeedsInput, "waits for its user on another machine".to_owned())
            }
            (Some(Activity::Idle), true) => {
                (Presence::Idle, format!("waits on another machine, heard {} ago", span(silence)))
            }
            (Some(Activity::Busy | Activity::NeedsInput | Activity::Idle), false) => {
                (Presence::Away, format!("nothing heard from its machine for {}", span(silence)))
            }
            (None, true) => (Presence::Idle, format!("heard {} ago", span(silence))),
            (None, false) => (Presence::Away, format!("nothing heard for {}", span(silence))),
        },
    }
}

/// Whether the process proves that the session lives. A running server with many clients proves nothing for a client
/// that holds no stream open to it; if the server ended, the session ended.
fn evidence_of_process(record: &SessionRecord, traces: &Traces) -> Option<bool> {
    match record.shown_by {
        Sign::Process | Sign::Stream => traces.process_runs,
        Sign::Calls => traces.process_runs.filter(|runs| !runs),
    }
}

/// Whether an agent is here. It may be silent for long if no evidence says that it left.
pub(crate) fn is_here(presence: Presence) -> bool {
    match presence {
        Presence::Busy | Presence::NeedsInput | Presence::Idle => true,
        Presence::Away | Presence::Offline => false,
    }
}

/// The agent's most recent sign of life.
pub(crate) fn last_heard(agent: &Agent, traces: &Traces) -> Instant {
    let record = traces.record.as_ref();
    let record = record.map(|record| if traces.is_elsewhere { record.last_sign() } else { record.heard });
    [Some(agent.bound), record, traces.heartbeat].into_iter().flatten().max().unwrap_or(agent.bound)
}

/// A duration in one unit, for display.
pub(crate) fn span(milliseconds: u64) -> String {
    match milliseconds / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// Collects the evidence about an agent's session.
pub(crate) async fn traces(core: &Core, agent: &Agent) -> Result<Traces, store::StoreError> {
    traces_beside(core, agent, PrefetchedHeartbeat::Unknown).await
}

/// Like `traces`, with a heartbeat that a listing may have loaded already.
async fn traces_beside(
    core: &Core,
    agent: &Agent,
    heartbeat: PrefetchedHeartbeat,
) -> Result<Traces, store::StoreError> {
    let here = agent.machine == core.machine.name();
    let record = match &agent.session {
        Some(session) if here => record::session_record(core, session).await?,
        Some(_) | None => None,
    };
    let life = record.as_ref().and_then(|record| record::life(core, record));
    let (process_runs, is_elsewhere) = match life {
        Some(Life::Runs) => (Some(true), false),
        Some(Life::Ended) => (Some(false), false),
        Some(Life::Unknown) => (None, true),
        None => (None, false),
    };
    let unseen = match &record {
        Some(record) if record::is_left(core, record) => Unseen::Offline,
        Some(record) if screens::is_unseen(core, record) => Unseen::Background,
        Some(_) | None => Unseen::No,
    };
    // Hooks note a session's signs of life in its record. Heartbeats are written only for agents without a session
    // here.
    let heartbeat: Option<Heartbeat> = match (&record, heartbeat) {
        (Some(_), _) | (None, PrefetchedHeartbeat::Nothing) => None,
        (None, PrefetchedHeartbeat::Given(heartbeat)) => Some(heartbeat),
        (None, PrefetchedHeartbeat::Unknown) => {
            let found = records::load(core.shared.as_ref(), &keys::heartbeat(&agent.name)).await?;
            found.map(|(_, heartbeat)| heartbeat)
        }
    };
    Ok(Traces {
        record,
        process_runs,
        is_elsewhere,
        unseen,
        heartbeat: heartbeat.map(|heartbeat| heartbeat.at),
        told: heartbeat.and_then(|heartbeat| heartbeat.activity),
    })
}

/// An agent's current evidence and the presence derived from it.
pub(crate) async fn judged(core: &Core, agent: &Agent) -> Result<(Traces, Presence, String), store::StoreError> {
    judged_beside(core, agent, PrefetchedHeartbeat::Unknown).await
}

/// Like `judged`, with a heartbeat that a listing may have loaded already.
pub(crate) async fn judged_beside(
    core: &Core,
    agent: &Agent,
    heartbeat: PrefetchedHeartbeat,
) -> Result<(Traces, Presence, String), store::StoreError> {
    let traces = traces_beside(core, agent, heartbeat).await?;
    let (presence, why) = judge(agent, &traces, core.machine.now(), core.limits.away_after);
    Ok((traces, presence, why))
}

pub(crate) async fn presence(core: &Core, agent: &Agent) -> Result<Presence, store::StoreError> {
    judged(core, agent).await.map(|(_, presence, _)| presence)
}

pub(crate) async fn note_stream(
    core: &Core,
    connections: &Connections,
    connection: &ConnectionId,
    sign: Sign,
) -> Result<(), store::StoreError> {
    connections.set_stream(connection, sign);
    let session = SessionRef { harness: CONNECTION.to_owned(), id: connection.0.clone() };
    record::change_session(core, &session, |record| record.shown_by = sign).await
}

pub(crate) async fn seen(core: &Core, inboxes: &Inboxes, agent: Agent) -> Result<AgentSummary, store::StoreError> {
    seen_beside(core, inboxes, Box::new(agent), &Prefetched::UNKNOWN).await
}

/// Like `seen`, with what a listing has loaded already.
pub(crate) async fn seen_beside(
    core: &Core,
    inboxes: &Inboxes,
    agent: Box<Agent>,
    beside: &Prefetched,
) -> Result<AgentSummary, store::StoreError> {
    let (traces, presence, evidence) = judged_beside(core, &agent, beside.heartbeat).await?;
    let (presence, evidence) = match &traces.record {
        Some(record) if presence == Presence::Busy => {
            by_its_harness(core, record).await.unwrap_or((presence, evidence))
        }
        Some(_) | None => (presence, evidence),
    };
    let waiting = match beside.mail {
        PrefetchedMail::Nothing => 0,
        PrefetchedMail::Counted(messages) => messages,
        PrefetchedMail::Unknown => self::waiting(core, inboxes, &agent.name).await?,
    };
    Ok(AgentSummary {
        presence,
        evidence,
        last_heard: Some(last_heard(&agent, &traces)),
        waiting,
        paused: false,
        agent,
    })
}

/// What the harness itself says of a session that no hook has told of for a while: a turn may end without one, as where
/// a user presses Esc. None if it says nothing else than the hooks did.
async fn by_its_harness(core: &Core, record: &SessionRecord) -> Option<(Presence, String)> {
    let silence = core.machine.now().since(record.heard);
    if silence < ASKED_AFTER {
        return None;
    }
    let harness = core.harnesses.get(&record.session.harness).await.ok().flatten()?;
    match harness.activity_of(&record.session.id).await.ok()? {
        Activity::Idle => Some((Presence::Idle, format!("waits, as its harness says; heard {} ago", span(silence)))),
        Activity::NeedsInput => Some((Presence::NeedsInput, "waits for its user, as its harness says".to_owned())),
        Activity::Busy | Activity::Ended => None,
    }
}

/// The number of messages that an agent has not got yet, or may not have: what it has fetched in a turn that goes on does
/// not count.
pub(crate) async fn waiting(core: &Core, inboxes: &Inboxes, name: &AgentName) -> Result<usize, store::StoreError> {
    let inbox = inboxes.of(name);
    let mut inbox = inbox.lock().await;
    inbox.refresh(core.shared.as_ref(), name).await?;
    let fetched = inbox.open.engaged().filter(|slot| slot.history.handed.is_some() && slot.history.status().settles());
    Ok(inbox.open.len() - fetched.count())
}

/// Notes a heartbeat of an agent without a session.
pub(crate) async fn put_heartbeat(core: &Core, name: &AgentName) -> Result<(), store::StoreError> {
    let at = core.machine.now();
    let put = |_: Option<Heartbeat>| (records::Next::Put(Heartbeat { at, activity: None }), ());
    records::update(core.shared.as_ref(), &keys::heartbeat(name), store::Durability::Process, put).await
}

/// Notes a heartbeat of an agent without a session, at most every 15 s. Only logs an error: a heartbeat is not worth
/// failing a command.
pub(crate) async fn beat(core: &Core, name: &AgentName) {
    let at = core.machine.now();
    let outcome = records::update(
        core.shared.as_ref(),
        &keys::heartbeat(name),
        store::Durability::Process,
        |old: Option<Heartbeat>| match old {
            Some(old) if at.since(old.at) < 15_000 => (records::Next::Keep, ()),
            Some(_) | None => (records::Next::Put(Heartbeat { at, activity: None }), ()),
        },
    )
    .await;
    if let Err(error) = outcome {
        tracing::debug!(agent = %name, %error, "the heartbeat was not written");
    }
}

/// An agent's last sign of life, for readers that do not see its session: it has none, or it is on another machine.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Heartbeat {
    pub(crate) at: Instant,
    /// The activity of its session, as reported by its own machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) activity: Option<Activity>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{Origin, Profile};
    use crate::sessions::SessionRef;

    fn check(activity: Option<Activity>, process_runs: Option<bool>, silence: u64, expected: &str) {
        check_shown_by(Sign::Process, activity, process_runs, silence, expected);
    }

    fn check_shown_by(
        shown_by: Sign,
        activity: Option<Activity>,
        process_runs: Option<bool>,
        silence: u64,
        expected: &str,
    ) {
        let now = Instant(100_000_000);
        let session = SessionRef { harness: "h".to_owned(), id: "s".to_owned() };
        let heard = Instant(now.0 - silence);
        let agent = Agent {
            name: "alice".parse().expect("a name"),
            profile: Profile::default(),
            origin: Origin::Session,
            session: Some(session.clone()),
            machine: "here".to_owned(),
            registered: Instant(0),
            bound: Instant(0),
            moved_from: None,
            key_digest: None,
        };
        let record = activity.map(|activity| SessionRecord {
            workdir: "/w".to_owned(),
            shown_by,
            activity,
            ..SessionRecord::new(session, heard)
        });
        let traces =
            Traces { record, process_runs, heartbeat: activity.is_none().then_some(heard), ..Traces::default() };
        let (presence, why) = judge(&agent, &traces, now, 600_000);
        assert_eq!(format!("{}: {why}", presence.as_str()), expected);
    }

    #[test]
    fn presence_follows_evidence_and_not_recency_alone() {
        check(Some(Activity::Busy), Some(true), 5_000, "busy: works, heard 5 s ago");
        check(Some(Activity::Busy), Some(true), 50_000_000, "busy: works, heard 13 h ago");
        check(Some(Activity::Idle), Some(true), 3_600_000, "idle: waits, heard 60 min ago");
        check(Some(Activity::NeedsInput), Some(true), 3_600_000, "needs-input: waits for its user");
        check(Some(Activity::Idle), Some(false), 1_000, "offline: its process no longer runs");
        check(Some(Activity::Ended), Some(true), 1_000, "offline: its session ended 1 s ago");
        check(Some(Activity::Idle), None, 1_000, "idle: waits, heard 1 s ago");
        check(Some(Activity::Idle), None, 660_000, "away: nothing heard for 11 min, and its process is not known");
        check(None, None, 1_000, "idle: heard 1 s ago");
        check(None, None, 660_000, "away: nothing heard for 11 min");
    }

    #[test]
    fn another_machine_is_believed_for_as_long_as_it_is_heard() {
        let check = |told, silence, expected: &str| {
            let now = Instant(100_000_000);
            let agent = Agent {
                name: "alice".parse().expect("a name"),
                profile: Profile::default(),
                origin: Origin::Session,
                session: Some(SessionRef { harness: "h".to_owned(), id: "s".to_owned() }),
                machine: "there".to_owned(),
                registered: Instant(0),
                bound: Instant(0),
                moved_from: None,
                key_digest: None,
            };
            let heartbeat = Some(Instant(now.0 - silence));
            let traces = Traces { heartbeat, told, ..Traces::default() };
            let (presence, why) = judge(&agent, &traces, now, 600_000);
            assert_eq!(format!("{}: {why}", presence.as_str()), expected);
        };
        check(Some(Activity::Busy), 5_000, "busy: works on another machine, heard 5 s ago");
        check(Some(Activity::Idle), 5_000, "idle: waits on another machine, heard 5 s ago");
        check(Some(Activity::NeedsInput), 5_000, "needs-input: waits for its user on another machine");
        check(Some(Activity::Idle), 660_000, "away: nothing heard from its machine for 11 min");
        check(Some(Activity::Ended), 5_000, "offline: its session on another machine ended 5 s ago");
    }

    #[test]
    fn that_a_host_runs_is_no_sign_of_each_of_its_clients() {
        let check = |sign, runs, silence, expected| check_shown_by(sign, Some(Activity::Idle), runs, silence, expected);
        check(Sign::Stream, Some(true), 3_600_000, "idle: waits, heard 60 min ago");
        check(Sign::Calls, Some(true), 1_000, "idle: waits, heard 1 s ago");
        check(Sign::Calls, Some(true), 660_000, "away: nothing heard for 11 min, and its client holds no stream open");
        for sign in [Sign::Stream, Sign::Calls] {
            check(sign, Some(false), 1_000, "offline: its process no longer runs");
        }
    }
}
