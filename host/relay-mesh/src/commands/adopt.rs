//! `relay-mesh adopt`: an agent whose machine was lost goes on here.

use mesh::AdoptError;
use mesh::names::AgentName;
use store::{ServerTrouble, StoreError};

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::hints;
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

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = context.open()?;
    let adopted = open.mesh.adopt(&args.agent).await.map_err(failed)?;
    context.printer.show(&AdoptedShape::from(&adopted))?;
    let name = &adopted.agent;
    context.printer.say(&format!(
        "next: let its session register as {name}, or speak as it from here: `relay-mesh register {name}`"
    ));
    Ok(Outcome::DONE)
}

fn failed(error: AdoptError) -> CommandError {
    let what = error.to_string();
    let (hint, exit) = match &error {
        AdoptError::Unknown(_) => (Some("run `relay-mesh agents` to see who is here".to_owned()), Exit::NotFound),
        AdoptError::Here(name) => (Some(format!("speak as it: `relay-mesh register {name}`")), Exit::Refused),
        AdoptError::Heard { .. } => (
            Some(
                "end it there, or wait: it can be brought here once nothing was heard of it for `away-after`"
                    .to_owned(),
            ),
            Exit::Refused,
        ),
        AdoptError::Store(StoreError::Server { trouble: ServerTrouble::Denied, .. }) => {
            let hint = "only the operator may bring an agent to another machine: set RELAY_NATS_USER and \
                        RELAY_NATS_PASSWORD to the operator's for this one command";
            (Some(hint.to_owned()), Exit::Refused)
        }
        AdoptError::Store(store) => {
            let then = "; running it again goes on from where it broke off";
            (hints::of_store(store).map(|hint| format!("{hint}{then}")), Exit::Store)
        }
    };
    let source: Option<Box<dyn std::error::Error + Send + Sync>> = match error {
        AdoptError::Store(store) => Some(Box::new(store)),
        AdoptError::Unknown(_) | AdoptError::Here(_) | AdoptError::Heard { .. } => None,
    };
    CommandError::Told { what, hint, exit, source }
}
