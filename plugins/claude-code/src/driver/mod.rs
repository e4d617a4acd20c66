//! Drives agents by `claude -p --input-format stream-json`: one process is one session, for many turns.
//!
//! A prompt's id is its `uuid`. Claude Code tells of it by `command_lifecycle`, and takes a prompt whose turn has ended
//! only once, so one of unknown fate is given again under the same id. It counts as shown once its model begins to answer.
//! A prompt that is told of as cancelled may have been shown: so is each of a turn that was interrupted.

mod act;
mod receive;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::driver::{
    Abilities, Action, Agent, Approvals, Connection, Driver, Exchange, Launch, Memory as _, Outbox, PromptStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ClaudeCode;
use crate::runner::prepare::prepare;

/// The most prompts that are remembered: those of the running turn, and those that wait.
const MOST_PROMPTS: usize = 256;

/// What is known of a connection, which is one session.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Link {
    /// The number of the next control request.
    next: u64,
    /// What control requests were for.
    asked: BTreeMap<String, Purpose>,
    session: String,
    /// A turn runs.
    busy: bool,
    /// The prompt that was given and whose turn has not begun yet.
    begins: Option<String>,
    /// How far the prompts are whose end is not known.
    prompts: Vec<(String, PromptState)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum PromptState {
    Queued,
    Started,
    Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Purpose {
    Initialize,
    /// Its answer says nothing.
    Nothing,
}

impl Driver for ClaudeCode {
    fn connections(agent: &Agent, resume: Option<&str>) -> Result<Vec<Connection>, Error> {
        let launch = prepare(&agent.task(resume))?;
        let launch = match agent.approvals {
            Approvals::Ask => launch,
            Approvals::Refuse => launch.option("unasked", []),
        };
        Ok(vec![Connection {
            name: "stream-json".into(),
            start: Launch { run: "stream-json".into(), ..launch },
            abilities: Abilities::STEER | Abilities::INTERRUPT | Abilities::ASK | Abilities::RESUME | Abilities::ONCE,
            proves: PromptStatus::Shown,
        }])
    }

    fn connect(_: &str) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::default(), Outbox::default());
        link.control(json!({"subtype": "initialize"}), Purpose::Initialize, &mut out);
        out.exchange(&link)
    }

    fn act(memory: Option<&str>, action: Action) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::remembered(memory)?, Outbox::default());
        link.act(action, &mut out);
        out.exchange(&link)
    }

    fn receive(memory: Option<&str>, frames: &[String]) -> Result<Exchange, Error> {
        let (mut link, mut out) = (Link::remembered(memory)?, Outbox::default());
        for frame in frames {
            if let Ok(frame @ Value::Object(_)) = serde_json::from_str(frame) {
                link.receive(&frame, &mut out);
            }
        }
        out.exchange(&link)
    }
}

impl Link {
    fn control(&mut self, request: Value, purpose: Purpose, out: &mut Outbox) {
        self.next += 1;
        let id = format!("relay-{}", self.next);
        out.send(&json!({"type": "control_request", "request_id": id, "request": request}));
        self.asked.insert(id, purpose);
    }

    fn remember(&mut self, prompt: &str, state: PromptState) {
        match self.prompts.iter_mut().find(|(id, _)| id == prompt) {
            Some((_, known)) => *known = state,
            None => self.prompts.push((prompt.to_owned(), state)),
        }
        let over = self.prompts.len().saturating_sub(MOST_PROMPTS);
        self.prompts.drain(..over);
    }
}
