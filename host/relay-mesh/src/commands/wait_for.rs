//! `relay-mesh wait-for`: wait until agents are here.

use std::time::Duration;

use mesh::machine::Machine;
use mesh::names::AgentName;

use crate::cli::Outcome;
use crate::commands::waiting::{Patience, Waited, patience};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::shapes::agents::AgentsShape;

/// Wait until agents are here
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh wait-for alice bob --timeout 5m && relay-mesh send alice,bob 'we can begin'\n\n\
    An agent is here while it is live or idle, not while it is away or gone.\n\
    It ends with 7 where they did not come in time.")]
pub(crate) struct Args {
    /// Whom: their exact names, whether they have joined yet or not
    #[arg(value_name = "AGENT", required = true)]
    agents: Vec<AgentName>,
    /// For how long [default: for as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = patience)]
    timeout: Option<Duration>,
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = context.open()?;
    match Patience::from_now(args.timeout).wait(open.mesh.here(&args.agents)).await? {
        Waited::For(here) => {
            let agents = here?.iter().map(Into::into).collect();
            context.printer.show(&AgentsShape { agents, now: open.machine.now() })?;
            Ok(Outcome::DONE)
        }
        Waited::InVain => {
            context.printer.say("they are not all here; `relay-mesh agents` shows who is");
            Ok(Outcome::ending(Exit::TimedOut))
        }
        Waited::UntilStopped => Ok(Outcome::ending(Exit::Failure)),
    }
}
