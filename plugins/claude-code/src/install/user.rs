//! Setup for every project of one user. Server, hooks and skill go into a plugin folder below the harness's own,
//! which Claude Code loads by itself. We do not edit `.claude.json`, which lists the user's servers: every running
//! session rewrites it, so the edit or a session's data could be lost.

use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::Setup;
use relay_mesh_sdk::plan::{Draft, Owned};
use relay_mesh_sdk::{Error, servers, words};
use serde_json::{Value, json};

use super::settings::{has_our_hooks, has_our_server, put_hooks, put_variables, take_hooks, take_variables};
use super::{STATUS_COMMAND, entries, marketplace, switches};

/// The plugin's name. It is part of the names of its tools.
pub(super) const PLUGIN: &str = "relay-mesh";
pub(super) const MANIFEST: &str = "skills/relay-mesh/.claude-plugin/plugin.json";
pub(super) const SERVERS: &str = "skills/relay-mesh/.mcp.json";
pub(super) const HOOKS_FILE: &str = "skills/relay-mesh/hooks/hooks.json";
const SKILL_FILE: &str = "skills/relay-mesh/skills/relay-mesh/SKILL.md";
pub(super) const SETTINGS: &str = "settings.json";
const COMMAND_FILE: &str = "commands/relay-status.md";

/// The permission to run every tool of the plugin's server without asking.
pub(super) fn permission(server: &str) -> String {
    format!("mcp__plugin_{PLUGIN}_{server}")
}

pub(super) fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
    let root = Root::open("config")?;
    let name = setup.server_name.as_str();
    if let Some(plugin) = marketplace::in_place_of_install(&root)? {
        draft.next_step(plugin.instead());
        return Ok(());
    }
    if draft.replace(&root, MANIFEST, Some(manifest()), is_our_manifest)? == Owned::Theirs {
        return Err(Error::Failed(format!("{MANIFEST} belongs to another plugin; move that plugin first")));
    }
    draft.jsonc(&root, SERVERS, |list| servers::put(list, "mcpServers", name, &entries::personal_server(setup)))?;
    draft.jsonc(&root, HOOKS_FILE, |hooks| put_hooks(hooks, setup))?;
    draft.own_or_tell(&root, SKILL_FILE, words::SKILL)?;
    draft.own_or_tell(&root, COMMAND_FILE, STATUS_COMMAND)?;
    draft.jsonc(&root, SETTINGS, |settings| {
        settings.include(&["permissions", "allow"], &permission(name))?;
        put_variables(settings, &setup.environment)
    })?;
    if let Some(plugin) = marketplace::plugin()? {
        draft.next_step(plugin.beside());
    }
    if draft.changes_nothing() {
        return Ok(());
    }
    draft.next_step("Start a new Claude Code session, in any folder; a running one does not see the plugin.");
    draft.tell_token(setup, "Claude Code");
    Ok(())
}

pub(super) fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
    let root = Root::open("config")?;
    if let Some(plugin) = marketplace::in_place_of_install(&root)? {
        // The permission is then the user's own, for the plugin.
        draft.next_step(plugin.stays());
        return Ok(());
    }
    let name = setup.server_name.as_str();
    let is_set_up = has_our_server(switches::read(&root, SERVERS)?.as_ref(), name)
        || has_our_hooks(switches::read(&root, HOOKS_FILE)?.as_ref());
    draft.prune(&root, SERVERS, |list| servers::take(list, "mcpServers", name))?;
    draft.prune(&root, HOOKS_FILE, take_hooks)?;
    draft.disown_or_tell(&root, SKILL_FILE)?;
    draft.disown_or_tell(&root, COMMAND_FILE)?;
    draft.prune(&root, SETTINGS, |settings| {
        if is_set_up {
            take_variables(settings, &setup.environment);
        }
        settings.exclude(&["permissions", "allow"], &permission(name));
    })?;
    // Another plugin of this name stays.
    let _: Owned = draft.replace(&root, MANIFEST, None, is_our_manifest)?;
    if let Some(plugin) = marketplace::plugin()? {
        draft.next_step(plugin.stays());
    }
    if !draft.changes_nothing() {
        draft.next_step("Running sessions keep their connection to the mesh until they end.");
    }
    Ok(())
}

fn manifest() -> String {
    let manifest = json!({
        "name": PLUGIN,
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Talk to the coding agents that work beside you",
    });
    format!("{manifest:#}\n")
}

/// Whether a plugin's manifest is ours, of any version.
pub(super) fn is_our_manifest(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|manifest| manifest.get("name") == Some(&Value::from(PLUGIN)))
}
