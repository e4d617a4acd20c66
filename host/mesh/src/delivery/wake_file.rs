//! The wake file of a session: a log on this machine that gets a line whenever mail should wake the session.
//!
//! A harness can watch the file itself, so even a message from a bare command line wakes an idle session while no
//! relay-mesh process is running. The lines are also the record of recent wakes for the loop guard.

use serde::{Deserialize, Serialize};
use store::{Durability, Position, StoreError};

use crate::agents::pause;
use crate::asks;
use crate::core::Core;
use crate::delivery::loop_guard::{Wakes, why_held};
use crate::delivery::serve;
use crate::messages::inbox;
use crate::messages::inboxes::Inboxes;
use crate::messages::receipt::{DeliveryStatus, Event};
use crate::messages::{Hold, Message, Priority, Trace};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::identify::CONNECTION;
use crate::sessions::record;
use crate::sessions::{Activity, SessionRecord, SessionRef};
use crate::storage::{keys, records};

/// The name of this route in receipts.
pub(crate) const ROUTE: &str = "wake-file";

/// The fields of a message that a wake needs.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub(crate) id: MessageId,
    pub(crate) from: AgentName,
    pub(crate) priority: Priority,
    pub(crate) trace: Trace,
    /// The wake file was written for it before.
    pub(crate) again: bool,
}

impl Ring {
    /// Whether the user sent it. What an event hook sends goes on with the chain of its cause.
    fn is_users(&self) -> bool {
        self.from.is_shell() && self.trace.hops == 0
    }

    pub(crate) fn of(message: &Message) -> Ring {
        Ring {
            id: message.id,
            from: message.from.clone(),
            priority: message.priority,
            trace: message.trace,
            again: false,
        }
    }
}

/// One line of a wake file.
#[derive(Serialize, Deserialize)]
struct WakeLine {
    at: Instant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<MessageId>,
    #[serde(default)]
    counts: Counts,
}

/// How the loop guard counts a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Counts {
    /// As a wake of its own: an invitation, a command.
    #[default]
    Alone,
    /// A message to an idle session, which the messages just before it have woken already.
    WithOthers,
    /// It wakes nobody, the user sent it, or it was counted before.
    Never,
}

/// Messages that follow one another within this time wake a session once, in milliseconds.
const ONE_WAKE: u64 = 2_000;
/// How many bytes of a wake file are read at a time.
const STEP: usize = 16 * 1024;

/// Writes to the wake file for a stored message, if the recipient's session on this machine can be woken. Returns
/// whether a hook of the harness was told of the file; this is noted in the receipts then.
pub(crate) async fn ring(
    core: &Core,
    to: &AgentName,
    record: Option<&SessionRecord>,
    ring: &Ring,
) -> Result<bool, StoreError> {
    let Some(record) = record.filter(|record| can_wake(core, record, ring.priority)) else { return Ok(false) };
    // Where the harness watches the file, a line would begin a turn of a paused agent. Its session's record may not say
    // so yet, or still say it.
    if pause::is_paused(core, to).await? {
        return Ok(false);
    }
    let counts = match record::activity(core, record) == Activity::Idle && !ring.is_users() && !ring.again {
        true => Counts::WithOthers,
        false => Counts::Never,
    };
    append_to_wake_file(core, &record.session, &ring.from, ring.id, counts).await?;
    if !record.watches_wake_file {
        return Ok(false);
    }
    let event = Event::Status { status: DeliveryStatus::Notified, route: ROUTE.to_owned(), evidence: None };
    inbox::receipt(core, to, &[ring.id], &event, Durability::Process).await?;
    Ok(true)
}

/// Whether a session here could be woken for mail of this priority. A bare connection has no harness that could be
/// woken: its client fetches its mail itself, so the loop guard does not limit it.
fn can_wake(core: &Core, record: &SessionRecord, priority: Priority) -> bool {
    record.session.harness != CONNECTION
        && record::activity(core, record) != Activity::Ended
        && priority > Priority::Low
}

/// Notes in the event log that the loop guard stopped a message, and asks the user whether it shall.
pub(crate) async fn note_held(core: &Core, ring: &Ring, to: &AgentName, hold: &Hold) {
    let details = serde_json::json!({ "id": ring.id, "from": ring.from, "to": to, "reason": hold.reason });
    core.event_log.note("held", details).await;
    asks::held_loop::ask(core, ring, to, hold).await;
}

/// Why the loop guard stops a message to a session; `None` if it does not. Nobody loops with the user's own shell.
pub(crate) async fn why_hold(
    core: &Core,
    record: Option<&SessionRecord>,
    ring: &Ring,
) -> Result<Option<Hold>, StoreError> {
    match record.filter(|record| can_wake(core, record, ring.priority)) {
        Some(record) if !ring.is_users() => why_not_wake(core, &record.session, &ring.from, ring.trace.hops).await,
        Some(_) | None => Ok(None),
    }
}

/// Why the loop guard would not let this sender wake a session now; `None` if it would.
pub(crate) async fn why_not_wake(
    core: &Core,
    session: &SessionRef,
    from: &AgentName,
    hops: u32,
) -> Result<Option<Hold>, StoreError> {
    let wakes = recent_wakes(core, session, from, core.machine.now()).await?;
    Ok(why_held(&core.limits.loops, hops, wakes))
}

pub(crate) async fn append_to_wake_file(
    core: &Core,
    session: &SessionRef,
    from: &AgentName,
    message: MessageId,
    counts: Counts,
) -> Result<(), StoreError> {
    let line = WakeLine { at: core.machine.now(), from: Some(from.clone()), message: Some(message), counts };
    records::append(core.local.as_ref(), &keys::wake_file(session), &line, Durability::Process).await.map(|_| ())
}

/// Writes to the wake file at the end of a turn if mail still waits: more than a turn takes has come, and nothing else
/// may ever wake the session for it.
pub(crate) async fn ring_for_the_rest(core: &Core, inboxes: &Inboxes, session: &SessionRef) -> Result<(), StoreError> {
    match record::current_record(core, session).await? {
        Some(record) => ring_if_mail_waits(core, inboxes, &record).await,
        None => Ok(()),
    }
}

/// Rings a session for mail that waits for its agent, unless what its record says keeps it from being woken.
pub(crate) async fn ring_if_mail_waits(
    core: &Core,
    inboxes: &Inboxes,
    record: &SessionRecord,
) -> Result<(), StoreError> {
    let waits = match record::own_agent(core, record).await? {
        Some(agent) if record.watches_wake_file => serve::has_deliverable(core, inboxes, &agent).await?,
        Some(_) | None => false,
    };
    if !waits || record.stopped_until(core.machine.now(), core.limits.after_stop).is_some() {
        return Ok(());
    }
    ring_unnamed(core, &record.session).await
}

/// Writes to the wake file for no message of its own.
pub(crate) async fn ring_unnamed(core: &Core, session: &SessionRef) -> Result<(), StoreError> {
    let line = WakeLine { at: core.machine.now(), from: None, message: None, counts: Counts::Never };
    records::append(core.local.as_ref(), &keys::wake_file(session), &line, Durability::Process).await.map(drop)
}

/// The path of a session's wake file, prepared for watching: creates its folder, and notes in the record that the
/// harness was told of it.
pub(crate) async fn wake_file_of(core: &Core, session: &SessionRef) -> Result<String, StoreError> {
    let wake_file = keys::wake_file(session);
    if core.local.end(&wake_file).await? == Position::START {
        ring_unnamed(core, session).await?;
    }
    record::change_session(core, session, |record| record.watches_wake_file = true).await?;
    Ok(wake_file_path(core, session))
}

/// The path of a session's wake file.
pub(crate) fn wake_file_path(core: &Core, session: &SessionRef) -> String {
    let path = core.local.file_of(&keys::wake_file(session));
    path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The wakes of late. The file is read from its end: it has a line for whatever may have woken the session, also what the
/// loop guard does not count, and lasts as long as that.
async fn recent_wakes(core: &Core, session: &SessionRef, from: &AgentName, now: Instant) -> Result<Wakes, StoreError> {
    let (store, log) = (core.local.as_ref(), keys::wake_file(session));
    let window = core.limits.loops.window;
    let mut late: Vec<WakeLine> = Vec::new();
    let mut before = store.end(&log).await?;
    loop {
        let batch = store.read_back(&log, before, STEP).await?;
        let lines =
            batch.entries.iter().rev().filter_map(|entry| serde_json::from_slice::<WakeLine>(&entry.bytes).ok());
        let lines: Vec<WakeLine> = lines.collect();
        let is_older = !lines.is_empty() && lines.iter().all(|line| now.since(line.at) >= window);
        late.extend(lines);
        if batch.at_end || is_older || batch.next >= before {
            break;
        }
        before = batch.next;
    }
    let mut wakes = Wakes::default();
    let mut last: Option<Instant> = None;
    for WakeLine { at, from: rang, counts, .. } in late.into_iter().rev() {
        let Some(rang) = rang else { continue };
        let merges = last.is_some_and(|last| at.since(last) < ONE_WAKE);
        let is_one = match counts {
            Counts::Alone => true,
            Counts::WithOthers => !merges,
            Counts::Never => false,
        };
        if is_one && now.since(at) < window {
            last = Some(at);
            wakes.count(at, rang == *from, window);
        }
    }
    Ok(wakes)
}
