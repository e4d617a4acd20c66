//! What we write into Cursor's settings, and how we match it.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::install::{Scope, Server, Setup, is_hook_line};
use serde_json::{Map, Value, json};

use crate::hooks::LOOP_LIMIT;
use crate::payload::WRITERS;
use crate::tools;

/// Tells our server that its client is Cursor, whatever name the client gives.
const MARK: &str = "RELAY_MESH_CURSOR";
/// Cursor's default timeout is a minute.
const TIMEOUT_S: u32 = 10;

/// Every hook, in the order in which a conversation meets them.
const EVENTS: &[&str] = &[
    "sessionStart",
    "beforeSubmitPrompt",
    "preToolUse",
    "beforeMCPExecution",
    "postToolUse",
    "postToolUseFailure",
    "preCompact",
    "stop",
    "sessionEnd",
];

/// Our hooks with their events. An error if this machine's command line would make Cursor ignore the whole file.
pub(super) fn hooks(setup: &Setup) -> Result<Vec<(&'static str, Value)>, Error> {
    EVENTS.iter().map(|event| Ok((*event, hook(event, setup)?))).collect()
}

fn hook(event: &str, setup: &Setup) -> Result<Value, Error> {
    let command = match setup.scope {
        Scope::Project => setup.committed_hook_line("cursor", event),
        Scope::User => setup.hook_line("cursor", event),
    };
    if command.contains("//") {
        return Err(Error::Failed(format!(
            "Cursor reads `//` as a comment, even inside a text, and would ignore a hooks.json with `{command}`; \
             use paths of the program and the data folder without `//`"
        )));
    }
    let mut entry = json!({"command": command, "timeout": TIMEOUT_S});
    match event {
        "preToolUse" => entry["matcher"] = Value::from(before_tools()),
        "stop" => entry["loop_limit"] = Value::from(LOOP_LIMIT),
        _ => {}
    }
    Ok(entry)
}

/// Our tools, to bind calls to conversations, and the tools that write files. Cursor reads a matcher as a regular
/// expression without anchors, so this one has anchors.
fn before_tools() -> String {
    let ours: Vec<_> = tools::names().collect();
    format!("^(MCP:(.+:)?({})|{})$", ours.join("|"), WRITERS.join("|"))
}

/// Whether a hook is ours, of this install or an older one.
pub(super) fn is_our_hook(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|command| is_hook_line(command, "cursor"))
}

/// The entry of our MCP server. In a project's files, which a team commits, it holds nothing of this machine; if a
/// variable that it refers to is not set, the server uses its default.
pub(super) fn server(setup: &Setup) -> Value {
    match &setup.server {
        Server::Http(url) => json!({
            "url": url,
            "headers": {"Authorization": "Bearer ${env:RELAY_MESH_TOKEN}"},
        }),
        Server::Stdio(command) => {
            let program = match setup.scope {
                Scope::Project => "relay-mesh",
                Scope::User => command.first().map_or("relay-mesh", String::as_str),
            };
            let mut environment = Map::from_iter([(MARK.to_owned(), json!("1"))]);
            environment.extend(setup.environment.iter().map(|(name, value)| {
                let value = match setup.scope {
                    Scope::Project => format!("${{env:{name}}}"),
                    Scope::User => value.clone(),
                };
                (name.clone(), Value::from(value))
            }));
            json!({"command": program, "args": command.get(1..).unwrap_or_default(), "env": environment})
        }
    }
}
