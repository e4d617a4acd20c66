//! What Claude Code says, as events.

use relay_mesh_sdk::optional::driver::{
    AgentEvent, Failure, Item, Operation, Outbox, PromptStatus, Question, Tokens, TurnEnd, detail,
};
use relay_mesh_sdk::optional::runner::reading::{count, short, text};
use relay_mesh_sdk::{Activity, Error};
use serde_json::{Value, json};

use super::{Link, PromptState, Purpose};

/// The model of a message that Claude Code wrote itself.
const SYNTHETIC: &str = "<synthetic>";

impl Link {
    pub(super) fn receive(&mut self, frame: &Value, out: &mut Outbox) {
        match (text(frame, "/type"), text(frame, "/subtype")) {
            ("control_response", _) => self.answered(&frame["response"], out),
            ("control_request", _) => self.asked(frame, out),
            ("control_cancel_request", _) => {
                out.say(&self.session, AgentEvent::Settled(text(frame, "/request_id").to_owned()));
            }
            ("command_lifecycle", _) | ("system", "command_lifecycle") => self.lifecycle(frame, out),
            ("system", "init") => self.turn_started(frame, out),
            ("assistant", _) => self.assistant(frame, out),
            ("user", _) => self.tool_results(frame, out),
            ("result", _) => self.turn_ended(frame, out),
            _ => {}
        }
    }

    fn answered(&mut self, response: &Value, out: &mut Outbox) {
        let purpose = self.asked.remove(text(response, "/request_id"));
        let error = text(response, "/error");
        match (purpose, error) {
            (Some(Purpose::Initialize), "") => out.note(AgentEvent::Ready),
            (Some(Purpose::Initialize), error) => out.refuse(None, "connect", Error::Failed(short(error))),
            (Some(Purpose::Nothing) | None, _) => {}
        }
    }

    fn asked(&mut self, frame: &Value, out: &mut Outbox) {
        let (id, request) = (text(frame, "/request_id"), &frame["request"]);
        if text(request, "/subtype") != "can_use_tool" {
            let message = format!("relay-mesh does not answer `{}`", text(request, "/subtype"));
            let response = json!({"subtype": "error", "request_id": id, "error": message});
            return out.send(&json!({"type": "control_response", "response": response}));
        }
        let reason = text(request, "/blocked_path");
        out.say(&self.session, AgentEvent::Activity(Activity::NeedsInput));
        out.say(
            &self.session,
            AgentEvent::Asks(Question {
                id: id.to_owned(),
                operation: operation(text(request, "/tool_name"), &request["input"]),
                reason: (!reason.is_empty()).then(|| format!("outside of what it may reach: {}", short(reason))),
                choices: Vec::new(),
                kept: Some(request["input"].to_string()),
            }),
        );
    }

    fn lifecycle(&mut self, frame: &Value, out: &mut Outbox) {
        let prompt = text(frame, "/command_uuid").to_owned();
        let known = self.prompts.iter().find(|(id, _)| *id == prompt).map(|(_, state)| *state);
        let status = match text(frame, "/state") {
            "queued" => {
                self.remember(&prompt, PromptState::Queued);
                PromptStatus::Accepted
            }
            "started" => {
                self.remember(&prompt, PromptState::Started);
                if known.is_some() { return } else { PromptStatus::Accepted }
            }
            state @ ("completed" | "cancelled") => {
                self.prompts.retain(|(id, _)| *id != prompt);
                // One that was taken before gets no turn.
                self.begins.take_if(|begins| *begins == prompt);
                match (state, known) {
                    ("completed", _) | (_, Some(PromptState::Shown)) => PromptStatus::Answered,
                    // A turn that was interrupted before the model said anything.
                    (_, Some(PromptState::Started)) => PromptStatus::Unknown,
                    (_, Some(PromptState::Queued) | None) => PromptStatus::Lost,
                }
            }
            _ => return,
        };
        out.say(&self.session, AgentEvent::Prompt((prompt, status)));
    }

    fn turn_started(&mut self, frame: &Value, out: &mut Outbox) {
        self.begins = None;
        if !self.busy {
            self.busy = true;
            out.say(&self.session, AgentEvent::TurnStarted(text(frame, "/uuid").to_owned()));
            out.say(&self.session, AgentEvent::Activity(Activity::Busy));
        }
    }

    fn assistant(&mut self, frame: &Value, out: &mut Outbox) {
        // A subagent's words are not the agent's, and how a request failed is told by the turn's end.
        let is_own = frame["parent_tool_use_id"].is_null() && text(frame, "/message/model") != SYNTHETIC;
        for (prompt, state) in self.prompts.iter_mut().filter(|(_, state)| is_own && *state == PromptState::Started) {
            *state = PromptState::Shown;
            out.say(&self.session, AgentEvent::Prompt((prompt.clone(), PromptStatus::Shown)));
        }
        for block in frame.pointer("/message/content").and_then(Value::as_array).into_iter().flatten() {
            match text(block, "/type") {
                "text" if is_own => out.say(&self.session, AgentEvent::Said(text(block, "/text").to_owned())),
                "tool_use" => out.say(
                    &self.session,
                    AgentEvent::Item(Item {
                        id: text(block, "/id").to_owned(),
                        operation: Some(operation(text(block, "/name"), &block["input"])),
                        succeeded: None,
                        detail: None,
                    }),
                ),
                _ => {}
            }
        }
    }

    fn tool_results(&mut self, frame: &Value, out: &mut Outbox) {
        for block in frame.pointer("/message/content").and_then(Value::as_array).into_iter().flatten() {
            if text(block, "/type") != "tool_result" {
                continue;
            }
            let said = match &block["content"] {
                Value::String(said) => said.clone(),
                parts => {
                    let texts = parts.as_array().into_iter().flatten().map(|part| text(part, "/text"));
                    texts.collect::<Vec<_>>().join("\n")
                }
            };
            out.say(
                &self.session,
                AgentEvent::Item(Item {
                    id: text(block, "/tool_use_id").to_owned(),
                    operation: None,
                    succeeded: Some(block["is_error"].as_bool() != Some(true)),
                    detail: detail(&said),
                }),
            );
        }
    }

    fn turn_ended(&mut self, frame: &Value, out: &mut Outbox) {
        self.busy = false;
        let cached = count(frame, "/usage/cache_read_input_tokens");
        out.say(
            &self.session,
            AgentEvent::Used(Tokens {
                input: count(frame, "/usage/input_tokens") + count(frame, "/usage/cache_creation_input_tokens"),
                cached_input: cached,
                output: count(frame, "/usage/output_tokens"),
            }),
        );
        out.say(&self.session, AgentEvent::TurnEnded((text(frame, "/uuid").to_owned(), end(frame))));
        out.say(&self.session, AgentEvent::Activity(Activity::Idle));
    }
}

fn end(frame: &Value) -> TurnEnd {
    let why = || short(text(frame, "/result"));
    match (text(frame, "/subtype"), text(frame, "/terminal_reason")) {
        (_, "aborted_streaming" | "aborted_tools") => TurnEnd::Interrupted,
        ("success", _) if frame["is_error"].as_bool() != Some(true) => TurnEnd::Completed,
        _ => {
            let failure = match frame["api_error_status"].as_u64() {
                Some(401 | 403) => Failure::NotSignedIn,
                Some(402 | 429) => Failure::OutOfQuota,
                Some(529) => Failure::Overloaded,
                Some(_) | None if why().contains("Prompt is too long") => Failure::ContextFull,
                Some(_) | None => Failure::Other,
            };
            TurnEnd::Failed((failure, why()))
        }
    }
}

/// What a tool does. A command is shown whole.
fn operation(name: &str, input: &Value) -> Operation {
    let file = |field: &str| Operation::Files(vec![text(input, field).to_owned()]);
    match name {
        "Bash" => Operation::Command(text(input, "/command").to_owned()),
        "Edit" | "Write" | "MultiEdit" => file("/file_path"),
        "NotebookEdit" => file("/notebook_path"),
        _ => Operation::Tool((short(name), input.to_string())),
    }
}
