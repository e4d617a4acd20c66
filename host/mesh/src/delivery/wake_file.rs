//! The wake file of a session: a log on this machine that gets a line whenever mail should wake the session.
//!
//! A harness can watch the file itself, so even a message from a bare command line wakes an idle session while no
//! relay-mesh process is running. The lines are also the record of recent wakes for the loop guard.

use serde::{Deserialize, Serialize};
use store::{Durability, Position, StoreError};

use crate::agents::Agent;
use crate::core::Core;
use crate::delivery::loop_guard::{Wakes, why_held};
use crate::messages::inbox;
use crate::messages::receipt::{DeliveryStatus, Event};
use crate::messages::{Message, Priority};
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
    pub(crate) hops: u32,
}

impl Ring {
    pub(crate) fn of(message: &Message) -> Ring {
        Ring { id: message.id, from: message.from.clone(), priority: message.priority, hops: message.trace.hops }
    }
}

/// The result of writing to a wake file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rang {
    /// The line is written, and a hook of the harness was told of the file.
    Yes,
    /// No live session here watches a wake file, or the message may not interrupt.
    Nobody,
    /// The loop guard stopped it.
    Held(String),
}

/// One line of a wake file.
#[derive(Serialize, Deserialize)]
struct WakeLine {
    at: Instant,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<MessageId>,
}

/// Writes to the wake file for a stored message, if the recipient's session on this machine can be woken, and notes
/// that in the receipts. A bare connection has no harness that could be woken: its client fetches its mail itself, so
/// the loop guard does not limit it.
pub(crate) async fn ring(
    core: &Core,
    to: &Agent,
    record: Option<&SessionRecord>,
    ring: &Ring,
) -> Result<Rang, StoreError> {
    let Some(record) = record.filter(|record| record.session.harness != CONNECTION) else {
        return Ok(Rang::Nobody);
    };
    if record::activity(core, record) == Activity::Ended || ring.priority == Priority::Low {
        return Ok(Rang::Nobody);
    }
    let session = &record.session;
    if let Some(reason) = why_not_wake(core, session, &ring.from, ring.hops).await? {
        let event = Event::Held { reason: reason.clone() };
        inbox::receipt(core, &to.name, &[ring.id], &event, Durability::Process).await?;
        core.event_log
            .note("held", serde_json::json!({ "id": ring.id, "from": ring.from, "to": to.name, "reason": reason }))
            .await;
        return Ok(Rang::Held(reason));
    }
    append_to_wake_file(core, session, &ring.from, ring.id).await?;
    if !record.watches_wake_file {
        return Ok(Rang::Nobody);
    }
    let event = Event::Status { status: DeliveryStatus::Notified, route: ROUTE.to_owned(), evidence: None };
    inbox::receipt(core, &to.name, &[ring.id], &event, Durability::Process).await?;
    Ok(Rang::Yes)
}

/// Why the loop guard would not let this sender wake a session now; `None` if it would.
pub(crate) async fn why_not_wake(
    core: &Core,
    session: &SessionRef,
    from: &AgentName,
    hops: u32,
) -> Result<Option<String>, StoreError> {
    let wakes = recent_wakes(core, session, from, core.machine.now()).await?;
    Ok(why_held(&core.limits.loops, hops, wakes))
}

pub(crate) async fn append_to_wake_file(
    core: &Core,
    session: &SessionRef,
    from: &AgentName,
    message: MessageId,
) -> Result<(), StoreError> {
    let line = WakeLine { at: core.machine.now(), from: Some(from.clone()), message: Some(message) };
    records::append(core.local.as_ref(), &keys::wake_file(session), &line, Durability::Process).await.map(|_| ())
}

/// The path of a session's wake file, prepared for watching: creates its folder, and notes in the record that the
/// harness was told of it.
pub(crate) async fn wake_file_of(core: &Core, session: &SessionRef) -> Result<String, StoreError> {
    let wake_file = keys::wake_file(session);
    if core.local.end(&wake_file).await? == Position::START {
        let line = WakeLine { at: core.machine.now(), from: None, message: None };
        records::append(core.local.as_ref(), &wake_file, &line, Durability::Process).await?;
    }
    record::change_session(core, session, |record| record.watches_wake_file = true).await?;
    Ok(wake_file_path(core, session))
}

/// The path of a session's wake file.
pub(crate) fn wake_file_path(core: &Core, session: &SessionRef) -> String {
    let path = core.local.file_of(&keys::wake_file(session));
    path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

async fn recent_wakes(core: &Core, session: &SessionRef, from: &AgentName, now: Instant) -> Result<Wakes, StoreError> {
    let window = core.limits.loops.window;
    let mut wakes = Wakes::default();
    // The loop guard limits wakes, so a wake file stays short however long its session lasts.
    records::scan(core.local.as_ref(), &keys::wake_file(session), Position::START, |entry| {
        if let Ok(WakeLine { at, from: Some(rang), .. }) = serde_json::from_slice::<WakeLine>(&entry.bytes)
            && now.since(at) < window
        {
            wakes.all += 1;
            wakes.by_sender += u32::from(rang == *from);
        }
    })
    .await?;
    Ok(wakes)
}
