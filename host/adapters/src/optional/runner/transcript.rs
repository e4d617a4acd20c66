//! What the host remembers of a run for its adapter, beside the adapter's own memory: the last message, which may be
//! far longer than that memory, and a message of which only pieces have come.

use mesh::ports::runner::RunEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{convert, runner};

/// The longest message that is put together of pieces, in bytes. What comes after is dropped.
const LONGEST_MESSAGE: usize = 16 * 1024 * 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Transcript {
    /// The adapter's own memory.
    pub(super) guest: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    said: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pieces: String,
}

impl Transcript {
    /// As an earlier read left it.
    pub(super) fn of(memory: Option<&Value>) -> Transcript {
        memory.and_then(|memory| Transcript::deserialize(memory).ok()).unwrap_or_default()
    }

    pub(super) fn kept(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Adds an event of the adapter's. Any but a piece ends the message that pieces have begun.
    pub(super) fn add(&mut self, event: runner::Event, events: &mut Vec<RunEvent>) {
        if let runner::Event::Piece(piece) = &event {
            if self.pieces.len() + piece.len() <= LONGEST_MESSAGE {
                self.pieces.push_str(piece);
            }
            return;
        }
        if !self.pieces.is_empty() {
            let text = std::mem::take(&mut self.pieces);
            self.said = Some(text.clone());
            events.push(RunEvent::Said { text });
        }
        if let runner::Event::Said(text) = &event {
            self.said = Some(text.clone());
        }
        events.extend(convert::event(event));
    }

    /// What the model said last.
    pub(super) fn last_said(self) -> Option<String> {
        if self.pieces.is_empty() { self.said } else { Some(self.pieces) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_one_message_over_many_reads() {
        let mut events = Vec::new();
        let mut memory = None;
        for event in [
            runner::Event::Said("before".to_owned()),
            runner::Event::Piece("to ".to_owned()),
            runner::Event::Piece("be".to_owned()),
        ] {
            let mut transcript = Transcript::of(memory.as_ref());
            transcript.add(event, &mut events);
            memory = Some(transcript.kept());
        }
        assert_eq!(Transcript::of(memory.as_ref()).last_said().as_deref(), Some("to be"));
        let mut transcript = Transcript::of(memory.as_ref());
        transcript.add(runner::Event::Note("n".to_owned()), &mut events);
        let said = |text: &str| RunEvent::Said { text: text.to_owned() };
        assert_eq!(events, [said("before"), said("to be"), RunEvent::Note { text: "n".to_owned() }]);
        assert_eq!(transcript.last_said().as_deref(), Some("to be"));
    }

    #[test]
    fn strange_memory_is_none() {
        assert!(Transcript::of(Some(&Value::from("x"))).last_said().is_none());
    }
}
