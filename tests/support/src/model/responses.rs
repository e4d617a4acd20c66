//! The part of the Responses dialect that Codex needs: reading requests, and answers as a stream of events.
//!
//! A script names a tool of a namespace `namespace.tool`, such as `collaboration.spawn_agent`. A tool that takes free
//! text instead of JSON is called with a string as input.

use serde_json::{Value, json};

use super::dialect::plain_text;
use super::script::ModelAnswer;

/// Begins Codex's side calls, which must not use up the script.
const TITLE: &str = "Generate a concise, single-line task title";

/// Codex requests titles in a separate conversation.
pub(super) fn is_main(body: &Value) -> bool {
    items(body).iter().all(|item| item["role"] != "user" || !plain_text(&item["content"]).starts_with(TITLE))
}

/// The text after the model's own last output; in the first request, after the client's long instructions.
pub(super) fn news(body: &Value) -> String {
    let items = items(body);
    let began = || items.iter().position(|item| item["role"] != "developer").unwrap_or(0);
    let after = items.iter().rposition(is_own).map_or_else(began, |last| last + 1);
    items[after..].iter().map(plain_text).collect::<Vec<_>>().join("\n")
}

/// All text, including the instructions.
pub(super) fn everything(body: &Value) -> String {
    let mut text = plain_text(&body["instructions"]);
    for item in items(body) {
        text.push('\n');
        text.push_str(&plain_text(&item));
    }
    text
}

/// An answer as server-sent events.
pub(super) fn events(answer: &ModelAnswer, number: usize) -> String {
    let item = item(answer, number);
    let mut opening = item.clone();
    if opening.get("content").is_some() {
        opening["content"] = json!([]);
    }
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": format!("resp_scripted{number:04}")}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": opening}),
    ];
    if let ModelAnswer::Say(words) | ModelAnswer::Talk(words) = answer {
        events.push(json!({
            "type": "response.output_text.delta",
            "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": words,
        }));
    }
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": {
        "id": format!("resp_scripted{number:04}"),
        "usage": {"input_tokens": 1, "input_tokens_details": null, "output_tokens": 1, "output_tokens_details": null, "total_tokens": 2},
    }}));
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
        .collect()
}

fn item(answer: &ModelAnswer, number: usize) -> Value {
    let call = format!("call_scripted{number:04}");
    match answer {
        ModelAnswer::Say(words) | ModelAnswer::Talk(words) => json!({
            "type": "message",
            "id": format!("msg_scripted{number:04}"),
            "role": "assistant",
            "content": [{"type": "output_text", "text": words}],
        }),
        ModelAnswer::Call { tool, input: Value::String(text) } => json!({
            "type": "custom_tool_call", "id": format!("ctc_scripted{number:04}"), "call_id": call, "name": tool, "input": text,
        }),
        ModelAnswer::Call { tool, input } => {
            let (namespace, name) = match tool.split_once('.') {
                Some((namespace, name)) => (Some(namespace), name),
                None => (None, tool.as_str()),
            };
            let mut item = json!({
                "type": "function_call",
                "id": format!("fc_scripted{number:04}"),
                "call_id": call,
                "name": name,
                "arguments": input.to_string(),
            });
            if let Some(namespace) = namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
    }
}

/// Whether the model produced this item.
fn is_own(item: &Value) -> bool {
    item["role"] == "assistant" || item["type"].as_str().is_some_and(|kind| kind.ends_with("_call"))
}

fn items(body: &Value) -> Vec<Value> {
    body["input"].as_array().cloned().unwrap_or_default()
}
