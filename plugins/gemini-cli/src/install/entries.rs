//! What we write into Gemini CLI's settings, and how we match it.

use relay_mesh_sdk::install::{Scope, Server, Setup, is_hook_line};
use serde_json::{Map, Value, json};

/// The adapter's name in our hooks.
const HARNESS: &str = "gemini-cli";
/// Gemini CLI's default timeout is a minute.
const TIMEOUT_MS: u32 = 10_000;
/// The program in a project's settings. Gemini CLI expands variables of its own environment.
const COMMITTED_PROGRAM: &str = "${RELAY_MESH_BIN:-relay-mesh}";

/// Our hooks with their events, in the order in which a session meets them.
pub(super) fn groups(setup: &Setup) -> Vec<(&'static str, Value)> {
    let name = &setup.server_name;
    let group = |event: &'static str, matcher: Option<String>| {
        let mut group = Map::new();
        group.extend(matcher.map(|matcher| ("matcher".to_owned(), Value::from(matcher))));
        group.insert("hooks".to_owned(), json!([handler(event, setup)]));
        (event, Value::Object(group))
    };
    vec![
        group("SessionStart", None),
        group("BeforeAgent", None),
        // Our own tools, to bind calls to sessions, and the two that write files.
        group("BeforeTool", Some(format!("^(mcp_{name}_.*|write_file|replace)$"))),
        group("AfterTool", None),
        group("AfterAgent", None),
        group("Notification", None),
        // The other kind comes before every request and means nothing.
        group("PreCompress", Some("manual".to_owned())),
        group("SessionEnd", None),
    ]
}

fn handler(event: &str, setup: &Setup) -> Value {
    let command = match setup.scope {
        // The first hook also tells the user if our program is missing.
        _ if event == "SessionStart" => setup.telling_hook_line(HARNESS, event, "Gemini CLI"),
        Scope::Project => setup.committed_hook_line(HARNESS, event),
        Scope::User => setup.hook_line(HARNESS, event),
    };
    json!({"type": "command", "name": "relay-mesh", "command": command, "timeout": TIMEOUT_MS})
}

/// Whether a handler is ours, of this install or an older one.
pub(super) fn is_our_handler(handler: &Value) -> bool {
    handler.get("command").and_then(Value::as_str).is_some_and(|command| is_hook_line(command, HARNESS))
}

/// The entry of our server. It is trusted, so tools of the mesh run without a question: otherwise an agent could
/// not answer mail while its user is away.
pub(super) fn server(setup: &Setup) -> Value {
    match &setup.server {
        Server::Http(url) => json!({
            "httpUrl": url,
            "headers": {"Authorization": "Bearer ${RELAY_MESH_TOKEN}"},
            "trust": true,
        }),
        Server::Stdio(command) => {
            let program = match setup.scope {
                Scope::Project => COMMITTED_PROGRAM,
                Scope::User => command.first().map_or("relay-mesh", String::as_str),
            };
            let mut entry = json!({"command": program, "args": command.get(1..).unwrap_or_default()});
            if setup.scope == Scope::User && !setup.environment.is_empty() {
                let variables: Map<String, Value> =
                    setup.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
                entry["env"] = Value::Object(variables);
            }
            entry["trust"] = Value::Bool(true);
            entry
        }
    }
}
