//! `relay-mesh message`: a message's delivery status, for each recipient.

use mesh::names::AgentName;
use mesh::ports::machine::Machine;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::receipts::MessageStatusShape;

/// Show what became of a message
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh message 01JD8Z3K5V0000000000000000\n  \
    relay-mesh message 01JD8Z3K5V0000000000000000 --json | jq -r '.recipients[] | .to + \" \" + .status'\n\n\
    The statuses, lowest first: stored, notified, accepted, shown, read, acknowledged.")]
pub(crate) struct Args {
    /// The message; the first characters of its id are enough if they are unique
    #[arg(value_name = "ID", value_parser = mesh::check_id)]
    id: String,
    /// Ask as this agent, which sees what it sent or was sent [$RELAY_AGENT]
    #[arg(long, visible_alias = "from", value_name = "AGENT")]
    agent: Option<AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let caller = context.principal(&open, self.agent).await?;
        let id = open.mesh.id_of(&caller, &self.id).await?;
        let status = open.mesh.message_status(&caller, id).await?;
        context.printer.show(&MessageStatusShape::of(&status, open.machine.now()))?;
        Ok(Exit::Success)
    }
}
