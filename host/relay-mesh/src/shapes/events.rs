//! Events of the event log: `log`.

use mesh::Event;
use mesh::names::{AgentName, MessageId};
use mesh::ports::machine::Instant;
use serde::Serialize;
use serde_json::{Map, Value};

use super::rfc3339;
use crate::render::{Show, printable_line};
use crate::screen::Screen;

/// One event: a line of `relay-mesh log`.
#[derive(Debug, Serialize)]
pub(crate) struct EventShape {
    pub(crate) at: String,
    /// The kind, one word.
    pub(crate) event: String,
    /// The other fields, which depend on the kind.
    #[serde(flatten)]
    pub(crate) details: Map<String, Value>,
    /// Whether a terminal shows it whole.
    #[serde(skip)]
    pub(crate) is_whole: bool,
}

impl EventShape {
    pub(crate) fn of(event: &Event, is_whole: bool) -> EventShape {
        EventShape { at: rfc3339(event.at), event: event.kind.clone(), details: details(event), is_whole }
    }
}

/// The message that an event is about, and its recipients; nothing if it is about none.
pub(crate) fn sent(event: &Event) -> (Option<MessageId>, Vec<AgentName>) {
    let id = event.details.get("id").and_then(|id| id.as_str()?.parse().ok());
    let to = event.details.get("to").and_then(|to| to.as_array()).into_iter().flatten();
    (id, to.filter_map(|name| name.as_str()?.parse().ok()).collect())
}

/// An event's fields except time and kind: times in RFC 3339, unknown values left out.
pub(crate) fn details(event: &Event) -> Map<String, Value> {
    let said = event.details.iter().filter(|(_, value)| !value.is_null());
    said.map(|(name, value)| match value.as_u64() {
        Some(millis) if name == "expires" => (name.clone(), rfc3339(Instant(millis)).into()),
        Some(_) | None => (name.clone(), value.clone()),
    })
    .collect()
}

impl Show for EventShape {
    fn text(&self) -> String {
        let details = details_text(&self.details);
        let gap = if details.is_empty() { "" } else { "  " };
        printable_line(&format!("{}  {}{gap}{details}", self.at, self.event))
    }

    fn text_on(&self, screen: &Screen) -> String {
        if self.is_whole { self.text() } else { screen.cut_lines(&self.text()) }
    }
}

/// The fields of an event on one line.
pub(crate) fn details_text(details: &Map<String, Value>) -> String {
    details.iter().map(|(name, value)| format!("{name}={}", words(value))).collect::<Vec<_>>().join("  ")
}

/// A value as text: lists with commas.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(several) => several.iter().map(words).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}
