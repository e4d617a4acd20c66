//! What we write into Claude Code's settings, and how we match it.

use relay_mesh_sdk::install::{Server, Setup, is_hook_line, run_or_tell};
use serde_json::{Map, Value, json};

struct Hook {
    event: &'static str,
    /// The tools or kinds that it is for; none for all, or if the event takes no matcher.
    matcher: Option<fn(&str) -> String>,
    timeout_s: u32,
    /// The timeout in seconds; none for Claude Code's default.
    patience_s: Option<u32>,
    /// Runs in the background and wakes the session if it exits with code 2.
    rewakes: bool,
    /// Tells the user if our program is missing.
    tells: bool,
}

const fn on(event: &'static str) -> Hook {
    Hook { event, matcher: None, timeout_s: 10, patience_s: None, rewakes: false, tells: false }
}

/// Every hook, in the order in which a session meets them.
const HOOKS: &[Hook] = &[
    // Longer than for other hooks, because only this one names the wake file, and the adapter may have to be
    // compiled first.
    Hook { timeout_s: 60, patience_s: Some(50), tells: true, ..on("SessionStart") },
    on("UserPromptSubmit"),
    Hook { matcher: Some(before_tools), ..on("PreToolUse") },
    on("PostToolUse"),
    on("PermissionRequest"),
    on("Elicitation"),
    on("ElicitationResult"),
    // Only plain names and bars: Claude Code reads this as a list of exact kinds, not as a regular expression.
    Hook { matcher: Some(|_| "permission_prompt|elicitation_dialog|idle_prompt".to_owned()), ..on("Notification") },
    on("Stop"),
    on("SubagentStop"),
    // Only answers to SessionStart and to this event can name the wake file, and a change of folder drops the files
    // named before.
    on("CwdChanged"),
    // No matcher, because it would match file names, and the wake file is a path that the two hooks above name.
    Hook { timeout_s: 30, rewakes: true, ..on("FileChanged") },
    // Without its own timeout it shares 1.5 seconds with all other hooks.
    Hook { timeout_s: 5, ..on("SessionEnd") },
];

/// Our tools, to bind calls to sessions, and the tools that write files. Claude Code reads a matcher with such
/// characters as a regular expression without anchors, so this one has anchors.
fn before_tools(server: &str) -> String {
    format!("^(mcp__(plugin_.+_)?{server}__.+|Edit|Write|MultiEdit|NotebookEdit)$")
}

pub(super) fn groups(setup: &Setup) -> Vec<(&'static str, Value)> {
    HOOKS.iter().map(|hook| (hook.event, group(hook, hook.tells, setup))).collect()
}

fn group(hook: &Hook, tells: bool, setup: &Setup) -> Value {
    let mut words = match tells {
        true => ["/bin/sh", "-c", &run_or_tell("Claude Code")].map(str::to_owned).to_vec(),
        false => Vec::new(),
    };
    words.extend(setup.hook_words("claude-code", hook.event));
    words.extend(hook.patience_s.into_iter().flat_map(|seconds| ["--timeout".to_owned(), seconds.to_string()]));
    let (program, arguments) = words.split_first().expect("a command line has a program");
    // With `args` Claude Code runs the program without a shell.
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

/// Our hooks as one value, for the settings of a run. A run is not woken: it ends with its turn. Our program is there:
/// it starts the run.
pub(crate) fn run_hooks(setup: &Setup) -> Value {
    let while_it_runs = HOOKS.iter().filter(|hook| !hook.rewakes);
    Value::Object(while_it_runs.map(|hook| (hook.event.to_owned(), json!([group(hook, false, setup)]))).collect())
}

/// Whether a handler is ours, of this install or an older one. The program's path does not matter.
pub(super) fn is_our_handler(handler: &Value) -> bool {
    let arguments: Vec<&str> =
        handler.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let shell = handler.get("command").and_then(Value::as_str).unwrap_or_default();
    matches!(arguments.as_slice(), [.., "hook", "claude-code", _] | [.., "hook", "claude-code", _, "--timeout", _])
        || is_hook_line(shell, "claude-code")
}

/// The entry of our MCP server for a file that a team commits. It holds nothing of this machine: neither the
/// program's path, which RELAY_MESH_BIN may set, nor the token.
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

/// The entry for a file of the user's own.
pub(crate) fn personal_server(setup: &Setup) -> Value {
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
