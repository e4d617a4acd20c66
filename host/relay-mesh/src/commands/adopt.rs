//! `relay-mesh adopt`: move an agent of a lost machine to this one.

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
    An agent belongs to the machine where it registered, even while that machine is off. `adopt` moves it to this one: \
    the next session that registers its name here is that agent and gets its waiting mail. What was read there stays \
    read. `adopt` is refused until the agent has been silent for `away-after` (see `relay-mesh config`), so end its \
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
        let adopted = open.mesh.adopt(&self.agent).await?;
        context.printer.show(&AdoptedShape::from(&adopted))?;
        let name = &adopted.agent;
        context.printer.say(&format!(
            "next: let its session register as {name}, or speak as it from here: `relay-mesh register {name}`"
        ));
        Ok(Exit::Success)
    }
}
