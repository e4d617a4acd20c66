//! Setting Claude Code up for the mesh, taking it out again, and proving that it is set up.

mod check;
mod entries;
mod project;
mod settings;
#[cfg(test)]
mod tests;
mod user;

use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Action, Finding, Plan, Scope, Server, Setup};
use relay_mesh_sdk::plan::{Draft, Owned};
use relay_mesh_sdk::{Error, Install, programs};

use crate::ClaudeCode;
use settings::Refused;

/// What Claude Code reads when a task calls for it.
const SKILL: &str = include_str!("../../assets/SKILL.md");
/// What `/relay-status` says.
const STATUS_COMMAND: &str = include_str!("../../assets/relay-status.md");

impl Install for ClaudeCode {
    fn present() -> Result<Option<String>, Error> {
        match programs::run("claude-version", &[], &[]) {
            // `2.1.329 (Claude Code)`
            Ok(outcome) => Ok(outcome.text().and_then(|text| text.split_whitespace().next().map(str::to_owned))),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn propose(setup: &Setup) -> Result<Plan, Error> {
        parse_name(&setup.server_name)?;
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
        parse_name(&setup.server_name)?;
        check::check(setup)
    }
}

/// The server's name becomes part of tool names and of a regular expression.
fn parse_name(name: &str) -> Result<(), Error> {
    let fits = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    match fits {
        true => Ok(()),
        false => Err(Error::Failed(format!(
            "`{name}` cannot name a server of Claude Code: letters, digits, - and _ may stand in it"
        ))),
    }
}

/// A text file of ours is written, or the person is told why not.
fn own(draft: &mut Draft, root: &Root, path: &str, text: &str) -> Result<(), Error> {
    if draft.own(root, path, text)? == Owned::Theirs {
        draft.next_step(format!("{path} is not as relay-mesh wrote it and is left as it is; delete it to get ours."));
    }
    Ok(())
}

/// A text file of ours is deleted, or the person is told why not.
fn disown(draft: &mut Draft, root: &Root, path: &str) -> Result<(), Error> {
    if draft.disown(root, path)? == Owned::Theirs {
        draft.next_step(format!(
            "{path} was changed since relay-mesh wrote it and is left; delete it by hand if you want."
        ));
    }
    Ok(())
}

/// What the person has to do so that a server over HTTP lets Claude Code in.
fn tell_token(draft: &mut Draft, setup: &Setup) {
    if matches!(setup.server, Server::Http(_)) {
        let folder = setup.environment.iter().find(|(name, _)| name == "RELAY_DIR");
        let folder = folder.map_or("$HOME/.relay-mesh", |(_, folder)| folder.as_str());
        draft.next_step("Keep `relay-mesh serve` running: Claude Code connects to it when a session starts.");
        draft.next_step(format!(
            "Give Claude Code the host's token before you start it: export RELAY_MESH_TOKEN=\"$(cat \"{folder}/http.token\")\""
        ));
    }
}

/// A change that only takes out refuses nothing.
fn taken(take: impl FnOnce()) -> Result<(), Refused> {
    take();
    Ok(())
}
