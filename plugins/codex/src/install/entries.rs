//! What we write into Codex's settings, and how we match it.

use relay_mesh_sdk::edit::toml::{Document, Value as Toml};
use relay_mesh_sdk::install::{Scope, Server, Setup, is_hook_line};
use serde_json::{Value, json};

use super::Refused;

/// The harness's name in commands and in our hooks.
pub(super) const HARNESS: &str = "codex";

struct Hook {
    event: &'static str,
    /// The tools that it is for; none for all, or if the event takes no matcher.
    matcher: Option<&'static str>,
    timeout_s: u32,
    /// Tells the user if our program is missing. Codex says only that some hook failed.
    tells: bool,
}

const fn on(event: &'static str) -> Hook {
    Hook { event, matcher: None, timeout_s: 10, tells: false }
}

/// Every hook, in the order in which a thread meets them.
const HOOKS: &[Hook] = &[
    on("SessionStart"),
    Hook { tells: true, ..on("UserPromptSubmit") },
    on("PreModelRequest"),
    // Only tools that write files: the others run without our hook.
    Hook { matcher: Some("apply_patch"), ..on("PreToolUse") },
    on("PermissionRequest"),
    on("PostToolUse"),
    on("SubagentStart"),
    on("SubagentStop"),
    on("Stop"),
    // Codex allows these two no longer timeout, and warns if a file asks for one.
    Hook { timeout_s: 3, ..on("Interrupt") },
    Hook { timeout_s: 3, ..on("SessionEnd") },
];

/// Variables that our server needs and that Codex does not pass to servers by default: where Codex has its
/// settings, where our settings and data are, and how to reach the desktop. Forwarded by name, so the file holds no value of this
/// machine.
const FORWARDED: [&str; 7] = [
    "RELAY_DIR",
    "CODEX_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Keys that an older install or the other transport may have left.
const OURS: [&str; 6] = ["command", "args", "env", "env_vars", "url", "bearer_token_env_var"];

pub(super) fn groups(setup: &Setup) -> Vec<(&'static str, Value)> {
    let group = |hook: &Hook| {
        let command = match setup.scope {
            _ if hook.tells => setup.telling_hook_line(HARNESS, hook.event, "Codex"),
            Scope::Project => setup.committed_hook_line(HARNESS, hook.event),
            Scope::User => setup.hook_line(HARNESS, hook.event),
        };
        let handler = json!({"type": "command", "command": command, "timeout": hook.timeout_s});
        match hook.matcher {
            Some(matcher) => json!({"matcher": matcher, "hooks": [handler]}),
            None => json!({"hooks": [handler]}),
        }
    };
    HOOKS.iter().map(|hook| (hook.event, group(hook))).collect()
}

/// Whether a handler is ours, of this install or an older one.
pub(super) fn is_our_handler(handler: &Value) -> bool {
    handler.get("command").and_then(Value::as_str).is_some_and(|line| is_hook_line(line, HARNESS))
}

/// Adds our server to `mcp_servers` and replaces that of an older install. Keys that the user added to it stay.
pub(super) fn put_server(config: &mut Document, setup: &Setup) -> Result<(), Refused> {
    let name = setup.server_name.as_str();
    let table = ["mcp_servers", name];
    if is_taken(config, name) {
        return Err(Refused::Taken(name.to_owned()));
    }
    let wanted = server(setup);
    config.put_table(&table, &wanted)?;
    for stale in OURS.iter().filter(|key| wanted.iter().all(|(wanted, _)| wanted != *key)) {
        config.remove(&[&table[..], &[stale]].concat());
    }
    Ok(())
}

/// Removes the server of this name if it is ours.
pub(super) fn take_server(config: &mut Document, name: &str) {
    if is_ours(config, name) {
        config.remove(&["mcp_servers", name]);
    }
}

/// The entries of our server's table. In a project's files, which a team commits, they hold nothing of this
/// machine: Codex finds the program on its PATH and forwards variables by name.
pub(super) fn server(setup: &Setup) -> Vec<(&'static str, Toml)> {
    // Codex asks the user before it runs a tool that writes, and refuses it if there is no user to ask.
    let approved = ("default_tools_approval_mode", Toml::from("approve"));
    match &setup.server {
        Server::Stdio(command) => {
            let (program, environment) = match setup.scope {
                Scope::Project => ("relay-mesh", &[][..]),
                Scope::User => (command.first().map_or("relay-mesh", String::as_str), &setup.environment[..]),
            };
            let arguments = Toml::from_iter(command.iter().skip(1).map(String::as_str));
            let mut entries = vec![("command", Toml::from(program)), ("args", arguments)];
            if !environment.is_empty() {
                let variables = environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                entries.push(("env", Toml::from_iter(variables)));
            }
            let written = |name: &str| environment.iter().any(|(other, _)| other == name);
            let further = setup.environment.iter().map(|(name, _)| name.as_str());
            let mut forwarded: Vec<&str> = FORWARDED.into_iter().filter(|name| !written(name)).collect();
            forwarded.extend(further.filter(|name| !written(name) && !FORWARDED.contains(name)));
            entries.push(("env_vars", Toml::from_iter(forwarded)));
            entries.push(approved);
            entries
        }
        Server::Http(url) => {
            vec![("url", Toml::from(url.as_str())), ("bearer_token_env_var", Toml::from("RELAY_MESH_TOKEN")), approved]
        }
    }
}

/// Whether the server of that name is ours, by the program it starts or the token it sends.
pub(super) fn is_ours(config: &Document, name: &str) -> bool {
    let says = |key: &str, part: &str| {
        config
            .get(&["mcp_servers", name, key])
            .is_some_and(|value| value.as_str().is_some_and(|text| text.contains(part)))
    };
    says("command", "relay-mesh") || says("bearer_token_env_var", "RELAY_MESH_TOKEN")
}

/// Whether another server has the name.
pub(super) fn is_taken(config: &Document, name: &str) -> bool {
    let is_there = ["command", "url"].iter().any(|key| config.get(&["mcp_servers", name, key]).is_some());
    is_there && !is_ours(config, name)
}
