//! Setting Gemini CLI up for the mesh, taking it out again, and proving that it is set up.
//!
//! One file holds it all: `settings.json`, of the project or of the person. A team commits the project's, so
//! nothing in it names this machine.

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

/// Where Gemini CLI lists its servers.
const SERVERS: &str = "mcpServers";

impl Install for GeminiCli {
    fn present() -> Result<Option<String>, Error> {
        programs::version("gemini-version")
    }

    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        install(draft, setup, &Place::of(setup.scope)?)
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        remove(draft, setup, &Place::of(setup.scope)?)
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        setup.check_name("Gemini CLI")?;
        check::check(setup, &Place::of(setup.scope)?)
    }
}

/// Where the files of one scope lie.
struct Place {
    root: Root,
    settings: &'static str,
    skill: &'static str,
}

impl Place {
    fn of(scope: Scope) -> Result<Place, Error> {
        Ok(match scope {
            Scope::Project => Place {
                root: Root::open("project")?,
                settings: ".gemini/settings.json",
                skill: ".gemini/skills/relay-mesh/SKILL.md",
            },
            Scope::User => {
                Place { root: Root::open("config")?, settings: "settings.json", skill: "skills/relay-mesh/SKILL.md" }
            }
        })
    }
}

fn install(draft: &mut Draft, setup: &Setup, place: &Place) -> Result<(), Error> {
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

fn remove(draft: &mut Draft, setup: &Setup, place: &Place) -> Result<(), Error> {
    draft.prune(&place.root, place.settings, |settings| {
        // In the reverse order of installing, so that what was made last is gone first.
        hook_groups::take(settings, is_our_handler);
        servers::take(settings, SERVERS, &setup.server_name);
    })?;
    draft.disown_or_tell(&place.root, place.skill)?;
    if !draft.changes_nothing() {
        draft.next_step("Sessions that run already keep their connection to the mesh until they end.");
    }
    Ok(())
}

/// The settings of a project know the program by name alone: where the shell does not find that name, the
/// person has to say where it is.
fn tell_program(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
    let found = match programs::find("relay-mesh") {
        Ok(found) => found,
        Err(Error::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    if let (None, Some(program)) = (found, setup.program.first()) {
        draft.next_step(format!(
            "`relay-mesh` is not in your PATH. Put it there, or say where it is before you start Gemini CLI: \
             export RELAY_MESH_BIN=\"{program}\""
        ));
    }
    Ok(())
}
