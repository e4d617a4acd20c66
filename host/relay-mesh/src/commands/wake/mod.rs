//! `relay-mesh wake`: wake an agent, or a listener of the user's own.

mod units;

use mesh::names::AgentName;
use mesh::{LONGEST_WAKE, WakeError};

use crate::command::CommandSpec;
use crate::commands::input;
use crate::config::Method;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::setup::agreement::Confirmation;
use crate::wake::unit;
use crate::wake::{Reaching, reach};

/// Wake an agent, or a listener of your own
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    relay-mesh wake 'the build is red' --to alice\n  \
    relay-mesh wake alice\n  \
    relay-mesh wake 'nightly run has ended'\n  \
    relay-mesh wake --method gateway --method file\n\n\
    With --to, or with an agent's name alone, the text is sent as a message, over the routes of that agent's harness. If none takes it, and always \
    without --to, the methods of your settings follow, each for a while, until one works: a program (`wake.gateway`), \
    a Unix socket (`wake.socket`), the file `wake/trigger`, which `relay-mesh wake install` has systemd watch (on macOS launchd). \
    Exits with 1 if none worked."
)]
pub(crate) struct Args {
    /// Install or remove the files by which systemd or launchd runs a program of yours.
    #[command(subcommand)]
    verb: Option<Verb>,
    /// What to say; `-` takes the text from standard input
    #[arg(value_name = "TEXT", default_value = "", hide_default_value = true)]
    text: String,
    /// The agent's address [default: no agent, only the methods of your settings]
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,
    /// Try only this method; may be given several times, in the order in which to try them
    #[arg(long = "method", value_name = "METHOD", value_enum)]
    methods: Vec<Method>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session, else `shell`]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<AgentName>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Have systemd (on macOS launchd) run a program whenever the trigger file is written
    Install(units::InstallArgs),
    /// Remove what `wake install` wrote
    Uninstall(units::UninstallArgs),
}

/// Whether `relay-mesh wake install` has written its files.
pub(crate) fn has_units(context: &Context) -> bool {
    unit::watcher(context).is_some()
}

/// Removes those files.
pub(crate) async fn take_units_out(context: &Context, confirmation: Confirmation) -> Result<Exit, CommandError> {
    units::take_out(context, confirmation).await
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self {
            Args { verb: Some(Verb::Install(install)), .. } => units::install(install, context).await,
            Args { verb: Some(Verb::Uninstall(uninstall)), .. } => units::uninstall(uninstall, context).await,
            Args { verb: None, text, to, methods, from } => {
                let text = if text == "-" { input::text(LONGEST_WAKE + 1)? } else { text };
                if text.len() > LONGEST_WAKE {
                    return Err(WakeError::TooLong(text.len()).into());
                }
                let shape = reach(Reaching { text, to, methods, from }, context, &context.open()?).await?;
                context.printer.show(&shape)?;
                Ok(if shape.woken { Exit::Success } else { Exit::Failure })
            }
        }
    }
}
