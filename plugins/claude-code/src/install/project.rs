//! Setup for one project. The server goes into `.mcp.json`, which a team commits and which holds nothing of this
//! machine; hooks, permissions and variables go into the local settings file.

use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Server, Setup};
use relay_mesh_sdk::plan::Draft;
use relay_mesh_sdk::{Error, programs, servers, words};

use super::settings::{has_our_hooks, has_our_server, put_hooks, put_variables, take_hooks, take_variables};
use super::{STATUS_COMMAND, entries, marketplace, switches};

pub(super) const SERVERS: &str = ".mcp.json";
pub(super) const LOCAL_SETTINGS: &str = ".claude/settings.local.json";
const SKILL_FILE: &str = ".claude/skills/relay-mesh/SKILL.md";
const COMMAND_FILE: &str = ".claude/commands/relay-status.md";

/// The permission to run every tool of the server without asking.
pub(super) fn permission(server: &str) -> String {
    format!("mcp__{server}")
}

/// The variables of the local settings, which Claude Code passes to servers and hooks. RELAY_MESH_BIN must come
/// from the shell: if a project's settings set it, 2.1.329 leaves `${RELAY_MESH_BIN:-…}` in `.mcp.json` unexpanded.
fn variables(setup: &Setup) -> Vec<(String, String)> {
    setup.environment.iter().filter(|(name, _)| name != "RELAY_MESH_BIN").cloned().collect()
}

pub(super) fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
    let root = Root::open("project")?;
    let name = setup.server_name.as_str();
    draft.jsonc(&root, SERVERS, |list| servers::put(list, "mcpServers", name, &entries::committed_server(setup)))?;
    draft.jsonc(&root, LOCAL_SETTINGS, |settings| {
        put_hooks(settings, setup)?;
        settings.include(&["permissions", "allow"], &permission(name))?;
        settings.include(&["enabledMcpjsonServers"], name)?;
        put_variables(settings, &variables(setup))
    })?;
    draft.own_or_tell(&root, SKILL_FILE, words::SKILL)?;
    draft.own_or_tell(&root, COMMAND_FILE, STATUS_COMMAND)?;
    if let Some(plugin) = marketplace::plugin()? {
        draft.next_step(plugin.beside());
    }
    if draft.changes_nothing() {
        return Ok(());
    }
    draft.next_step(
        "Start a new Claude Code session in this project; a running one does not see the new server. \
         If Claude Code asks whether you trust the folder, agree: hooks and permissions wait for that.",
    );
    tell_program(draft, setup)?;
    draft.tell_token(setup, "Claude Code");
    if !ignores_local_settings(&root)? {
        draft.next_step(format!(
            "Keep {LOCAL_SETTINGS} out of version control: it holds paths of this machine. \
             {SERVERS} and the other files may be committed."
        ));
    }
    Ok(())
}

pub(super) fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
    let root = Root::open("project")?;
    let name = setup.server_name.as_str();
    let has_server = has_our_server(switches::read(&root, SERVERS)?.as_ref(), name);
    draft.prune(&root, SERVERS, |list| servers::take(list, "mcpServers", name))?;
    draft.prune(&root, LOCAL_SETTINGS, |settings| {
        // In the reverse order of the install.
        if has_server || has_our_hooks(settings.get(&[]).as_ref()) {
            take_variables(settings, &variables(setup));
        }
        settings.exclude(&["enabledMcpjsonServers"], name);
        settings.exclude(&["permissions", "allow"], &permission(name));
        take_hooks(settings);
    })?;
    draft.disown_or_tell(&root, SKILL_FILE)?;
    draft.disown_or_tell(&root, COMMAND_FILE)?;
    if !draft.changes_nothing() {
        draft.next_step("Running sessions keep their connection to the mesh until they end.");
    }
    Ok(())
}

/// The committed file has only the program's name. If the shell does not find it, the user must set its path.
fn tell_program(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
    let Some(program) = setup.program.first().filter(|_| matches!(setup.server, Server::Stdio(_))) else {
        return Ok(());
    };
    let found = match programs::find("relay-mesh") {
        Ok(found) => found,
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    if found.is_none() {
        draft.next_step(format!(
            "`relay-mesh` is not on your PATH. Put it there, or say where it is before you start Claude Code: \
             export RELAY_MESH_BIN=\"{program}\""
        ));
    }
    Ok(())
}

/// Whether the project's own ignore file names the local settings. Git's other ignore files are not read: one hint
/// too many does no harm.
fn ignores_local_settings(root: &Root) -> Result<bool, Error> {
    let ignored = root.read_text(".gitignore")?.unwrap_or_default();
    Ok(ignored.lines().any(|line| {
        line.contains("settings.local.json") || matches!(line.trim(), ".claude" | ".claude/" | "/.claude/")
    }))
}
