//! JSON-RPC for a plain MCP client, without a library: a test sends exactly what it wrote.

use serde_json::{Value, json};

/// A tool's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolAnswer {
    /// Whether the tool reports a failure.
    pub failed: bool,
    /// The text for models.
    pub text: String,
    /// The structured output.
    pub structured: Value,
}

/// The parameters of `initialize` for a protocol era.
pub fn handshake(era: &str, client: &str) -> Value {
    json!({
        "protocolVersion": era,
        "capabilities": {},
        "clientInfo": {"name": client, "version": "1.0.0"},
    })
}

/// Reads a `tools/call` answer.
///
/// # Panics
/// If the answer is a protocol error: then the tool was not called.
pub fn tool_answer(answer: &Value) -> ToolAnswer {
    let result = answer.get("result").unwrap_or_else(|| panic!("a tool was not called: {answer}"));
    let pieces = result["content"].as_array().cloned().unwrap_or_default();
    ToolAnswer {
        failed: result["isError"].as_bool().unwrap_or(false),
        text: pieces.iter().filter_map(|piece| piece["text"].as_str()).collect::<Vec<_>>().join("\n"),
        structured: result["structuredContent"].clone(),
    }
}

/// One request.
pub(crate) fn request(id: u64, method: &str, parameters: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
}
