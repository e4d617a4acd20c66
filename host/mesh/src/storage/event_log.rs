//! The event log: every event of the mesh, in the order in which it happened.

use std::sync::Arc;

use store::{Entry, Position, Store, StoreError, Watch};

use crate::names::AgentName;
use crate::ports::machine::{Instant, Machine};
use crate::storage::write_behind::WriteBehind;
use crate::storage::{index_rule, keys};

/// How many bytes of the event log to read at a time.
pub(crate) const STEP: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When it happened.
    pub at: Instant,
    /// Its kind: one word.
    pub kind: String,
    /// All other fields.
    pub details: serde_json::Map<String, serde_json::Value>,
    /// The position after it.
    pub next: Position,
}

impl Event {
    /// Parses an event from its line; `None` if the line is not an event.
    pub(crate) fn parse(entry: &Entry) -> Option<Event> {
        let mut details: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&entry.bytes).ok()?;
        let at = Instant(details.remove("at")?.as_u64()?);
        let kind = kind_of_today(details.remove("event")?.as_str()?).to_owned();
        Some(Event { at, kind, details, next: entry.next })
    }

    /// Whether the event involves an agent.
    pub fn concerns(&self, agent: &AgentName) -> bool {
        let named = |value: &serde_json::Value| value.as_str() == Some(agent.as_str());
        ["agent", "from", "to", "by"]
            .iter()
            .filter_map(|field| self.details.get(*field))
            .any(|value| named(value) || value.as_array().is_some_and(|several| several.iter().any(named)))
    }
}

/// Every kind of event that this version writes, in alphabetical order.
pub const EVENT_KINDS: [&str; 38] = [
    "adopted",
    "agent-offline",
    "agent-online",
    "ask-answered",
    "ask-settled",
    "asked",
    "audit",
    "command-done",
    "command-run",
    "command-taken",
    "command-waits",
    "commanded",
    "deleted",
    "edit-advised",
    "edit-refused",
    "ended",
    "file-changed",
    "held",
    "invited",
    "item-started",
    "needs-input",
    "paused",
    "registered",
    "released",
    "reservation-taken",
    "reserved",
    "resumed",
    "run-ended",
    "run-started",
    "sent",
    "shell-command",
    "spawned",
    "store-replaced",
    "turn-completed",
    "turn-failed",
    "turn-started",
    "wake-failed",
    "woke",
];

/// The current name of a kind of event. Lines from before 0.1 stay in the log until retention deletes them.
pub fn kind_of_today(kind: &str) -> &str {
    match kind {
        "fell-silent" => "agent-offline",
        "came-back" => "agent-online",
        "swept" => "deleted",
        other => other,
    }
}

/// A stretch of the event log.
#[derive(Clone, Debug)]
pub struct Stretch {
    pub events: Vec<Event>,
    /// Where the next stretch begins.
    pub next: Position,
    /// Whether the log ended here when it was read.
    pub at_end: bool,
    /// How many lines could not be read as events. A damaged line costs only itself.
    pub damage: usize,
}

/// The event log of this mesh, and the lines that this process has not written yet.
pub(crate) struct EventLog {
    store: Arc<dyn Store>,
    machine: Arc<dyn Machine>,
    pub(crate) write_behind: WriteBehind,
}

impl EventLog {
    pub(crate) fn new(store: Arc<dyn Store>, machine: Arc<dyn Machine>) -> EventLog {
        EventLog { write_behind: WriteBehind::new(Arc::clone(&store)), store, machine }
    }

    /// Adds an event. Only logs an error: it must not fail the operation that the event describes.
    pub(crate) async fn note(&self, event: &'static str, mut details: serde_json::Value) {
        if let Some(fields) = details.as_object_mut() {
            fields.insert("event".to_owned(), event.into());
            fields.insert("at".to_owned(), self.machine.now().0.into());
        }
        self.note_line(event, &details).await;
    }

    /// Like `note`, for a line that is complete already.
    pub(crate) async fn note_line<T: serde::Serialize + Sync>(&self, event: &'static str, line: &T) {
        // Tests of this crate have kinds of their own.
        debug_assert!(cfg!(test) || EVENT_KINDS.contains(&event), "`{event}` is missing from the list of kinds");
        if let Err(error) = self.write_behind.log_line(&keys::global(), line).await {
            tracing::warn!(event, %error, "an event is missing from the event log");
        }
    }

    /// The events from a position on, about `bytes` of them. Continuing at the end of each stretch yields every event
    /// once.
    pub(crate) async fn read(&self, from: Position, bytes: usize) -> Result<Stretch, StoreError> {
        let batch = self.store.read(&keys::global(), from, bytes).await?;
        let mut damage = batch.damage.len();
        let mut events = Vec::with_capacity(batch.entries.len());
        for entry in &batch.entries {
            match Event::parse(entry) {
                Some(event) => events.push(event),
                None => damage += 1,
            }
        }
        Ok(Stretch { events, next: batch.next, at_end: batch.at_end, damage })
    }

    /// A position before which no event is of this time or later; the beginning if the store cannot tell.
    pub(crate) async fn since(&self, since: Instant) -> Result<Position, StoreError> {
        index_rule::first_since(self.store.as_ref(), &keys::global(), Some(since)).await
    }

    pub(crate) async fn end(&self) -> Result<Position, StoreError> {
        self.store.end(&keys::global()).await
    }

    pub(crate) async fn watch(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.store.watch(&[keys::global()]).await
    }
}
