//! Collects the evidence of a call's caller. The mesh judges it.

use axum::http::request::Parts;
use mesh::sessions::{Call, Caller, Ticket, Transport};
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::RequestContext;
use serde::Deserialize;

use crate::connection::Connection;
use crate::tool_error::ToolError;

/// The argument that hooks and connectors add to any tool call; models do not write it.
pub(crate) const HIDDEN: &str = "_relay";
/// The argument by which a client identifies itself if nothing else does.
pub(crate) const KEY: &str = "agent_key";

/// Headers that are secrets of the client, or say nothing about it.
const KEPT_BACK: [&str; 5] = ["authorization", "cookie", "proxy-authorization", "mcp-session-id", "content-length"];

/// Evidence that was removed from a call's arguments before the tool parses them.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// The ticket from a hook or a connector, which names the session.
    pub(crate) ticket: Option<Ticket>,
    /// The key that register_agent returned.
    pub(crate) key: Option<String>,
}

#[derive(Deserialize)]
struct Hidden {
    ticket: Option<Ticket>,
    key: Option<String>,
}

/// Removes the evidence of the caller from the arguments.
pub(crate) fn take_proof(arguments: &mut JsonObject) -> Result<Proof, ToolError> {
    let mut proof = Proof::default();
    if let Some(hidden) = arguments.shift_remove(HIDDEN) {
        let hidden: Hidden = serde_json::from_value(hidden).map_err(|_| {
            ToolError::new(
                format!("the argument `{HIDDEN}` is not what a hook of relay-mesh writes"),
                "Leave it to the hooks of your harness.",
            )
        })?;
        proof.ticket = hidden.ticket;
        proof.key = hidden.key;
    }
    if let Some(key) = arguments.shift_remove(KEY)
        && !key.is_null()
    {
        let key = key.as_str().ok_or_else(|| {
            ToolError::new(format!("`{KEY}` is not text"), "Pass the agent_key that register_agent gave you.")
        })?;
        proof.key = Some(key.to_owned());
    }
    Ok(proof)
}

/// What all callers of a server have in common.
pub(crate) struct CallOrigin {
    /// The transport of the calls.
    pub(crate) transport: Transport,
    /// Environment variables of the process that started us, if a client did.
    pub(crate) environment: Vec<(String, String)>,
    /// The folder in which it started us.
    pub(crate) workdir: Option<String>,
}

/// All evidence of a call's caller.
pub(crate) fn call(
    origin: &CallOrigin,
    tool: &str,
    arguments: &JsonObject,
    proof: &Proof,
    context: &RequestContext<RoleServer>,
    root: Option<String>,
) -> Call {
    let client = context.client_info();
    let headers = match context.extensions.get::<Parts>() {
        Some(parts) => parts
            .headers
            .iter()
            .filter(|(name, _)| !KEPT_BACK.contains(&name.as_str()))
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
            .collect(),
        None => Vec::new(),
    };
    Call {
        caller: Caller {
            transport: origin.transport,
            client_version: client.as_ref().map(|client| client.version.clone()),
            client_name: client.map(|client| client.name),
            meta: (!context.meta.is_empty()).then(|| serde_json::to_string(&context.meta).ok()).flatten(),
            headers,
            tool: Some(tool.to_owned()),
            arguments: serde_json::to_string(arguments).ok(),
            environment: origin.environment.clone(),
            workdir: root.or_else(|| origin.workdir.clone()),
        },
        connection: context.extensions.get::<Connection>().map(|connection| connection.id.clone()),
        ticket: proof.ticket.clone(),
        key: proof.key.clone(),
        claims_to_be: None,
    }
}

/// The path in a `file:` URI. None if it is another URI, or not of this machine.
pub(crate) fn path_of(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.bytes();
    while let Some(byte) = left.next() {
        if byte == b'%' {
            let digits = [left.next()?, left.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|path| !path.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, expected: Option<&str>) {
        assert_eq!(path_of(uri).as_deref(), expected, "{uri}");
    }

    #[test]
    fn a_root_is_a_folder_of_this_machine() {
        check("file:///home/u/my%20app", Some("/home/u/my app"));
        check("file://localhost/srv", Some("/srv"));
        check("file://elsewhere/srv", None);
        check("https://example.org/", None);
        check("file:///a%2", None);
        check("file:///a%00b", None);
    }

    fn taken(arguments: &str) -> String {
        let mut arguments: JsonObject = serde_json::from_str(arguments).expect("an object");
        let proof = match take_proof(&mut arguments) {
            Ok(proof) => proof,
            Err(error) => return error.text(),
        };
        let session = proof.ticket.map(|ticket| ticket.session.id);
        format!("{session:?} {:?} {}", proof.key, serde_json::Value::Object(arguments))
    }

    #[test]
    fn what_says_who_calls_is_taken_out_of_the_arguments() {
        let ticket = r#"{"session": {"harness": "h", "id": "s1"}, "proof": "00"}"#;
        assert_eq!(
            taken(&format!(r#"{{"a": 1, "_relay": {{"ticket": {ticket}}}, "b": 2}}"#)),
            r#"Some("s1") None {"a":1,"b":2}"#
        );
        assert_eq!(taken(r#"{"_relay": {"key": "k"}}"#), r#"None Some("k") {}"#);
        assert_eq!(taken(r#"{"agent_key": "k"}"#), r#"None Some("k") {}"#);
        assert_eq!(taken(r#"{"agent_key": null}"#), "None None {}");
        assert!(taken(r#"{"_relay": "spoof"}"#).contains("_relay"));
        assert!(taken(r#"{"_relay": {"ticket": {"session": "s1"}}}"#).contains("_relay"));
        assert!(taken(r#"{"agent_key": 7}"#).contains("agent_key"));
    }
}
