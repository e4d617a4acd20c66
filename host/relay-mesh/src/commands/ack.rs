//! `relay-mesh ack`: acknowledge messages to their senders.

use mesh::names::{AgentName, MessageId};

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::{CommandError, NoAgent};
use crate::exit::Exit;
use crate::shapes::mail::AckShape;

/// Acknowledge messages
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh ack 01JD8Z3K5V0000000000000000\n  \
    relay-mesh read --unread --json | jq -r '.messages[].id' | xargs relay-mesh ack --agent bob")]
pub(crate) struct Args {
    /// The messages; the first characters of an id are enough if they are unique
    #[arg(value_name = "ID", value_parser = mesh::check_id, required = true)]
    ids: Vec<String>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session]
    #[arg(long, visible_alias = "from", value_name = "AGENT")]
    agent: Option<AgentName>,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let caller = context.principal(&open, self.agent).await?;
        let agent = caller.agent().ok_or(NoAgent)?;
        let mut ids: Vec<MessageId> = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            ids.push(open.mesh.id_of(&caller, id).await?);
        }
        let acknowledged = open.mesh.acknowledge(agent, &ids).await?;
        context.printer.show(&AckShape::of(agent.to_string(), &acknowledged))?;
        Ok(Exit::Success)
    }
}
