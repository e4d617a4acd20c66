//! The part of the generateContent dialect that Gemini CLI needs: reading requests, and answers as a stream of events.

use serde_json::{Value, json};

use super::script::ModelAnswer;

/// The agent's turn has tools. Titles, summaries and compressions have none.
pub(super) fn is_main(body: &Value) -> bool {
    body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

/// The text after the model's own last output.
pub(super) fn news(body: &Value) -> String {
    let contents = contents(body);
    let after = contents.iter().rposition(|content| content["role"] == "model").map_or(0, |last| last + 1);
    contents[after..].iter().map(text_of).collect::<Vec<_>>().join("\n")
}

/// All text, including the system instruction.
pub(super) fn everything(body: &Value) -> String {
    let mut text = text_of(&body["systemInstruction"]);
    for content in contents(body) {
        text.push('\n');
        text.push_str(&text_of(&content));
    }
    text
}

/// An answer as a single server-sent event.
pub(super) fn events(answer: &ModelAnswer, number: usize) -> String {
    format!("data: {}\r\n\r\n", whole(answer, number))
}

pub(super) fn whole(answer: &ModelAnswer, number: usize) -> Value {
    let part = match answer {
        ModelAnswer::Say(words) | ModelAnswer::Talk(words) => json!({"text": words}),
        ModelAnswer::Call { tool, input } => json!({"functionCall": {"name": tool, "args": input}}),
    };
    json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": "gemini-scripted",
        "responseId": format!("scripted{number:04}"),
    })
}

/// The text in the parts of a content, including tool results.
fn text_of(content: &Value) -> String {
    let parts = content["parts"].as_array().into_iter().flatten();
    let text = |part: &Value| match (part["text"].as_str(), &part["functionResponse"]["response"]) {
        (Some(text), _) => text.to_owned(),
        (None, Value::Object(response)) => response.values().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        (None, _) => String::new(),
    };
    parts.map(text).collect::<Vec<_>>().join("\n")
}

fn contents(body: &Value) -> Vec<Value> {
    body["contents"].as_array().cloned().unwrap_or_default()
}
