//! A recorded conversation between a host and a harness, played again with an adapter in the host's place.

use serde_json::Value;

use crate::optional::driver::{Action, AgentEvent, Driver, Exchange, PromptStatus, SessionEvent, TurnEnd};
use crate::{Activity, Error};

/// Plays a conversation: `recorded` is a JSON list of pairs, `["out", FRAME]` and `["in", FRAME]`. Every frame that the
/// adapter sends must be the recorded one. When the recording goes on with a frame that the adapter has not sent, the
/// next action is done. An answer with an empty question answers the last one. Returns what was said, in short words.
pub fn converse<A: Driver>(connection: &str, recorded: &str, actions: Vec<Action>) -> Result<Vec<String>, Error> {
    let frames: Vec<(String, Value)> =
        serde_json::from_str(recorded).map_err(|error| Error::Failed(format!("the recording is no list: {error}")))?;
    let mut actions = actions.into_iter();
    let mut played = Played::default();
    played.take(A::connect(connection)?);
    for (direction, frame) in frames {
        if direction == "in" {
            let exchange = A::receive(played.memory.as_deref(), &[frame.to_string()])?;
            played.take(exchange);
            continue;
        }
        while played.unsent.is_empty() {
            let action = actions.next().ok_or_else(|| Error::Failed(format!("nobody sends {frame}")))?;
            let exchange = A::act(played.memory.as_deref(), played.filled(action))?;
            played.take(exchange);
        }
        assert_eq!(played.unsent.remove(0), frame, "what the adapter sends is not what was recorded");
    }
    for action in actions {
        let exchange = A::act(played.memory.as_deref(), played.filled(action))?;
        played.take(exchange);
    }
    assert!(played.unsent.is_empty(), "it sends more than was recorded: {:?}", played.unsent);
    Ok(played.said)
}

#[derive(Default)]
struct Played {
    memory: Option<String>,
    unsent: Vec<Value>,
    said: Vec<String>,
    /// The last question, and what was kept of it.
    asked: (String, Option<String>),
}

impl Played {
    fn take(&mut self, exchange: Exchange) {
        assert!(exchange.memory.as_deref().map_or(0, str::len) <= 64 * 1024, "the host keeps at most 64 KiB");
        self.memory = exchange.memory;
        self.unsent.extend(exchange.frames.iter().map(|frame| serde_json::from_str(frame).unwrap_or_default()));
        for SessionEvent { event, .. } in exchange.events {
            if let AgentEvent::Asks(question) = &event {
                self.asked = (question.id.clone(), question.kept.clone());
            }
            self.said.push(words(&event));
        }
    }

    fn filled(&self, action: Action) -> Action {
        match action {
            Action::Answer((session, mut reply)) if reply.question.is_empty() => {
                (reply.question, reply.kept) = self.asked.clone();
                Action::Answer((session, reply))
            }
            other => other,
        }
    }
}

/// An event in short words.
pub(crate) fn words(event: &AgentEvent) -> String {
    match event {
        AgentEvent::Ready => "ready".to_owned(),
        AgentEvent::Opened(_) => "opened".to_owned(),
        AgentEvent::Activity(Activity::Idle) => "idle".to_owned(),
        AgentEvent::Activity(Activity::Busy) => "busy".to_owned(),
        AgentEvent::Activity(Activity::NeedsInput) => "needs-input".to_owned(),
        AgentEvent::Activity(Activity::Ended) => "ended".to_owned(),
        AgentEvent::Prompt((id, status)) => format!("{} {}", &id[id.len().saturating_sub(1)..], status_word(*status)),
        AgentEvent::TurnStarted(_) => "turn".to_owned(),
        AgentEvent::TurnEnded((_, TurnEnd::Completed)) => "completed".to_owned(),
        AgentEvent::TurnEnded((_, TurnEnd::Interrupted)) => "interrupted".to_owned(),
        AgentEvent::TurnEnded((_, TurnEnd::Failed((failure, why)))) => format!("failed {failure:?} {why}"),
        AgentEvent::Piece(text) => format!("piece {text}"),
        AgentEvent::Said(text) => format!("said {text}"),
        AgentEvent::Item(item) => format!("item {:?} {:?}", item.operation, item.succeeded),
        AgentEvent::Diff(_) => "diff".to_owned(),
        AgentEvent::Asks(question) => format!("asks {:?}", question.operation),
        AgentEvent::Settled(_) => "settled".to_owned(),
        AgentEvent::UserSpoke => "user spoke".to_owned(),
        AgentEvent::Used(tokens) => format!("used {}+{} {}", tokens.input, tokens.cached_input, tokens.output),
        AgentEvent::Refused((what, why)) => format!("refused {what} {why:?}"),
        AgentEvent::Note(text) => format!("note {text}"),
        AgentEvent::Ended => "ended".to_owned(),
    }
}

fn status_word(status: PromptStatus) -> &'static str {
    match status {
        PromptStatus::Accepted => "accepted",
        PromptStatus::Shown => "shown",
        PromptStatus::Answered => "answered",
        PromptStatus::Lost => "lost",
        PromptStatus::Unknown => "unknown",
    }
}
