//! What an agent asks its user, and the answer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Link;
use crate::Activity;
use crate::Error;
use crate::optional::driver::rpc::answer;
use crate::optional::driver::{AgentEvent, Answer, ChoiceOffered, Operation, Outbox, Question, Reply};
use crate::optional::runner::reading::{short, text};

/// What is kept of a question until its answer.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// The request's id.
    id: Value,
    options: Vec<Choice>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Choice {
    id: String,
    kind: String,
}

impl Link {
    pub(super) fn permission(&mut self, id: &Value, params: &Value, out: &mut Outbox) {
        let session = text(params, "/sessionId");
        // Nobody would answer for a session that is not ours.
        let Some(state) = self.sessions.get_mut(session) else { return cancel(id, out) };
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let kept = Kept {
            id: id.clone(),
            options: options
                .iter()
                .map(|option| Choice {
                    id: text(option, "/optionId").to_owned(),
                    kind: text(option, "/kind").to_owned(),
                })
                .collect(),
        };
        let label = |option: &Value| ChoiceOffered {
            id: text(option, "/optionId").to_owned(),
            label: short(text(option, "/name")),
        };
        let title = text(params, "/toolCall/title");
        let question = Question {
            id: id.to_string(),
            operation: operation(&state.calls.told_by_now(&params["toolCall"]).into()),
            reason: (!title.is_empty()).then(|| short(title)),
            choices: options.iter().map(label).collect(),
            kept: serde_json::to_string(&kept).ok(),
        };
        state.asked.push(id.clone());
        state.is_shown(session, out);
        out.say(session, AgentEvent::Activity(Activity::NeedsInput));
        out.say(session, AgentEvent::Asks(question));
    }

    pub(super) fn answer(&mut self, session: &str, reply: Reply, out: &mut Outbox) {
        let kept = reply.kept.as_deref().and_then(|kept| serde_json::from_str::<Kept>(kept).ok());
        let waits = |kept: &Kept, asked: &Vec<Value>| asked.contains(&kept.id);
        let Some(state) = self.sessions.get_mut(session) else { return };
        let Some(kept) = kept.filter(|kept| waits(kept, &state.asked)) else {
            let gone = Error::NotFound("no request waits for this answer any more".to_owned());
            return out.refuse(Some(session), &reply.question, gone);
        };
        let of_kind = |kinds: &[&str]| {
            let found = kinds.iter().find_map(|kind| kept.options.iter().find(|option| option.kind == *kind));
            found.map(|option| option.id.clone())
        };
        let (chosen, ends_turn) = match reply.answer {
            // One that allows once is never answered by one that allows for ever.
            Answer::Allow => (of_kind(&["allow_once"]), false),
            Answer::AllowForSession => (of_kind(&["allow_always", "allow_once"]), false),
            Answer::Refuse(_) => (of_kind(&["reject_once", "reject_always"]), false),
            Answer::Stop => (of_kind(&["reject_once", "reject_always"]), true),
            Answer::Choose(id) => {
                (kept.options.iter().find(|option| option.id == id).map(|found| found.id.clone()), false)
            }
            Answer::Fill(_) => (None, false),
        };
        let Some(chosen) = chosen else {
            let not_offered = Error::Unsupported("it does not offer this answer".to_owned());
            return out.refuse(Some(session), &reply.question, not_offered);
        };
        state.asked.retain(|asked| *asked != kept.id);
        answer(out, &kept.id, &json!({"outcome": {"outcome": "selected", "optionId": chosen}}));
        if state.asked.is_empty() {
            out.say(session, AgentEvent::Activity(Activity::Busy));
        }
        if ends_turn {
            self.interrupt(session, out);
        }
    }
}

/// Answers that nobody answers, as the protocol wants it for a cancelled turn.
pub(super) fn cancel(id: &Value, out: &mut Outbox) {
    answer(out, id, &json!({"outcome": {"outcome": "cancelled"}}));
}

/// What a tool call does. A command comes from the raw input, because a title may be the model's description of it.
pub(super) fn operation(call: &Value) -> Operation {
    let input = &call["rawInput"];
    match &input["command"] {
        Value::String(command) => return Operation::Command(command.clone()),
        Value::Array(words) if !words.is_empty() => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            return Operation::Command(words.join(" "));
        }
        _ => {}
    }
    let changes = matches!(text(call, "/kind"), "edit" | "delete" | "move");
    let files: Vec<String> =
        call["locations"].as_array().into_iter().flatten().map(|place| text(place, "/path").to_owned()).collect();
    if changes && !files.is_empty() {
        return Operation::Files(files);
    }
    let title = text(call, "/title");
    match input {
        Value::Null => Operation::Other(title.to_owned()),
        input => Operation::Tool((short(title), input.to_string())),
    }
}
