//! The diary: every event of the mesh, in the order in which it happened.

use store::{Entry, Position, StoreError, Watch};

use crate::Mesh;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::storage::keys;

/// How many bytes of the diary are read at a time.
const STEP: usize = 1 << 20;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// What: one word.
    pub kind: String,
    /// Everything else that is known of it.
    pub details: serde_json::Map<String, serde_json::Value>,
    /// Where the diary goes on after it.
    pub next: Position,
}

impl Event {
    /// An event from its line. None where the line is something else.
    pub(crate) fn parse(entry: &Entry) -> Option<Event> {
        let mut details: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&entry.bytes).ok()?;
        let at = Instant(details.remove("at")?.as_u64()?);
        let kind = details.remove("event")?.as_str()?.to_owned();
        Some(Event { at, kind, details, next: entry.next })
    }

    /// Whether an agent has a part in it.
    pub fn concerns(&self, agent: &AgentName) -> bool {
        let named = |value: &serde_json::Value| value.as_str() == Some(agent.as_str());
        ["agent", "from", "to", "by"]
            .iter()
            .filter_map(|field| self.details.get(*field))
            .any(|value| named(value) || value.as_array().is_some_and(|several| several.iter().any(named)))
    }
}

/// A stretch of the diary.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Its events.
    pub events: Vec<Event>,
    /// Where the next one begins.
    pub next: Position,
    /// Whether there was no more when it was read.
    pub at_end: bool,
    /// How many lines were no events. Each costs itself alone.
    pub damage: usize,
}

impl Mesh {
    /// The events from a place in the diary on, a stretch of them. Reading on from where it ends gives every
    /// event once.
    pub async fn diary(&self, from: Position) -> Result<Stretch, StoreError> {
        self.diary_part(from, STEP).await
    }

    /// The same in stretches of about so many bytes, for those who hold many of them at once.
    pub async fn diary_part(&self, from: Position, bytes: usize) -> Result<Stretch, StoreError> {
        let batch = self.shared.read(&keys::global(), from, bytes).await?;
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

    /// Where the diary ends now.
    pub async fn diary_end(&self) -> Result<Position, StoreError> {
        self.shared.end(&keys::global()).await
    }

    /// Says when the diary may have grown.
    pub async fn watch_diary(&self) -> Result<Box<dyn Watch>, StoreError> {
        self.shared.watch(&[keys::global()]).await
    }
}
