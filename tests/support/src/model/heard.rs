//! A request as the model heard it.

use serde_json::Value;

use super::script::Answer;

/// One request to the model, and what it answered.
#[derive(Clone, Debug)]
pub struct Heard {
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
        news(&self.body)
    }

    /// All the text that the model was given, the system prompt included.
    pub fn everything(&self) -> String {
        let mut text = plain_text(&self.body["system"]);
        for message in messages(&self.body) {
            text.push('\n');
            text.push_str(&plain_text(&message["content"]));
        }
        text
    }
}

/// Whether this request is the agent at work. Titles, summaries and the like carry no tools, and
/// must not use up the script.
pub(super) fn is_main(body: &Value) -> bool {
    body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

/// The text after the model's own last words.
pub(super) fn news(body: &Value) -> String {
    let messages = messages(body);
    let after = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |last| last + 1);
    messages[after..].iter().map(|message| plain_text(&message["content"])).collect::<Vec<_>>().join("\n")
}

fn messages(body: &Value) -> Vec<Value> {
    body["messages"].as_array().cloned().unwrap_or_default()
}

/// The text in a piece of content, however deep: a string, blocks, or a tool's result with blocks.
fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(plain_text).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => [block.get("text"), block.get("content")]
            .into_iter()
            .flatten()
            .map(plain_text)
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
