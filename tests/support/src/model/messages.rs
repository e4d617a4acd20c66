//! The part of the Messages dialect that the client needs: reading requests, and answers as a stream of events or
//! whole.

use serde_json::{Value, json};

use super::dialect::plain_text;
use super::script::ModelAnswer;

/// Side calls carry no tools.
pub(super) fn is_main(body: &Value) -> bool {
    body["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

/// The text after the model's own last output.
pub(super) fn news(body: &Value) -> String {
    let messages = messages(body);
    let after = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |last| last + 1);
    messages[after..].iter().map(|message| plain_text(&message["content"])).collect::<Vec<_>>().join("\n")
}

/// All text, including the system prompt.
pub(super) fn everything(body: &Value) -> String {
    let mut text = plain_text(&body["system"]);
    for message in messages(body) {
        text.push('\n');
        text.push_str(&plain_text(&message["content"]));
    }
    text
}

fn messages(body: &Value) -> Vec<Value> {
    body["messages"].as_array().cloned().unwrap_or_default()
}

/// An answer as server-sent events.
pub(super) fn events(answer: &ModelAnswer, number: usize) -> String {
    let (block, delta) = match answer {
        ModelAnswer::Say(words) | ModelAnswer::Talk(words) => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": words}))
        }
        ModelAnswer::Call { tool, input } => (
            json!({"type": "tool_use", "id": call_id(number), "name": tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
        ),
    };
    let mut opening = whole(answer, number);
    opening["content"] = json!([]);
    opening["stop_reason"] = Value::Null;
    [
        json!({"type": "message_start", "message": opening}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(answer), "stop_sequence": null},
            "usage": {"output_tokens": 1},
        }),
        json!({"type": "message_stop"}),
    ]
    .iter()
    .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
    .collect()
}

pub(super) fn whole(answer: &ModelAnswer, number: usize) -> Value {
    let block = match answer {
        ModelAnswer::Say(words) | ModelAnswer::Talk(words) => json!({"type": "text", "text": words}),
        ModelAnswer::Call { tool, input } => {
            json!({"type": "tool_use", "id": call_id(number), "name": tool, "input": input})
        }
    };
    json!({
        "id": format!("msg_scripted{number:04}"),
        "type": "message",
        "role": "assistant",
        "model": "claude-scripted",
        "content": [block],
        "stop_reason": stop_reason(answer),
        "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    })
}

fn stop_reason(answer: &ModelAnswer) -> &'static str {
    match answer {
        ModelAnswer::Say(_) | ModelAnswer::Talk(_) => "end_turn",
        ModelAnswer::Call { .. } => "tool_use",
    }
}

fn call_id(number: usize) -> String {
    format!("toolu_scripted{number:04}")
}
