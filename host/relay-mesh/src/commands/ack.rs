//! `relay-mesh ack`: tell the senders that their messages were taken in.

use mesh::names::{AgentName, MessageId};

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;
use crate::shapes::mail::AckShape;

/// Acknowledge messages
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh ack 01JD8Z3K5V0000000000000000\n  \
    relay-mesh read --unread --json | jq -r '.messages[].id' | xargs relay-mesh ack --agent bob")]
pub(crate) struct Args {
    /// The messages
    #[arg(value_name = "ID", required = true)]
    ids: Vec<MessageId>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session]
    #[arg(long, visible_alias = "from", value_name = "AGENT")]
    agent: Option<AgentName>,
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = context.open()?;
    let caller = context.caller(&open, args.agent).await?;
    let agent = caller.agent().ok_or(CommandError::NoAgent)?;
    let acknowledged = open.mesh.acknowledge(agent, &args.ids).await?;
    context.printer.show(&AckShape::of(agent.to_string(), &acknowledged))?;
    Ok(Outcome::DONE)
}
