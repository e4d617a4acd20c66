//! Refuses the handshake in the era that has none, which rmcp would take for an older client's.

use axum::body::Bytes;
use axum::http::HeaderMap;
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde_json::{Value, json};

/// The answer to `initialize` in an era without it. Only a request that may be one is parsed.
pub(super) fn refusal(headers: &HeaderMap, body: &Bytes) -> Option<String> {
    let word = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let era = word("mcp-protocol-version")?;
    let has_handshake = era < ProtocolVersion::NO_INITIALIZE.as_str();
    if has_handshake || word("mcp-method").is_some_and(|method| method != "initialize") {
        return None;
    }
    let request: Value = serde_json::from_slice(body).ok()?;
    if request.get("method").and_then(Value::as_str) != Some("initialize") {
        return None;
    }
    let message = format!("there is no method `initialize` in {era}; server/discover tells what is here");
    let error = json!({"code": ErrorCode::METHOD_NOT_FOUND.0, "message": message});
    Some(json!({"jsonrpc": "2.0", "id": request.get("id"), "error": error}).to_string())
}
