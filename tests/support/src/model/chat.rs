//! The part of the chat-completions dialect that the client needs: answers as a stream of chunks or whole.

use serde_json::{Value, json};

use super::script::ModelAnswer;

/// An answer as server-sent chunks.
pub(super) fn events(answer: &ModelAnswer, number: usize) -> String {
    let delta = match answer {
        ModelAnswer::Say(words) | ModelAnswer::Talk(words) => json!({"role": "assistant", "content": words}),
        ModelAnswer::Call { tool, input } => json!({"role": "assistant", "tool_calls": [call(tool, input, number)]}),
    };
    let chunk = |choice: Value| {
        let mut chunk = json!({
            "id": format!("chatcmpl-scripted{number:04}"),
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "scripted",
            "choices": [choice],
        });
        chunk["usage"] = usage();
        format!("data: {chunk}\n\n")
    };
    let spoken = chunk(json!({"index": 0, "delta": delta, "finish_reason": null}));
    let ended = chunk(json!({"index": 0, "delta": {}, "finish_reason": finish_reason(answer)}));
    format!("{spoken}{ended}data: [DONE]\n\n")
}

pub(super) fn whole(answer: &ModelAnswer, number: usize) -> Value {
    let message = match answer {
        ModelAnswer::Say(words) | ModelAnswer::Talk(words) => json!({"role": "assistant", "content": words}),
        ModelAnswer::Call { tool, input } => {
            json!({"role": "assistant", "content": null, "tool_calls": [call(tool, input, number)]})
        }
    };
    json!({
        "id": format!("chatcmpl-scripted{number:04}"),
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(answer)}],
        "usage": usage(),
    })
}

fn call(tool: &str, input: &Value, number: usize) -> Value {
    let function = json!({"name": tool, "arguments": input.to_string()});
    json!({"index": 0, "id": format!("call_scripted{number:04}"), "type": "function", "function": function})
}

fn finish_reason(answer: &ModelAnswer) -> &'static str {
    match answer {
        ModelAnswer::Say(_) | ModelAnswer::Talk(_) => "stop",
        ModelAnswer::Call { .. } => "tool_calls",
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
}
