//! Sets Claude Code up for the mesh, removes the setup, and checks it.

mod check;
mod entries;
mod marketplace;
mod project;
mod settings;
mod switches;
#[cfg(test)]
mod tests;
mod user;

use relay_mesh_sdk::install::{Finding, Scope, Setup};
use relay_mesh_sdk::plan::Draft;
use relay_mesh_sdk::{Error, Install, programs};

use crate::ClaudeCode;

pub(crate) use entries::{personal_server, run_hooks};

/// The text of `/relay-status`.
const STATUS_COMMAND: &str = include_str!("../../assets/relay-status.md");

impl Install for ClaudeCode {
    fn present() -> Result<Option<String>, Error> {
        programs::version("claude-version")
    }

    fn install(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        match setup.scope {
            Scope::Project => project::install(draft, setup),
            Scope::User => user::install(draft, setup),
        }
    }

    fn remove(draft: &mut Draft, setup: &Setup) -> Result<(), Error> {
        match setup.scope {
            Scope::Project => project::remove(draft, setup),
            Scope::User => user::remove(draft, setup),
        }
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        check::check(setup)
    }
}
