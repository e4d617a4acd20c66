//! `relay-mesh plugin`, written in the setup part.

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;

/// What the command takes.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh plugin")]
pub(crate) struct Args {
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let _arrives_with_the_setup_part = (args, context);
    Ok(Outcome::DONE)
}
