//! `relay-mesh heartbeat`: report that an agent is alive, and what it is doing.

use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::agents::HeartbeatShape;

/// Say that you live, and what you are doing
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh heartbeat --from ci\n  \
    relay-mesh heartbeat --from ci --task 'runs the tests of #42'\n  \
    relay-mesh heartbeat --from ci --task ''\n\n\
    A harness's own hooks do this for its sessions; a script does it itself.")]
pub(crate) struct Args {
    /// What you are doing; an empty text clears it, without this flag it stays
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<AgentName>,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let caller = context.principal(&open, self.from).await?;
        let seen = open.mesh.heartbeat(&caller, self.task.as_deref()).await?;
        context.printer.show(&HeartbeatShape::from(&seen))?;
        Ok(Exit::Success)
    }
}
