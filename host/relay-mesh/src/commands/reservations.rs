//! `relay-mesh reservations`: who holds what.

use std::path::PathBuf;

use mesh::Wanted;
use mesh::names::AgentName;

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;
use crate::shapes::reservations::ReservationsShape;

/// Show who has reserved what
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh reservations\n  \
    relay-mesh reservations --repo . --agent alice\n  \
    relay-mesh reservations --json | jq -r '.reservations[].pattern'")]
pub(crate) struct Args {
    /// Only of the repository of this folder
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Only of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
    /// Also those that lapsed or were taken within the last hour
    #[arg(long)]
    expired: bool,
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = context.open()?;
    let repository = match args.repo {
        Some(folder) => Some(open.mesh.checkout(&context.workdir.join(folder))?.repository),
        None => None,
    };
    let wanted = Wanted { repository, owner: args.agent, also_over: args.expired };
    let found = open.mesh.reservations(&wanted).await?;
    context.printer.show(&ReservationsShape::of(&found, open.mesh.machine().now()))?;
    if found.is_empty() {
        context.printer.say("nothing is reserved");
    }
    Ok(Outcome::DONE)
}
