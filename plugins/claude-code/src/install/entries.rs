//! What we write into Claude Code's settings, and how we know it again.

use relay_mesh_sdk::install::{Server, Setup, is_hook_line};
use serde_json::{Map, Value, json};

/// A hook that we install.
struct Hook {
    event: &'static str,
    /// Which tools or kinds it is for; none where all, or where the event takes no matcher.
    matcher: Option<fn(&str) -> String>,
    timeout_s: u32,
    /// For how many seconds the program may answer it; none where that is its own business.
    patience_s: Option<u32>,
    /// Runs beside the session, and wakes it where it ends with exit code 2.
    rewakes: bool,
}

const fn on(event: &'static str) -> Hook {
    Hook { event, matcher: None, timeout_s: 10, patience_s: None, rewakes: false }
}

/// Every hook, in the order in which a session meets them.
const HOOKS: &[Hook] = &[
    // It names the bell, which hooks of every turn cannot: where the adapter has still to be compiled, it waits.
    Hook { timeout_s: 60, patience_s: Some(50), ..on("SessionStart") },
    on("UserPromptSubmit"),
    Hook { matcher: Some(before_tools), ..on("PreToolUse") },
    on("PostToolUse"),
    on("PermissionRequest"),
    on("Elicitation"),
    on("ElicitationResult"),
    // Only plain names and bars: a list of exact kinds, not a regular expression.
    Hook { matcher: Some(|_| "permission_prompt|elicitation_dialog|idle_prompt".to_owned()), ..on("Notification") },
    on("Stop"),
    on("SubagentStop"),
    // Only in answers to SessionStart and to this one the bell can be named, and a change of folder takes back
    // what was named before.
    on("CwdChanged"),
    // A matcher would take file names only; the bell is a path that those two hand over.
    Hook { timeout_s: 30, rewakes: true, ..on("FileChanged") },
    // Without a time of its own it shares 1.5 seconds with everybody else's.
    Hook { timeout_s: 5, ..on("SessionEnd") },
];

/// Our own tools, to bind calls to sessions, and whatever writes files. Claude Code takes a matcher
/// with such characters for a regular expression without anchors, so it brings its own.
fn before_tools(server: &str) -> String {
    format!("^(mcp__(plugin_.+_)?{server}__.+|Edit|Write|MultiEdit|NotebookEdit)$")
}

/// Every hook's group, under its event.
pub(super) fn groups(setup: &Setup) -> Vec<(&'static str, Value)> {
    HOOKS.iter().map(|hook| (hook.event, group(hook, setup))).collect()
}

/// The group that stands under a hook's event.
fn group(hook: &Hook, setup: &Setup) -> Value {
    let mut words = setup.hook_words("claude-code", hook.event);
    words.extend(hook.patience_s.into_iter().flat_map(|seconds| ["--patience".to_owned(), seconds.to_string()]));
    let (program, arguments) = words.split_first().expect("a command line has a program");
    // With `args` there is no shell between Claude Code and the program.
    let mut handler = json!({"type": "command", "command": program, "args": arguments, "timeout": hook.timeout_s});
    if hook.rewakes {
        handler["asyncRewake"] = Value::Bool(true);
    }
    let mut group = Map::new();
    if let Some(matcher) = hook.matcher {
        group.insert("matcher".to_owned(), Value::from(matcher(&setup.server_name)));
    }
    group.insert("hooks".to_owned(), json!([handler]));
    Value::Object(group)
}

/// Whether a handler is ours, of this install or an older one: by what it runs, not by where the
/// program lies.
pub(super) fn is_our_handler(handler: &Value) -> bool {
    let arguments: Vec<&str> =
        handler.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let shell = handler.get("command").and_then(Value::as_str).unwrap_or_default();
    matches!(arguments.as_slice(), [.., "hook", "claude-code", _] | [.., "hook", "claude-code", _, "--patience", _])
        || is_hook_line(shell, "claude-code")
}

/// The entry of our MCP server. In a file that a team commits, nothing names this machine: not the
/// program, whose place may be told by RELAY_MESH_BIN, and never the token.
pub(super) fn committed_server(setup: &Setup) -> Value {
    match &setup.server {
        Server::Stdio(command) => json!({
            "type": "stdio",
            "command": "${RELAY_MESH_BIN:-relay-mesh}",
            "args": command.get(1..).unwrap_or_default(),
            "alwaysLoad": true,
        }),
        Server::Http(url) => http_server(url),
    }
}

/// The same in a file of this person's own.
pub(super) fn personal_server(setup: &Setup) -> Value {
    match &setup.server {
        Server::Stdio(command) => {
            let mut entry = json!({
                "type": "stdio",
                "command": command.first().map_or("relay-mesh", String::as_str),
                "args": command.get(1..).unwrap_or_default(),
                "alwaysLoad": true,
            });
            if !setup.environment.is_empty() {
                let variables =
                    setup.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
                entry["env"] = Value::Object(variables.collect());
            }
            entry
        }
        Server::Http(url) => http_server(url),
    }
}

fn http_server(url: &str) -> Value {
    json!({
        "type": "http",
        "url": url,
        "headers": {"Authorization": "Bearer ${RELAY_MESH_TOKEN:-}"},
        "alwaysLoad": true,
    })
}
