//! Sets Cursor up for the mesh, removes the setup, and checks it.

mod check;
mod entries;
mod hooks_file;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Setup};
use relay_mesh_sdk::plan::Draft;
use relay_mesh_sdk::{Error, Install, programs, servers, words};

use crate::Cursor;

/// The rule that Cursor gives to every conversation of a project, in the order of the file.
const FRONT_MATTER: &str = include_str!("../../assets/front-matter.md");
const IN_CURSOR: &str = include_str!("../../assets/in-cursor.md");
const RULE_FILE: &str = ".cursor/rules/relay-mesh.mdc";

impl Install for Cursor {
    fn present() -> Result<Option<String>, Error> {
        match programs::version("agent-version")? {
            Some(version) => Ok(Some(version)),
            None => programs::version("editor-version"),
        }
    }

    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let ScopeFiles { root, servers, hooks } = ScopeFiles::of(setup.scope)?;
        let wanted = entries::hooks(setup)?;
        let name = setup.server_name.as_str();
        draft.jsonc(&root, servers, |list| servers::put(list, "mcpServers", name, &entries::server(setup)))?;
        draft.jsonc(&root, hooks, |settings| hooks_file::put(settings, &wanted))?;
        if setup.scope == Scope::Project {
            draft.own_or_tell(&root, RULE_FILE, &[FRONT_MATTER, words::skill_body(), IN_CURSOR].join("\n"))?;
        }
        if draft.changes_nothing() {
            return Ok(());
        }
        draft.next_step(format!(
            "Switch the server `{name}` on in Cursor's settings, under MCP. For Cursor's command line: \
             `cursor-agent mcp enable {name}`, in this folder. Cursor silently leaves out a server that you have not approved."
        ));
        if setup.scope == Scope::Project {
            draft.next_step("Trust this folder when Cursor asks: it runs a project's hooks only then.");
            draft.tell_machine(setup, "cursor", "Cursor", servers)?;
        }
        draft.next_step("Start a new conversation; a running one does not know the rule or the tools.");
        draft.tell_token(setup, "Cursor");
        Ok(())
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let ScopeFiles { root, servers, hooks } = ScopeFiles::of(setup.scope)?;
        draft.prune(&root, servers, |list| servers::take(list, "mcpServers", &setup.server_name))?;
        draft.prune(&root, hooks, hooks_file::take)?;
        if setup.scope == Scope::Project {
            draft.disown_or_tell(&root, RULE_FILE)?;
        }
        if !draft.changes_nothing() {
            draft.next_step("Running conversations keep their connection to the mesh until Cursor ends it.");
        }
        Ok(())
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        check::check(setup)
    }
}

/// The roots and paths of one scope's files.
struct ScopeFiles {
    root: Root,
    servers: &'static str,
    hooks: &'static str,
}

impl ScopeFiles {
    fn of(scope: Scope) -> Result<ScopeFiles, Error> {
        Ok(match scope {
            Scope::Project => {
                ScopeFiles { root: Root::open("project")?, servers: ".cursor/mcp.json", hooks: ".cursor/hooks.json" }
            }
            Scope::User => ScopeFiles { root: Root::open("config")?, servers: "mcp.json", hooks: "hooks.json" },
        })
    }
}
