//! `relay-mesh guard`: a pre-commit hook for one repository, which stops a commit of what another agent holds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mesh::names::AgentName;
use mesh::reservations::Conflict;
use mesh::reservations::glob::Glob;
use mesh::sessions::Principal;
use mesh::{EditMode, IdentifyError, reasons};

use crate::command::CommandSpec;
use crate::commit_guard::block::way_out;
use crate::commit_guard::git::Git;
use crate::commit_guard::{self, HookFile, Installed, Manager};
use crate::compose::Open;
use crate::config::Settings;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::printable_line;
use crate::setup::request::Installation;
use crate::shapes::guard::{GuardShape, RemovedShape, StandingShape};
use crate::shapes::reservations::ConflictShape;

/// After this the commit goes on, even if the store has not answered.
const DEADLINE: Duration = Duration::from_secs(5);

/// Stop commits of what another agent holds
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A pre-commit hook of this repository and all its worktrees. It works beside existing hooks: your \
    own, core.hooksPath, husky, lefthook and pre-commit go on as before, and `uninstall` leaves every other byte as it \
    was. A commit is stopped if one of its files, or the name that a file was renamed from, is in an exclusive \
    reservation of another agent that is not offline. The committer is the agent of the shell (RELAY_AGENT, or its \
    harness session), else no agent. `git commit --no-verify` skips the guard; if relay-mesh or its data is not \
    there, the commit goes on with a line that says so.\n\n\
    Examples:\n  \
    relay-mesh guard install\n  \
    relay-mesh guard status\n  \
    relay-mesh guard uninstall"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Put the guard into this repository
    #[command(after_help = "Examples:\n  relay-mesh guard install\n  relay-mesh guard install --repo ~/my-project")]
    Install(Where),
    /// Remove the guard from this repository
    #[command(after_help = "Example:\n  relay-mesh guard uninstall")]
    Uninstall(Where),
    /// Show whether the guard is installed here, and where
    #[command(after_help = "Example:\n  relay-mesh guard status\n\nExits with 1 if nothing here runs the guard.")]
    Status(Where),
    /// Check the staged files, as the hook does. Exits with 6 if another agent holds any of them
    #[command(after_help = "Example:\n  relay-mesh guard check && echo 'no other agent holds what is staged'")]
    Check,
}

#[derive(clap::Args, Debug)]
struct Where {
    /// The folder of the repository [default: this folder]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.command {
            Command::Install(place) => install(&repository(place, context)?, context),
            Command::Uninstall(place) => uninstall(&repository(place, context)?, context),
            Command::Status(place) => status(&repository(place, context)?, context),
            Command::Check => Ok(check(context).await),
        }
    }
}

fn repository(place: Where, context: &Context) -> Result<Git, CommandError> {
    let folder = place.repo.map_or_else(|| context.workdir.clone(), |folder| context.workdir.join(folder));
    Ok(Git::of(&folder)?)
}

fn install(git: &Git, context: &Context) -> Result<Exit, CommandError> {
    let Installation { program, data_folder } = Installation::of(context)?;
    let installed = commit_guard::install(git, &program, data_folder.as_deref())?;
    let (outcome, place) = match &installed {
        Installed::Now(place) => ("installed", place),
        Installed::Already(place) => ("already", place),
    };
    context.printer.show(&GuardShape::of(outcome, place))?;
    match place.manager {
        Manager::Husky | Manager::HooksPath => {
            context.printer.say("that file belongs to the project: commit it to guard your team's commits too");
        }
        Manager::Lefthook => context.printer.say("lefthook reads it at the next commit; add it to .gitignore"),
        Manager::Git | Manager::PreCommit => {}
    }
    Ok(Exit::Success)
}

fn uninstall(git: &Git, context: &Context) -> Result<Exit, CommandError> {
    let removed = commit_guard::uninstall(git)?;
    context.printer.show(&RemovedShape::of(&removed))?;
    Ok(Exit::Success)
}

fn status(git: &Git, context: &Context) -> Result<Exit, CommandError> {
    let found = commit_guard::found(git)?;
    let place = commit_guard::choose(git);
    // A hook manager that was set up since then runs its own hook instead of ours.
    let counts = match &place {
        Ok(HookFile { file, .. }) => found.contains(file),
        Err(_) => false,
    };
    context.printer.show(&StandingShape::of(&found, counts, context.settings.edits.value))?;
    if !counts {
        context.printer.say("`relay-mesh guard install` puts it where git, or its hook manager, will run it");
    }
    Ok(if counts { Exit::Success } else { Exit::Failure })
}

/// Checks the staged files. An error here never stops a commit.
async fn check(context: &Context) -> Exit {
    let pass = |why: &str| {
        let why = printable_line(why);
        context.printer.on_standard_error(&format!(
            "relay-mesh guard: {why}; the commit goes on without a check of who holds what it changes\n"
        ));
        Exit::Success
    };
    match tokio::time::timeout(DEADLINE, held(context)).await {
        Ok(Ok(held)) => judge(&held, context),
        Ok(Err(error)) => pass(&reasons(&error)),
        Err(_) => pass(&format!("the store has not answered for {} s", DEADLINE.as_secs())),
    }
}

/// A path of the commit that another agent holds.
struct Held {
    by: AgentName,
    /// The path, its holder and the kind of reservation, as text.
    brief: String,
}

async fn held(context: &Context) -> Result<Vec<Held>, CommandError> {
    let staged = Git::staged(&context.workdir)?;
    // No reservation covers what is not a path of a repository.
    let paths: Vec<Glob> = staged.iter().filter_map(|path| Glob::of_file(path).ok()).collect();
    if paths.is_empty() || !has_store(&context.settings) {
        return Ok(Vec::new());
    }
    let open = context.open()?;
    let caller = committer(&open, context).await?;
    let repository = open.mesh.checkout(&context.workdir)?.repository;
    let held: Vec<Conflict> = open.mesh.held_by_others(&caller, &repository, &paths).await?;
    let now = open.mesh.machine().now();
    let of = |conflict: &Conflict| Held {
        by: conflict.held.owner.clone(),
        brief: ConflictShape::of(&repository, conflict, now).brief(),
    };
    Ok(held.iter().map(of).collect())
}

/// The committer: no agent, if the named one is unknown or not this shell's. Naming an agent does not unlock what
/// it holds.
async fn committer(open: &Open, context: &Context) -> Result<Principal, CommandError> {
    match context.principal(open, None).await {
        Err(error @ (IdentifyError::Unknown(_) | IdentifyError::NotYours(_) | IdentifyError::Elsewhere { .. })) => {
            context.printer.on_standard_error(&format!("relay-mesh guard: {error}; this commit has no agent\n"));
            Ok(open.mesh.identify(&context.call(None)).await?)
        }
        outcome => Ok(outcome?),
    }
}

/// Whether a reservation can exist: without a data folder none was ever made on this machine, and a commit is no
/// reason to create the folder.
fn has_store(settings: &Settings) -> bool {
    match &settings.shared.value {
        crate::config::Shared::InTheFolder => Path::new(&settings.dir.value).exists(),
        crate::config::Shared::Nats(_) => true,
    }
}

fn judge(held: &[Held], context: &Context) -> Exit {
    if held.is_empty() {
        return Exit::Success;
    }
    let mut owners: Vec<&str> = held.iter().map(|one| one.by.as_str()).collect();
    owners.sort_unstable();
    owners.dedup();
    let mut text = "relay-mesh guard: this commit changes what others have reserved\n".to_owned();
    for one in held.iter().take(MOST_SHOWN) {
        text.push_str(&format!("  {}\n", one.brief));
    }
    if let Some(more) = held.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!("  and {more} more\n"));
    }
    let mode = context.settings.edits.value;
    text.push_str(&format!("{}\n", way_out(mode, &owners.join(", "))));
    context.printer.on_standard_error(&text);
    match mode {
        EditMode::Enforce => Exit::Held,
        EditMode::Advise => Exit::Success,
    }
}

/// A refusal lists at most this many paths.
const MOST_SHOWN: usize = 20;
