//! The dialects (APIs) of model requests. A request's path tells its dialect.

use serde_json::Value;

use super::script::ModelAnswer;
use super::{chat, generate, messages, responses};

/// An API between a client and a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/messages`: Claude Code.
    Messages,
    /// `/v1/chat/completions`: OpenCode.
    Chat,
    /// `/v1/responses`: Codex.
    Responses,
    /// `/v1beta/models/NAME:streamGenerateContent`: Gemini CLI.
    Generate,
}

impl Dialect {
    /// The dialect of a request, by its path.
    pub(super) fn of(path: &str) -> Dialect {
        match path {
            _ if path.ends_with("/responses") => Dialect::Responses,
            _ if path.ends_with("/chat/completions") => Dialect::Chat,
            _ if path.contains("enerateContent") => Dialect::Generate,
            _ => Dialect::Messages,
        }
    }

    /// Whether a request is from the agent's turn. Side calls, such as titles and summaries, must not use up the
    /// script.
    pub(super) fn is_main(self, body: &Value) -> bool {
        match self {
            Dialect::Messages | Dialect::Chat => messages::is_main(body),
            Dialect::Responses => responses::is_main(body),
            Dialect::Generate => generate::is_main(body),
        }
    }

    /// The text after the model's own last output.
    pub(super) fn news(self, body: &Value) -> String {
        match self {
            Dialect::Messages | Dialect::Chat => messages::news(body),
            Dialect::Responses => responses::news(body),
            Dialect::Generate => generate::news(body),
        }
    }

    /// All text in the request.
    pub(super) fn everything(self, body: &Value) -> String {
        match self {
            Dialect::Messages | Dialect::Chat => messages::everything(body),
            Dialect::Responses => responses::everything(body),
            Dialect::Generate => generate::everything(body),
        }
    }

    /// An answer: its media type and its body.
    pub(super) fn reply(self, body: &Value, answer: &ModelAnswer, number: usize) -> (&'static str, String) {
        let streams = body["stream"] == Value::Bool(true);
        match self {
            Dialect::Messages if streams => (EVENTS, messages::events(answer, number)),
            Dialect::Messages => (JSON, messages::whole(answer, number).to_string()),
            Dialect::Chat if streams => (EVENTS, chat::events(answer, number)),
            Dialect::Chat => (JSON, chat::whole(answer, number).to_string()),
            Dialect::Responses => (EVENTS, responses::events(answer, number)),
            // The path says which form is wanted; side calls take the whole answer.
            Dialect::Generate if generate::is_main(body) => (EVENTS, generate::events(answer, number)),
            Dialect::Generate => (JSON, generate::whole(answer, number).to_string()),
        }
    }
}

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

/// The text in content at any depth: a string, blocks, or a tool's result with blocks.
pub(super) fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(plain_text).collect::<Vec<_>>().join("\n"),
        Value::Object(block) => ["text", "content", "output", "encrypted_content"]
            .into_iter()
            .filter_map(|name| block.get(name))
            .map(plain_text)
            .collect::<Vec<_>>()
            .join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
