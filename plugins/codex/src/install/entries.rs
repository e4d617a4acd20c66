//! What we write into Codex's settings, and how we know it again.

use relay_mesh_sdk::edit::toml::{Document, Value as Toml};
use relay_mesh_sdk::install::{Scope, Server, Setup, is_hook_line};
use serde_json::{Value, json};

use super::Refused;

/// What people type, and what our hooks say whose they are.
pub(super) const HARNESS: &str = "codex";

/// A hook that we install.
struct Hook {
    event: &'static str,
    /// Which tools it is for; none where all, or where the event takes no matcher.
    matcher: Option<&'static str>,
    timeout_s: u32,
}

const fn on(event: &'static str) -> Hook {
    Hook { event, matcher: None, timeout_s: 10 }
}

/// Every hook, in the order in which a thread meets them.
const HOOKS: &[Hook] = &[
    on("SessionStart"),
    on("UserPromptSubmit"),
    // Only what writes files: every other tool is left to run without us.
    Hook { matcher: Some("apply_patch"), ..on("PreToolUse") },
    on("PermissionRequest"),
    on("PostToolUse"),
    on("SubagentStart"),
    on("SubagentStop"),
    on("Stop"),
    // Codex allows these two no more, and says so where a file asks for it.
    Hook { timeout_s: 3, ..on("Interrupt") },
    Hook { timeout_s: 3, ..on("SessionEnd") },
];

/// Variables that Codex keeps from the servers that it starts, and that ours needs: where Codex has its
/// settings, where ours are, and how the desktop is reached. Forwarded by name, so that no value of this
/// machine or this hour is written down.
const FORWARDED: [&str; 5] =
    ["RELAY_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Keys that an older install or the other transport may have left.
const OURS: [&str; 6] = ["command", "args", "env", "env_vars", "url", "bearer_token_env_var"];

/// Every hook's group, under its event.
pub(super) fn groups(setup: &Setup) -> Vec<(&'static str, Value)> {
    let group = |hook: &Hook| {
        let command = match setup.scope {
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

/// Puts our server into `mcp_servers`, in the place of an older install's. What else a person wrote
/// under it stays.
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

/// Takes our server out, where the one of that name is ours.
pub(super) fn take_server(config: &mut Document, name: &str) {
    if is_ours(config, name) {
        config.remove(&["mcp_servers", name]);
    }
}

/// The entries of our server's table. In the files of a project, which a team commits, nothing names this
/// machine: Codex looks for the program in its PATH, and hands on variables by name.
pub(super) fn server(setup: &Setup) -> Vec<(&'static str, Toml)> {
    // Codex asks a person before a tool that writes, and refuses it where no person is there to ask.
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

/// Whether the server of that name is ours: by what it starts, or by the token that it shows.
pub(super) fn is_ours(config: &Document, name: &str) -> bool {
    let says = |key: &str, part: &str| {
        config
            .get(&["mcp_servers", name, key])
            .is_some_and(|value| value.as_str().is_some_and(|text| text.contains(part)))
    };
    says("command", "relay-mesh") || says("bearer_token_env_var", "RELAY_MESH_TOKEN")
}

/// Whether the name belongs to a server of somebody else.
pub(super) fn is_taken(config: &Document, name: &str) -> bool {
    let is_there = ["command", "url"].iter().any(|key| config.get(&["mcp_servers", name, key]).is_some());
    is_there && !is_ours(config, name)
}
