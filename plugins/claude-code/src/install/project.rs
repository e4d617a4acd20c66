//! One project: the server goes into `.mcp.json`, which a team commits and which names nothing of
//! this machine; hooks, permissions and variables go into the local settings file.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Server, Setup};
use relay_mesh_sdk::plan::Draft;

use super::settings::{
    put_hooks, put_in_list, put_server, put_variables, take_from_list, take_hooks, take_server, take_variables,
};
use super::{SKILL, STATUS_COMMAND, disown, entries, own, taken, tell_token};

pub(super) const SERVERS: &str = ".mcp.json";
pub(super) const LOCAL_SETTINGS: &str = ".claude/settings.local.json";
const SKILL_FILE: &str = ".claude/skills/relay-mesh/SKILL.md";
const COMMAND_FILE: &str = ".claude/commands/relay-status.md";

/// The permission that lets every tool of the server run without asking.
pub(super) fn permission(server: &str) -> String {
    format!("mcp__{server}")
}

/// The variables of the local settings: what the host gives, and where the program lies, because the
/// committed file only knows its name.
pub(super) fn variables(setup: &Setup) -> Vec<(String, String)> {
    let mut variables = setup.environment.clone();
    if let (Server::Stdio(command), Some(program)) = (&setup.server, setup.program.first()) {
        let program = command.first().filter(|word| word.contains('/')).unwrap_or(program);
        variables.push(("RELAY_MESH_BIN".to_owned(), program.clone()));
    }
    variables
}

pub(super) fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
    let root = Root::open("project")?;
    let name = setup.server_name.as_str();
    draft.jsonc(&root, SERVERS, |servers| put_server(servers, name, &entries::committed_server(setup)))?;
    draft.jsonc(&root, LOCAL_SETTINGS, |settings| {
        put_hooks(settings, setup)?;
        put_in_list(settings, &["permissions", "allow"], &permission(name))?;
        put_in_list(settings, &["enabledMcpjsonServers"], name)?;
        put_variables(settings, &variables(setup))
    })?;
    own(draft, &root, SKILL_FILE, SKILL)?;
    own(draft, &root, COMMAND_FILE, STATUS_COMMAND)?;
    if draft.changes_nothing() {
        return Ok(());
    }
    draft.next_step(
        "Start a new Claude Code session in this project; one that runs already does not see the new server. \
         If Claude Code asks whether you trust the folder, agree: hooks and permissions wait for that.",
    );
    tell_token(draft, setup);
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
    draft.jsonc(&root, SERVERS, |servers| taken(|| take_server(servers, name)))?;
    draft.jsonc(&root, LOCAL_SETTINGS, |settings| {
        taken(|| {
            // In the reverse order of installing, so that what was made last is gone first.
            take_variables(settings, &setup.environment);
            take_from_list(settings, &["enabledMcpjsonServers"], name);
            take_from_list(settings, &["permissions", "allow"], &permission(name));
            take_hooks(settings);
        })
    })?;
    disown(draft, &root, SKILL_FILE)?;
    disown(draft, &root, COMMAND_FILE)?;
    if !draft.changes_nothing() {
        draft.next_step("Sessions that run already keep their connection to the mesh until they end.");
    }
    Ok(())
}

/// Whether the project's own ignore file names the local settings. Git's other ignore files are not
/// looked at: telling a person once too often does no harm.
fn ignores_local_settings(root: &Root) -> Result<bool, Error> {
    let ignored = root.read_text(".gitignore")?.unwrap_or_default();
    Ok(ignored.lines().any(|line| {
        line.contains("settings.local.json") || matches!(line.trim(), ".claude" | ".claude/" | "/.claude/")
    }))
}
