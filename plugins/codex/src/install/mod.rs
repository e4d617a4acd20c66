//! Setting Codex up for the mesh, taking it out again, and proving that it is set up.

mod check;
mod entries;
#[cfg(test)]
mod tests;

use std::fmt;

use relay_mesh_sdk::edit::toml::Occupied;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Finding, Scope, Setup};
use relay_mesh_sdk::plan::Draft;
use relay_mesh_sdk::{Error, Install, hook_groups, programs, words};

use crate::Codex;
use entries::{HARNESS, is_our_handler, put_server, take_server};

/// What the model is told in a file that people write.
const AGENTS: &str = include_str!("../../assets/agents.md");
/// How people see the skill.
const INTERFACE: &str = include_str!("../../assets/openai.yaml");

/// Where the parts of one scope lie.
struct Place {
    root: Root,
    config: &'static str,
    hooks: &'static str,
    agents: &'static str,
    skill: &'static str,
    interface: &'static str,
}

impl Place {
    fn of(scope: Scope) -> Result<Place, Error> {
        Ok(match scope {
            Scope::Project => Place {
                root: Root::open("project")?,
                config: ".codex/config.toml",
                hooks: ".codex/hooks.json",
                agents: "AGENTS.md",
                skill: ".codex/skills/relay-mesh/SKILL.md",
                interface: ".codex/skills/relay-mesh/agents/openai.yaml",
            },
            Scope::User => Place {
                root: Root::open("config")?,
                config: "config.toml",
                hooks: "hooks.json",
                agents: "AGENTS.md",
                skill: "skills/relay-mesh/SKILL.md",
                interface: "skills/relay-mesh/agents/openai.yaml",
            },
        })
    }
}

impl Install for Codex {
    fn present() -> Result<Option<String>, Error> {
        programs::version("codex-version")
    }

    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let place = Place::of(setup.scope)?;
        let root = &place.root;
        draft.toml(root, place.config, |config| put_server(config, setup))?;
        draft.jsonc(root, place.hooks, |hooks| hook_groups::put(hooks, &entries::groups(setup), is_our_handler))?;
        draft.own_or_tell(root, place.skill, words::SKILL)?;
        draft.own_or_tell(root, place.interface, INTERFACE)?;
        draft.marked(root, place.agents, HARNESS, Some(AGENTS))?;
        if draft.changes_nothing() {
            return Ok(());
        }
        draft.next_step(match setup.scope {
            Scope::Project => {
                "Start Codex in a terminal in this project and agree to trust the folder: its settings are read only then."
            }
            Scope::User => "Start Codex in a terminal; a session that runs already does not see the new server.",
        });
        draft.next_step(
            "When Codex says that hooks need review, look at those of relay-mesh and trust them: until then they do not \
             run, and mail waits for a turn of the app server, a fetch, or the queue.",
        );
        draft.tell_token(setup, "Codex");
        if setup.scope == Scope::Project {
            draft.tell_machine(setup, HARNESS, "Codex", place.config)?;
        }
        Ok(())
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let place = Place::of(setup.scope)?;
        let root = &place.root;
        draft.toml(root, place.config, |config| {
            take_server(config, &setup.server_name);
            Ok::<(), Refused>(())
        })?;
        draft.prune(root, place.hooks, |hooks| hook_groups::take(hooks, is_our_handler))?;
        draft.disown_or_tell(root, place.skill)?;
        draft.disown_or_tell(root, place.interface)?;
        draft.marked(root, place.agents, HARNESS, None)?;
        if !draft.changes_nothing() {
            draft.next_step("Sessions that run already keep their connection to the mesh until they end.");
        }
        Ok(())
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        check::check(setup)
    }
}

/// Why our part does not go into a file.
#[derive(Debug)]
enum Refused {
    /// Something of another shape stands where ours should go.
    Occupied(Occupied),
    /// The server's name belongs to somebody else.
    Taken(String),
}

impl From<Occupied> for Refused {
    fn from(occupied: Occupied) -> Refused {
        Refused::Occupied(occupied)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Occupied(occupied) => occupied.fmt(out),
            Refused::Taken(name) => {
                write!(
                    out,
                    "`mcp_servers.{name}`: a server of this name that is not relay-mesh's is there; rename it first"
                )
            }
        }
    }
}
