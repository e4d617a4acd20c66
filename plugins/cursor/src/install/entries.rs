//! What we write into Cursor's settings, and how we know it again.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::install::{Scope, Server, Setup, is_hook_line};
use serde_json::{Map, Value, json};

use crate::hooks::LOOP_LIMIT;
use crate::payload::WRITERS;
use crate::tools;

/// Tells our server that it serves Cursor, by whatever name the client calls itself.
const MARK: &str = "RELAY_MESH_CURSOR";
/// Cursor's own patience is a minute.
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

/// Our hooks, each with its event. An error where this machine's command line would make Cursor pass
/// over the whole file.
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
            "Cursor takes `//` for a comment, also within a text, and would pass over a hooks.json with `{command}`; \
             name the program and the data folder without it"
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

/// Our own tools, to bind calls to conversations, and whatever writes files. Cursor takes a matcher for
/// a regular expression without anchors, so it brings its own.
fn before_tools() -> String {
    let ours: Vec<_> = tools::names().collect();
    format!("^(MCP:(.+:)?({})|{})$", ours.join("|"), WRITERS.join("|"))
}

/// Whether a hook is ours, of this install or an older one.
pub(super) fn is_our_hook(entry: &Value) -> bool {
    entry.get("command").and_then(Value::as_str).is_some_and(|command| is_hook_line(command, "cursor"))
}

/// The entry of our MCP server. In the files of a project, which a team commits, nothing names this
/// machine; a reference to a variable that has no value there leaves the server to its defaults.
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
