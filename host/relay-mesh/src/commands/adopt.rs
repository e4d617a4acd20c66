//! `relay-mesh adopt`: an agent whose session ended, or whose machine is lost, goes on here.

use mesh::names::AgentName;
use mesh::ports::machine::Machine;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::agents::AdoptedShape;

/// Let an agent of an ended session or a lost machine go on here
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh adopt alice\n  \
    RELAY_NATS_USER=relay-operator RELAY_NATS_PASSWORD=FILE relay-mesh adopt alice\n\n\
    If mail waits for an agent whose session ended, the next session that asks for its name gets another one. After \
    `adopt`, the next one to register as it is that agent and gets its mail, also if it already registered under \
    another name; until then the command line speaks as it: `relay-mesh read --agent alice`.\n\n\
    An agent belongs to the machine where it registered, even while that machine is off. `adopt` moves it to this one \
    in the same way. What was read there stays read. `adopt` is refused until the agent has been silent for `away-after` (see `relay-mesh config`), so end its \
    session there first if you can. If the old machine comes back, its session is asked to register anew, and \
    the messages that it had queued as that agent return to it.\n\n\
    Under the configuration that `relay-mesh nats-auth` prints, only the operator may do this, as in the second \
    example. It takes some seconds, until every machine knows.")]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: AgentName,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        // Its mail and its voice go to whichever session registers as it next.
        permission::only_the_user(context, &open, "adopt an agent").await?;
        let adopted = open.mesh.adopt(&self.agent).await?;
        context.printer.show(&AdoptedShape::of(&adopted, open.machine.name()))?;
        let name = &adopted.agent;
        context.printer.say(&format!(
            "next: let a session register as {name}, or read its mail here: `relay-mesh read --agent {name} --mark-read`"
        ));
        Ok(Exit::Success)
    }
}
