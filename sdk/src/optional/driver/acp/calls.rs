//! The tool calls of a turn: each is told when it begins, with what it does, and when it has ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::permission::operation;
use crate::optional::driver::{AgentEvent, Item, detail};
use crate::optional::runner::reading::text;

/// The most calls that are remembered, and the most bytes of one: what is larger is told at once.
const MOST_CALLS: usize = 16;
const LONGEST_CALL: usize = 2 * 1024;
/// What says what a call does.
const TELLING: [&str; 4] = ["title", "kind", "locations", "rawInput"];

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Calls(BTreeMap<String, Call>);

#[derive(Debug, Serialize, Deserialize)]
enum Call {
    /// It is announced; its input may still come.
    Announced(Map<String, Value>),
    /// It was told.
    Begun,
}

impl Calls {
    /// What a `tool_call` or a `tool_call_update` says that is new.
    pub(super) fn update(&mut self, update: &Value) -> Vec<AgentEvent> {
        let id = text(update, "/toolCallId").to_owned();
        let succeeded = match text(update, "/status") {
            "completed" => Some(true),
            "failed" => Some(false),
            _ => None,
        };
        let mut said = Vec::new();
        if !matches!(self.0.get(&id), Some(Call::Begun)) {
            let call = self.told_by_now(update);
            // The protocol's own word for a call whose input is not whole, or that waits for its user.
            let waits = matches!(text(update, "/status"), "pending" | "");
            if waits && self.0.len() < MOST_CALLS && Value::from(call.clone()).to_string().len() <= LONGEST_CALL {
                self.0.insert(id, Call::Announced(call));
                return said;
            }
            said.push(item(&id, Some(&call.into()), None, update));
            self.0.insert(id.clone(), Call::Begun);
        }
        if succeeded.is_some() {
            said.push(item(&id, None, succeeded, update));
            self.0.remove(&id);
        }
        said
    }

    /// What is known of a call, with what this says.
    pub(super) fn told_by_now(&self, update: &Value) -> Map<String, Value> {
        let mut call = match self.0.get(text(update, "/toolCallId")) {
            Some(Call::Announced(call)) => call.clone(),
            Some(Call::Begun) | None => Map::new(),
        };
        for field in TELLING {
            if !update[field].is_null() {
                call.insert(field.to_owned(), update[field].clone());
            }
        }
        call
    }
}

fn item(id: &str, call: Option<&Value>, succeeded: Option<bool>, update: &Value) -> AgentEvent {
    let said = update["content"].as_array().into_iter().flatten().map(|part| text(part, "/content/text"));
    let said: Vec<&str> = said.filter(|text| !text.is_empty()).collect();
    AgentEvent::Item(Item {
        id: id.to_owned(),
        operation: call.map(operation),
        succeeded,
        detail: succeeded.and_then(|_| detail(&said.join("\n"))),
    })
}
