//! `relay-mesh plugin`: the adapters, one file for each thing that can be done with them.

mod list;
mod test;

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;

/// Show the adapters
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  relay-mesh plugin list\n  relay-mesh plugin list --load")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What is done with the adapters.
#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Show every adapter: where it comes from, what it is lent, how it has fared
    List(list::Args),
    /// Test an adapter in the sandbox: what it can do, by what that is known, and what is wrong
    Test(test::Args),
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    match args.verb {
        Verb::List(args) => list::run(args, context).await,
        Verb::Test(args) => test::run(args, context).await,
    }
}
