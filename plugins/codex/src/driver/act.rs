//! What an agent is to do, as requests.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::driver::{Action, AgentEvent, Outbox, Prompt};
use serde_json::{Value, json};

use super::{Link, Purpose, thread};

/// The turns of one page that is looked through for prompts after a break, the newest first.
const TURNS: u32 = 100;
/// The most prompts of a thread that are waited for.
const MOST_GIVEN: usize = 32;
/// The name under which a turn's context stands before the model.
const CONTEXT: &str = "relay-mesh";

impl Link {
    pub(super) fn act(&mut self, action: Action, out: &mut Outbox) -> Result<(), Error> {
        match action {
            Action::Begin(agent) => {
                self.requests.ask(out, "thread/start", thread::parameters(&agent)?, Purpose::Begin);
            }
            Action::Resume((id, agent)) => {
                let mut parameters = thread::parameters(&agent)?;
                parameters["threadId"] = json!(id);
                parameters["excludeTurns"] = json!(true);
                self.requests.ask(out, "thread/resume", parameters, Purpose::Resume(id));
            }
            Action::Prompt((id, prompt)) => {
                let begins = |purpose: &Purpose| matches!(purpose, Purpose::Prompt(of, _) if *of == id);
                let runs = self.threads.get(&id).is_some_and(|thread| thread.turn.is_some());
                let idle = !runs && !self.requests.pending().any(begins);
                if idle {
                    self.give(&id, &prompt, out);
                } else {
                    // A running turn would take it as further text.
                    out.refuse(Some(&id), &prompt.id, Error::Busy(0));
                }
            }
            Action::Steer((id, prompt)) => self.steer(&id, &prompt, out),
            Action::Interrupt(id) => self.interrupt(&id, out),
            Action::Answer((id, reply)) => self.answer(&id, reply, out),
            Action::Account((id, prompts)) => {
                self.account(id, prompts.into_iter().map(|prompt| prompt.id).collect(), None, out);
            }
            Action::End(id) => {
                self.interrupt(&id, out);
                self.requests.ask(out, "thread/unsubscribe", json!({"threadId": id}), Purpose::End(id));
            }
        }
        Ok(())
    }

    fn give(&mut self, id: &str, prompt: &Prompt, out: &mut Outbox) {
        self.remember_given(id, prompt);
        let purpose = Purpose::Prompt(id.to_owned(), prompt.id.clone());
        let mut asked = json!({"threadId": id, "input": input(prompt), "clientUserMessageId": prompt.id});
        if let Some(context) = &prompt.context {
            asked["additionalContext"] = json!({CONTEXT: {"kind": "application", "value": context}});
        }
        self.requests.ask(out, "turn/start", asked, purpose);
    }

    fn remember_given(&mut self, id: &str, prompt: &Prompt) {
        if let Some(thread) = self.threads.get_mut(id) {
            // The oldest may be of a turn that ended before Codex kept it.
            thread.given.drain(..thread.given.len().saturating_sub(MOST_GIVEN - 1));
            thread.given.push(prompt.id.clone());
        }
    }

    fn steer(&mut self, id: &str, prompt: &Prompt, out: &mut Outbox) {
        let Some(turn) = self.threads.get(id).and_then(|thread| thread.turn.clone()) else {
            return out.refuse(Some(id), &prompt.id, Error::Busy(0));
        };
        self.remember_given(id, prompt);
        let purpose = Purpose::Prompt(id.to_owned(), prompt.id.clone());
        let asked = json!({
            "threadId": id,
            "expectedTurnId": turn,
            "input": input(prompt),
            "clientUserMessageId": prompt.id,
        });
        self.requests.ask(out, "turn/steer", asked, purpose);
    }

    /// Stops the turn, and the commands that would go on after it.
    fn interrupt(&mut self, id: &str, out: &mut Outbox) {
        let Some(turn) = self.threads.get(id).and_then(|thread| thread.turn.clone()) else { return };
        let asked = json!({"threadId": id, "turnId": turn});
        self.requests.ask(out, "turn/interrupt", asked, Purpose::Interrupt(id.to_owned()));
        self.requests.ask(out, "thread/backgroundTerminals/clean", json!({"threadId": id}), Purpose::Nothing);
    }

    fn account(&mut self, id: String, prompts: Vec<String>, from: Option<&str>, out: &mut Outbox) {
        let mut asked = json!({"threadId": id, "limit": TURNS, "itemsView": "full"});
        if let Some(cursor) = from {
            asked["cursor"] = json!(cursor);
        }
        self.requests.ask(out, "thread/turns/list", asked, Purpose::Account(id, prompts));
    }

    /// The prompts that a page of a thread's turns holds, among those that were asked about. What no page holds is lost:
    /// also a text that was given to a running turn, if the turn ended before a request held it. If Codex was killed while
    /// it wrote one down, the turn is there without it, and its model may read it all the same: then nobody knows.
    pub(super) fn accounted(&mut self, id: &str, asked: Vec<String>, listed: &Value, out: &mut Outbox) {
        use relay_mesh_sdk::optional::driver::PromptStatus::{Answered, Lost, Shown, Unknown};
        let turns = listed["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let holds = |turn: &Value, prompt: &str| {
            turn["items"].as_array().into_iter().flatten().any(|item| item["clientId"].as_str() == Some(prompt))
        };
        let says_nothing = |turn: &Value| {
            let is_users = |item: &Value| item["type"].as_str() == Some("userMessage") || item["clientId"].is_string();
            !turn["items"].as_array().into_iter().flatten().any(is_users)
        };
        let is_torn = turns.iter().any(says_nothing);
        let mut missing = Vec::new();
        for prompt in asked {
            let status = match turns.iter().find(|turn| holds(turn, &prompt)) {
                Some(turn) if turn["status"].as_str() == Some("inProgress") => Shown,
                // Of a turn that was cut off nothing more comes.
                Some(_) => Answered,
                None => {
                    missing.push(prompt);
                    continue;
                }
            };
            out.say(id, AgentEvent::Prompt((prompt, status)));
        }
        match listed["nextCursor"].as_str() {
            _ if is_torn => {
                for prompt in missing {
                    out.say(id, AgentEvent::Prompt((prompt, Unknown)));
                }
            }
            Some(cursor) if !missing.is_empty() => self.account(id.to_owned(), missing, Some(cursor), out),
            Some(_) | None => {
                for prompt in missing {
                    out.say(id, AgentEvent::Prompt((prompt, Lost)));
                }
            }
        }
    }
}

fn input(prompt: &Prompt) -> Value {
    json!([{"type": "text", "text": prompt.text}])
}
