//! Which of Cursor's tool calls are ours. The hook before a tool gets the tool's name and arguments but not the
//! server, so both must match: a ticket must not go to another server's tool.

use serde_json::{Map, Value};

/// Our tools and their arguments. A product test compares this with what the server lists.
const TOOLS: &[(&str, &[&str])] = &[
    ("register_agent", &["name", "team", "role", "task", "skills", "model", "project", "program", "issue"]),
    ("find_agents", &["query", "limit"]),
    ("list_agents", &["team", "harness", "project", "include_offline", "limit"]),
    ("send_message", &["to", "body", "subject", "reply_to", "thread", "priority", "tags", "idempotency_key"]),
    ("broadcast", &["body", "subject", "team", "harness", "thread", "priority", "tags", "idempotency_key"]),
    (
        "fetch_messages",
        &[
            "wait_seconds",
            "limit",
            "max_length",
            "message_id",
            "offset",
            "peek",
            "acknowledge",
            "acknowledge_ids",
            "include_read",
            "from",
            "thread",
        ],
    ),
    ("message_status", &["id"]),
    ("bind_session", &["session_id", "harness"]),
];

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|(name, _)| *name)
}

/// Whether a call looks like one of ours: its name is one of ours, and the tool takes every argument.
pub(crate) fn is_ours(tool: &str, arguments: &Map<String, Value>) -> bool {
    let known = TOOLS.iter().find(|(name, _)| *name == tool);
    known.is_some_and(|(_, takes)| arguments.keys().all(|argument| takes.contains(&argument.as_str())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(tool: &str, arguments: &Value, expected: bool) {
        let arguments = arguments.as_object().expect("an object");
        assert_eq!(is_ours(tool, arguments), expected, "{tool} {arguments:?}");
    }

    #[test]
    fn a_call_is_ours_by_name_and_arguments() {
        check("send_message", &json!({"to": "bob", "body": "hello"}), true);
        check("send_message", &json!({"channel": "#general", "text": "hello"}), false);
        check("list_agents", &json!({}), true);
        check("list_issues", &json!({}), false);
    }
}
