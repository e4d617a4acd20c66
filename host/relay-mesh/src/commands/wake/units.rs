//! `relay-mesh wake install` and `uninstall`: systemd, or launchd on macOS, runs a program when the trigger file is
//! written.

use std::path::PathBuf;

use mesh::ports::harness::Scope;

use crate::config;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::install_channel::shell_word;
use crate::setup::agreement::Confirmation;
use crate::setup::apply::{Performed, PlanContext, carry_out, shown_path};
use crate::unix;
use crate::wake::WakeSettings;
use crate::wake::unit::{Manager, UnitError, Units};

/// Have systemd (on macOS launchd) run a program whenever the trigger file is written
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh wake install --dry-run -- notify-send 'an agent calls'\n  \
    relay-mesh wake install --yes -- openclaw system event --mode now --text 'relay-mesh: mail waits'\n\n\
    The program finds the path of the file in $RELAY_WAKE_FILE. Two units are written for you alone, below \
    ~/.config/systemd/user, or on macOS one launch agent in ~/Library/LaunchAgents; `relay-mesh wake uninstall` \
    removes them.")]
pub(super) struct InstallArgs {
    /// Show the files and write none
    #[arg(long)]
    dry_run: bool,
    /// Write them without asking
    #[arg(long, short)]
    yes: bool,
    /// What to run [default: `wake.run` of the settings]
    #[arg(last = true, value_name = "COMMAND")]
    program: Vec<String>,
}

/// Remove what `wake install` wrote
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh wake uninstall --yes")]
pub(super) struct UninstallArgs {
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove them without asking
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn install(args: InstallArgs, context: &Context) -> Result<Exit, CommandError> {
    let words = if args.program.is_empty() { context.settings.wake.run.clone() } else { Some(args.program) };
    let Some((name, arguments)) = words.as_deref().and_then(<[String]>::split_first) else {
        let own = crate::render::printable_line(&config::own_file(&context.environment));
        return Err(Failure {
            what: "no program to run was named".to_owned(),
            hint: Some(format!(
                "write it after `--`, or as a line above the tables of {own}: \
                 `wake.run = [\"notify-send\", \"an agent calls\"]`"
            )),
            exit: Exit::Usage,
            source: None,
        }
        .into());
    };
    let program: Vec<String> = std::iter::once(found(name, context)?).chain(arguments.iter().cloned()).collect();
    let units = units(context)?;
    let (manager, command) = units.manager().names();
    if found(command, context).is_err() {
        let note = format!("there is no `{command}` on the PATH: without {manager}, nothing watches the file");
        context.printer.warn(&note);
    }
    let trigger = WakeSettings::of(&context.settings).file;
    let make = async || units.install(&trigger, &program).map_err(told);
    let about = about(
        Confirmation::from_flags(args.dry_run, args.yes),
        "The files are there already.",
        "The files are written",
    );
    let locate =
        |edit: &mesh::ports::harness::Edit| shown_path(&units.path_of(edit), context.environment.home().as_deref());
    carry_out(context, &about, make, locate, |plan| performed(units.write(plan))).await
}

pub(super) async fn uninstall(args: UninstallArgs, context: &Context) -> Result<Exit, CommandError> {
    take_out(context, Confirmation::from_flags(args.dry_run, args.yes)).await
}

pub(super) async fn take_out(context: &Context, confirmation: Confirmation) -> Result<Exit, CommandError> {
    let units = units(context)?;
    let make = async || units.removal().map_err(told);
    if confirmation != Confirmation::DryRun && !make().await?.edits.is_empty() {
        let (manager, _) = units.manager().names();
        context.printer.say(&format!("{manager} drops them with `{}`.", units.manager().stop()));
    }
    let about = about(confirmation, "No files are installed.", "The files are removed");
    let locate =
        |edit: &mesh::ports::harness::Edit| shown_path(&units.path_of(edit), context.environment.home().as_deref());
    carry_out(context, &about, make, locate, |plan| performed(units.remove(plan))).await
}

fn about(confirmation: Confirmation, nothing_to_do: &str, done: &str) -> PlanContext<'static> {
    PlanContext {
        is_foreign: false,
        harness: "wake",
        scope: Scope::User,
        confirmation,
        nothing_to_do: nothing_to_do.to_owned(),
        done: done.to_owned(),
    }
}

fn performed(outcome: Result<(), UnitError>) -> Result<Performed, CommandError> {
    match outcome {
        Ok(()) => Ok(Performed::Done),
        Err(error @ UnitError::Changed(_)) => Ok(Performed::Outdated(told(error))),
        Err(error) => Err(told(error)),
    }
}

fn units(context: &Context) -> Result<Units, CommandError> {
    match Manager::of_this_system(&context.environment) {
        Some(manager) => Ok(Units::of(manager, &context.settings.dir.value)),
        None => Err(Failure {
            what: "there is no home folder for the files".to_owned(),
            hint: Some("set HOME or XDG_CONFIG_HOME".to_owned()),
            exit: Exit::Failure,
            source: None,
        }
        .into()),
    }
}

/// The absolute path of a program: neither systemd nor launchd searches this shell's PATH.
fn found(name: &str, context: &Context) -> Result<String, CommandError> {
    let is_program = |path: &PathBuf| unix::is_program(path);
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![context.workdir.join(name)]
    } else {
        let searched = context.environment.get("PATH").unwrap_or_default();
        std::env::split_paths(searched).filter(|folder| folder.is_absolute()).map(|folder| folder.join(name)).collect()
    };
    let text = |path: PathBuf| path.into_os_string().into_string().ok();
    candidates.into_iter().find(is_program).and_then(text).ok_or_else(|| {
        CommandError::from(Failure {
            what: format!("there is no program `{}`", crate::render::printable_line(name)),
            hint: Some("write its full path, and see that it may be run".to_owned()),
            exit: Exit::NotFound,
            source: None,
        })
    })
}

fn told(error: UnitError) -> CommandError {
    let (hint, exit) = match &error {
        UnitError::NotOurs(path) => {
            (Some(format!("look at it, and move it away: `mv {0} {0}.mine`", shell_word(path))), Exit::Refused)
        }
        UnitError::Changed(_) => {
            (Some("run the same command again: it looks at the file anew".to_owned()), Exit::Refused)
        }
        UnitError::Unwritable(_) => {
            (Some("give the program in other words, or let it be run by a script".to_owned()), Exit::Usage)
        }
        UnitError::File { .. } => (None, Exit::Failure),
    };
    CommandError::from(Failure {
        what: "the files were not changed".to_owned(),
        hint,
        exit,
        source: Some(Box::new(error)),
    })
}
