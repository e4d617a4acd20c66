//! `relay-mesh adopt`: an agent whose machine was lost goes on here.

use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::agents::AdoptedShape;

/// Bring an agent of a lost machine here, with its mail
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh adopt alice\n  \
    RELAY_NATS_USER=relay-operator RELAY_NATS_PASSWORD=FILE relay-mesh adopt alice\n\n\
    An agent lives on the machine where it registered, and stays there when that machine is off. This brings it to this \
    one: who registers under its name here next is it, and gets what waits for it. What was fetched there stays \
    fetched. It is refused while the agent is heard of (`away-after` in the settings says for how long that is), so end \
    its session there first if you can. A machine that comes back finds that the agent has gone on: its session is \
    asked to register anew, and what it had queued as that agent comes back to it.\n\n\
    Under the configuration that `relay-mesh nats-auth` prints only the operator may do this, as in the second example. \
    It takes some seconds, in which every machine hears of it.")]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: AgentName,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let adopted = open.mesh.adopt(&self.agent).await?;
        context.printer.show(&AdoptedShape::from(&adopted))?;
        let name = &adopted.agent;
        context.printer.say(&format!(
            "next: let its session register as {name}, or speak as it from here: `relay-mesh register {name}`"
        ));
        Ok(Exit::Success)
    }
}
