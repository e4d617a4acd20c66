//! Sets Codex up for the mesh, removes the setup, and checks it.

mod check;
mod entries;
mod marketplace;
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

/// The text for the model in a file that the user writes.
const AGENTS: &str = include_str!("../../assets/agents.md");
/// How people see the skill.
const INTERFACE: &str = include_str!("../../assets/openai.yaml");

/// The roots and paths of one scope's files.
struct ScopeFiles {
    root: Root,
    config: &'static str,
    hooks: &'static str,
    agents: &'static str,
    skill: &'static str,
    interface: &'static str,
}

impl ScopeFiles {
    fn of(scope: Scope) -> Result<ScopeFiles, Error> {
        Ok(match scope {
            Scope::Project => ScopeFiles {
                root: Root::open("project")?,
                config: ".codex/config.toml",
                hooks: ".codex/hooks.json",
                agents: "AGENTS.md",
                skill: ".codex/skills/relay-mesh/SKILL.md",
                interface: ".codex/skills/relay-mesh/agents/openai.yaml",
            },
            Scope::User => ScopeFiles {
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
        let place = ScopeFiles::of(setup.scope)?;
        let root = &place.root;
        if let Some(plugin) = marketplace::in_place_of_install(setup)? {
            draft.next_step(plugin.instead());
            return Ok(());
        }
        draft.toml(root, place.config, |config| put_server(config, setup))?;
        draft.jsonc(root, place.hooks, |hooks| hook_groups::put(hooks, &entries::groups(setup), is_our_handler))?;
        draft.own_or_tell(root, place.skill, words::SKILL)?;
        draft.own_or_tell(root, place.interface, INTERFACE)?;
        draft.marked(root, place.agents, HARNESS, Some(AGENTS))?;
        if let Some(plugin) = marketplace::plugin()? {
            draft.next_step(plugin.beside());
        }
        if draft.changes_nothing() {
            return Ok(());
        }
        draft.next_step(match setup.scope {
            Scope::Project => {
                "Start Codex in a terminal in this project and agree to trust the folder: its settings are read only then."
            }
            Scope::User => "Start Codex in a terminal; a running session does not see the new server.",
        });
        draft.next_step(
            "When Codex says that hooks need review, look at those of relay-mesh and trust them: until then they do not \
             run, and mail waits for a turn of the app server, the queue, or a call of fetch_messages.",
        );
        draft.tell_token(setup, "Codex");
        if setup.scope == Scope::Project {
            draft.tell_machine(setup, HARNESS, "Codex", place.config)?;
        }
        Ok(())
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        let place = ScopeFiles::of(setup.scope)?;
        let root = &place.root;
        draft.toml(root, place.config, |config| {
            take_server(config, &setup.server_name);
            Ok::<(), Refused>(())
        })?;
        draft.prune(root, place.hooks, |hooks| hook_groups::take(hooks, is_our_handler))?;
        draft.disown_or_tell(root, place.skill)?;
        draft.disown_or_tell(root, place.interface)?;
        draft.marked(root, place.agents, HARNESS, None)?;
        if let (Scope::User, Some(plugin)) = (setup.scope, marketplace::plugin()?) {
            draft.next_step(plugin.stays());
        }
        if !draft.changes_nothing() {
            draft.next_step("Running sessions keep their connection to the mesh until they end.");
        }
        Ok(())
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        check::check(setup)
    }
}

/// Why our part cannot go into a file.
#[derive(Debug)]
enum Refused {
    /// The file holds a value of another type where ours should go.
    Occupied(Occupied),
    /// Another server has this name.
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
                write!(out, "`mcp_servers.{name}`: another server already has this name; rename it first")
            }
        }
    }
}
