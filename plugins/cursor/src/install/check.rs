//! Checks that Cursor is set up for the mesh, by the rules by which Cursor reads its settings.

use relay_mesh_sdk::checklist::Checklist;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Setup};
use relay_mesh_sdk::{Error, programs};
use serde_json::Value;

use super::entries::{self, is_our_hook};
use super::{RULE_FILE, ScopeFiles, hooks_file};

const AGAIN: &str = "run `relay-mesh install cursor` again";
/// The first build of the command line whose hooks get their payload on standard input.
const OLDEST: &str = "2026.05.20";

/// Checks every file that has an effect on us.
pub(super) fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
    let ScopeFiles { root, servers, hooks } = ScopeFiles::of(setup.scope)?;
    let mut found = Checklist::default();
    let listed = found.read(&root, servers, "Cursor")?.map(|(_, value)| value);
    let settings = found.read(&root, hooks, "Cursor")?.map(|(_, value)| value);
    found.server(listed.as_ref(), servers, ("mcpServers", &setup.server_name), &entries::server(setup), AGAIN);
    if let Some(void) = settings.as_ref().and_then(hooks_file::void) {
        found.broken(format!("Cursor ignores all of {hooks}: {void}"), void.fix());
    }
    found.hooks(settings.as_ref(), hooks, &entries::hooks(setup)?, is_our_hook, AGAIN);
    if setup.scope == Scope::Project {
        rule(&mut found, &root)?;
        twice(&mut found)?;
    }
    command_line(&mut found, setup)?;
    Ok(found.finish())
}

fn rule(found: &mut Checklist, root: &Root) -> Result<(), Error> {
    match root.read_text(RULE_FILE)? {
        Some(text) if text.contains("alwaysApply: true") => {
            found.ok(format!("{RULE_FILE} is read in every conversation"))
        }
        Some(_) => found.warn(
            format!("{RULE_FILE} is not read in every conversation"),
            "write `alwaysApply: true` between its first two lines of dashes",
        ),
        None => found.warn(format!("{RULE_FILE} is missing, so a compacted conversation forgets the mesh"), AGAIN),
    }
    Ok(())
}

/// The hooks of both scopes run, so each would run twice.
fn twice(found: &mut Checklist) -> Result<(), Error> {
    let ScopeFiles { root, hooks, .. } = ScopeFiles::of(Scope::User)?;
    let Some((_, settings)) = found.read(&root, hooks, "Cursor")? else { return Ok(()) };
    let lists = settings.get("hooks").and_then(Value::as_object).into_iter().flatten();
    if lists.filter_map(|(_, list)| list.as_array()).flatten().any(is_our_hook) {
        found.warn(
            "relay-mesh is also installed for every project of this user, so hooks run twice here",
            "run `relay-mesh uninstall cursor` in this project, or with --user for every project",
        );
    }
    Ok(())
}

/// Checks what only Cursor's command line needs.
fn command_line(found: &mut Checklist, setup: &Setup) -> Result<(), Error> {
    let Some(version) = programs::version("agent-version")? else { return Ok(()) };
    // Build names start with their date, so they compare in order.
    if version.get(..OLDEST.len()).is_some_and(|day| day < OLDEST) {
        found.warn(
            format!("Cursor's command line is {version}, and its hooks are sure to work only since {OLDEST}"),
            "run `cursor-agent update`",
        );
    }
    let name = setup.server_name.as_str();
    match approves(name)? {
        true => found.ok(format!("Cursor's command line has approved a server `{name}`")),
        false => found.warn(
            format!("Cursor's command line shows no approval of the server `{name}`, and is silent without it"),
            format!("run `cursor-agent mcp enable {name}` in the project"),
        ),
    }
    Ok(())
}

/// Whether any project's approvals name the server. Only Cursor's own digest says which project it is and whether
/// the entry is unchanged.
fn approves(name: &str) -> Result<bool, Error> {
    let config = Root::open("config")?;
    for project in config.entries("projects")?.iter().filter(|entry| entry.directory) {
        let path = format!("projects/{}/mcp-approvals.json", project.name);
        if config.read_text(&path)?.is_some_and(|approvals| approvals.contains(name)) {
            return Ok(true);
        }
    }
    Ok(false)
}
