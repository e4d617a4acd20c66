//! A request as the model heard it.

use std::time::SystemTime;

use serde_json::Value;

use super::dialect::Dialect;
use super::script::Answer;

/// One request to the model, and what it answered.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When it had come, by the clock that the mesh's receipts bear.
    pub at: SystemTime,
    /// The language that it came in.
    pub dialect: Dialect,
    /// The request's body, as it came.
    pub body: Value,
    /// What was answered.
    pub answer: Answer,
    /// Whether a script line asked for that answer. An answer without one is polite and empty.
    pub scripted: bool,
}

impl Heard {
    /// The text that is new to the model: all that stands after its own last words.
    pub fn news(&self) -> String {
        self.dialect.news(&self.body)
    }

    /// All the text that the model was given, the system prompt included.
    pub fn everything(&self) -> String {
        self.dialect.everything(&self.body)
    }

    /// Whether this is the agent at work, and no side call of its client.
    pub(super) fn is_main(&self) -> bool {
        self.dialect.is_main(&self.body)
    }

    /// Where a text stood before the model: `system` or `instructions`, the role or kind of a message, or
    /// `tools`. The first place counts.
    pub fn place_of(&self, text: &str) -> Option<String> {
        let holds = |value: &Value| value.to_string().contains(text);
        let above = ["system", "instructions"].into_iter().find(|name| holds(&self.body[*name]));
        let items =
            ["messages", "input", "contents"].into_iter().filter_map(|name| self.body[name].as_array()).flatten();
        let item =
            || items.clone().find(|item| holds(item)).and_then(|item| item["role"].as_str().or(item["type"].as_str()));
        let tools = || Some("tools").filter(|name| holds(&self.body[*name]));
        above.or_else(item).or_else(tools).map(str::to_owned)
    }
}
