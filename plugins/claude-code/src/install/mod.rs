//! Setting Claude Code up for the mesh, taking it out again, and proving that it is set up.

mod check;
mod entries;
mod project;
mod settings;
#[cfg(test)]
mod tests;
mod user;

use relay_mesh_sdk::install::{Action, Finding, Plan, Scope, Setup};
use relay_mesh_sdk::plan::Draft;
use relay_mesh_sdk::{Error, Install, programs};

use crate::ClaudeCode;

/// What `/relay-status` says.
const STATUS_COMMAND: &str = include_str!("../../assets/relay-status.md");

impl Install for ClaudeCode {
    fn present() -> Result<Option<String>, Error> {
        programs::version("claude-version")
    }

    fn propose(setup: &Setup) -> Result<Plan, Error> {
        setup.check_name("Claude Code")?;
        let mut draft = Draft::default();
        match (setup.scope, setup.action) {
            (Scope::Project, Action::Install) => project::install(&mut draft, setup)?,
            (Scope::Project, Action::Remove) => project::remove(&mut draft, setup)?,
            (Scope::User, Action::Install) => user::install(&mut draft, setup)?,
            (Scope::User, Action::Remove) => user::remove(&mut draft, setup)?,
        }
        Ok(draft.finish())
    }

    fn check(setup: &Setup) -> Result<Vec<Finding>, Error> {
        setup.check_name("Claude Code")?;
        check::check(setup)
    }
}
