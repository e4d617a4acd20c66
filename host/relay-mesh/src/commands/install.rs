//! `relay-mesh install`, written in the setup part.

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;

/// What the command takes.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh install claude-code --project .")]
pub(crate) struct Args {
    /// Which harness
    harness: String,
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let _arrives_with_the_setup_part = (args, context);
    Ok(Outcome::DONE)
}

/// What the aliases take that name their harness: `install-claude-code` and the like.
#[derive(clap::Args, Debug)]
pub(crate) struct NamedArgs {}

impl NamedArgs {
    /// The arguments of `install` for a harness.
    pub(crate) fn of(self, harness: &str) -> Args {
        Args { harness: harness.to_owned() }
    }
}
