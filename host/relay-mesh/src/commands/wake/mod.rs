//! `relay-mesh wake`: wake an agent, or whoever listens.

mod reaching;
mod units;

use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::config::Method;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;

/// Wake an agent, or whoever listens
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    relay-mesh wake 'the build is red' --to alice\n  \
    relay-mesh wake 'nightly run has ended'\n  \
    relay-mesh wake --method gateway --method file\n\n\
    With --to the text goes as a message, by the ways of that agent's harness. Where nobody takes it there, and \
    without --to, the ways of your settings follow, each for a while, until one works: a program (`wake.gateway`), a \
    Unix socket (`wake.socket`), the file `wake/trigger`, which `relay-mesh wake install` has systemd watch. \
    It ends with 1 where none worked."
)]
pub(crate) struct Args {
    /// Have systemd run a program of yours instead, or no longer.
    #[command(subcommand)]
    verb: Option<Verb>,
    /// What to say; `-` takes the text from standard input
    #[arg(value_name = "TEXT", default_value = "", hide_default_value = true)]
    text: String,
    /// Whom: an agent's address [default: whoever listens]
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,
    /// Try this way, and none that is not named; may be given several times, in the order to be tried
    #[arg(long = "method", value_name = "METHOD", value_enum)]
    methods: Vec<Method>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session, else `shell`]
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentName>,
}

/// What else there is to do about waking.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Have systemd run a program whenever the trigger file is written
    Install(units::InstallArgs),
    /// Take that out again
    Uninstall(units::UninstallArgs),
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self {
            Args { verb: Some(Verb::Install(install)), .. } => units::install(install, context).await,
            Args { verb: Some(Verb::Uninstall(uninstall)), .. } => units::uninstall(uninstall, context).await,
            Args { verb: None, .. } => reaching::run(self, context).await,
        }
    }
}
