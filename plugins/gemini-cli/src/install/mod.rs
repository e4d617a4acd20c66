//! Sets Gemini CLI up for the mesh, removes the setup, and checks it.
//!
//! One file holds it all: `settings.json`, of the project or of the user. A team commits the project's file, so it
//! holds nothing of this machine.

mod check;
mod entries;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Setup};
use relay_mesh_sdk::plan::Draft;
use relay_mesh_sdk::servers::{self, Refused};
use relay_mesh_sdk::{Error, Install, hook_groups, programs, words};

use crate::GeminiCli;
use entries::is_our_handler;

/// The property in which Gemini CLI lists its servers.
const SERVERS: &str = "mcpServers";

impl Install for GeminiCli {
    fn present() -> Result<Option<String>, Error> {
        programs::version("gemini-version")
    }

    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        install(draft, setup, &ScopeFiles::of(setup.scope)?)
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        remove(draft, setup, &ScopeFiles::of(setup.scope)?)
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        setup.check_name("Gemini CLI")?;
        check::check(setup, &ScopeFiles::of(setup.scope)?)
    }
}

/// The roots and paths of one scope's files.
struct ScopeFiles {
    root: Root,
    settings: &'static str,
    skill: &'static str,
}

impl ScopeFiles {
    fn of(scope: Scope) -> Result<ScopeFiles, Error> {
        Ok(match scope {
            Scope::Project => ScopeFiles {
                root: Root::open("project")?,
                settings: ".gemini/settings.json",
                skill: ".gemini/skills/relay-mesh/SKILL.md",
            },
            Scope::User => ScopeFiles {
                root: Root::open("config")?,
                settings: "settings.json",
                skill: "skills/relay-mesh/SKILL.md",
            },
        })
    }
}

fn install(draft: &mut Draft, setup: &Setup, place: &ScopeFiles) -> Result<(), Error> {
    let name = setup.server_name.as_str();
    draft.jsonc(&place.root, place.settings, |settings: &mut Document| {
        servers::put(settings, SERVERS, name, &entries::server(setup))?;
        hook_groups::put(settings, &entries::groups(setup), is_our_handler)?;
        Ok::<(), Refused>(())
    })?;
    draft.own_or_tell(&place.root, place.skill, words::SKILL)?;
    if draft.changes_nothing() {
        return Ok(());
    }
    draft.next_step("Start a new Gemini CLI session; one that runs already knows neither the hooks nor the server.");
    if setup.scope == Scope::Project {
        draft.next_step("If Gemini CLI asks whether you trust the folder, agree: it runs a project's hooks only then.");
        tell_program(draft, setup)?;
        for (name, value) in &setup.environment {
            draft.next_step(format!(
                "Say so before you start Gemini CLI, for a team's settings cannot: export {name}=\"{value}\". \
                 Or set it up for yourself alone: `relay-mesh install gemini-cli --user`."
            ));
        }
    }
    draft.tell_token(setup, "Gemini CLI");
    Ok(())
}

fn remove(draft: &mut Draft, setup: &Setup, place: &ScopeFiles) -> Result<(), Error> {
    draft.prune(&place.root, place.settings, |settings| {
        // In the reverse order of the install.
        hook_groups::take(settings, is_our_handler);
        servers::take(settings, SERVERS, &setup.server_name);
    })?;
    draft.disown_or_tell(&place.root, place.skill)?;
    if !draft.changes_nothing() {
        draft.next_step("Running sessions keep their connection to the mesh until they end.");
    }
    Ok(())
}

/// A project's settings have only the program's name. If the shell does not find it, the user must set its path.
fn tell_program(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
    let found = match programs::find("relay-mesh") {
        Ok(found) => found,
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    if let (None, Some(program)) = (found, setup.program.first()) {
        draft.next_step(format!(
            "`relay-mesh` is not on your PATH. Put it there, or say where it is before you start Gemini CLI: \
             export RELAY_MESH_BIN=\"{program}\""
        ));
    }
    Ok(())
}
