//! `relay-mesh message`: what became of a message, recipient by recipient.

use mesh::machine::Machine;
use mesh::names::{AgentName, MessageId};

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;
use crate::shapes::receipts::LadderShape;

/// Show what became of a message
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh message 01JD8Z3K5V0000000000000000\n  \
    relay-mesh message 01JD8Z3K5V0000000000000000 --json | jq -r '.recipients[] | .to + \" \" + .rung'\n\n\
    The rungs, lowest first: stored, offered, accepted, shown, fetched, acknowledged.")]
pub(crate) struct Args {
    /// The message
    #[arg(value_name = "ID")]
    id: MessageId,
    /// Ask as this agent, which sees what it sent or was sent [$RELAY_AGENT]
    #[arg(long, visible_alias = "from", value_name = "AGENT")]
    agent: Option<AgentName>,
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = context.open()?;
    let caller = context.caller(&open, args.agent).await?;
    let status = open.mesh.message_status(&caller, args.id).await?;
    context.printer.show(&LadderShape::of(&status, open.machine.now()))?;
    Ok(Outcome::DONE)
}
