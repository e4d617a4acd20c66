//! `relay-mesh plugin remove`: removes an installed adapter, with its consents, its notes and its sessions.

use mesh::ports::harness::Harnesses as _;

use super::install::{installed_adapters, installed_error};
use super::shapes::Removed;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::setup::apply::shown_path;
use crate::setup::installed::scope_name;

/// Remove an adapter, with its consents, its notes and its sessions
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  relay-mesh plugin remove toad\n\n\
    If it has set up a harness, only it can undo that: run `relay-mesh uninstall NAME` first. `--anyway` removes it \
    all the same, and names the files to look at.")]
pub(super) struct Args {
    /// Which adapter, as `relay-mesh plugin list` names it
    name: String,
    /// Remove it although something that it set up is still there
    #[arg(long)]
    anyway: bool,
}

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let all = installed_adapters(&open)?;
    let name = args.name.as_str();
    let is_damaged = matches!(all.record(name), Err(adapters::InstalledError::Damaged { .. }));
    if !is_damaged && all.record(name).map_err(installed_error)?.is_none() {
        return Err(installed_error(adapters::InstalledError::Absent(name.to_owned())));
    }
    let leftovers = open.adapters.leftovers(name).map_err(|error| {
        CommandError::caused_by("what the adapter set up could not be read", error.hint(), Exit::Store, error)
    })?;
    let home = context.environment.home();
    let files: Vec<String> = leftovers.iter().map(|leftover| shown_path(&leftover.file, home.as_deref())).collect();
    if let Some(first) = leftovers.first().filter(|_| !args.anyway) {
        let flag = match first.scope {
            mesh::ports::harness::Scope::User => "--user".to_owned(),
            mesh::ports::harness::Scope::Project => "--project DIR".to_owned(),
        };
        return Err(Failure {
            what: format!(
                "what `{name}` set up for the {} is still there: {}",
                scope_name(first.scope),
                files.join(", ")
            ),
            hint: Some(format!(
                "take it out first: `relay-mesh uninstall {name} {flag}`; or say `--anyway`, and mend the files yourself"
            )),
            exit: Exit::Refused,
            source: None,
        }.into());
    }
    all.remove(name).map_err(installed_error)?;
    open.adapters.forget(name).await?;
    // A built-in adapter of the same name goes on with them.
    let goes_on = open.adapters.names().iter().any(|known| known == name);
    let sessions = if goes_on { 0 } else { open.mesh.end_sessions_of(name).await? };
    context.printer.say(&format!("{name} is removed, with what it was given and what it noted{}.", ended(sessions)));
    if !files.is_empty() {
        context.printer.warn(&format!("what it set up is still in {}", files.join(", ")));
    }
    context.printer.show(&Removed { adapter: name.to_owned(), leftovers: files, sessions })?;
    Ok(Exit::Success)
}

fn ended(sessions: usize) -> String {
    match sessions {
        0 => String::new(),
        1 => ", and its session has ended".to_owned(),
        many => format!(", and its {many} sessions have ended"),
    }
}
