//! A request to the model.

use std::time::SystemTime;

use serde_json::Value;

use super::dialect::Dialect;
use super::script::ModelAnswer;

/// One request to the model, and what it answered.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When it arrived, by the clock of the mesh's receipts.
    pub at: SystemTime,
    /// The dialect of the request.
    pub dialect: Dialect,
    /// The request's body.
    pub body: Value,
    /// The answer.
    pub answer: ModelAnswer,
    /// Whether a script line gave the answer. Otherwise it is a polite filler.
    pub scripted: bool,
}

impl Heard {
    /// The text that is new to the model: everything after its own last output.
    pub fn news(&self) -> String {
        self.dialect.news(&self.body)
    }

    /// All text in the request, including the system prompt.
    pub fn everything(&self) -> String {
        self.dialect.everything(&self.body)
    }

    /// Whether this is from the agent's turn, and no side call of its client.
    pub(super) fn is_main(&self) -> bool {
        self.dialect.is_main(&self.body)
    }

    /// Where in the request a text is: `system` or `instructions`, the role or kind of a message, or `tools`. The first
    /// place counts.
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
