//! `relay-mesh wait-for`: wait until agents are here.

use std::time::Duration;

use mesh::agents::{AgentSummary, Presence};
use mesh::names::AgentName;
use mesh::ports::machine::Machine;

use crate::command::CommandSpec;
use crate::commands::waiting::{Patience, Waited};
use crate::context::Context;
use crate::duration::timeout;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::agents::{AgentsShape, Detail};

/// Wait until agents are here
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh wait-for alice bob --timeout 5m && relay-mesh send alice,bob 'we can begin'\n  \
    relay-mesh wait-for ci --until-stale --stale 2m && relay-mesh send boss 'ci has fallen silent'\n  \
    relay-mesh wait-for bob --until-stale --by-mail --from alice\n\n\
    An agent is here while it is busy, needs input or is idle, not while it is away or offline. \
    Exits with 7 if they did not come in time; with --until-stale, if all stayed.")]
pub(crate) struct Args {
    /// Their exact names; they need not have joined yet
    #[arg(value_name = "AGENT", required = true)]
    agents: Vec<AgentName>,
    /// How long to wait [default: for as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Wait instead until one of them is no longer here, and show who
    #[arg(long)]
    until_stale: bool,
    /// With --until-stale: count an agent as away after this much silence, unless something else shows that it is
    /// alive [default: `away-after` of the settings]
    #[arg(long, value_name = "TIME", requires = "until_stale", value_parser = timeout)]
    stale: Option<Duration>,
    /// With --until-stale: do not wait, but get one message, from a server or from a process that follows events
    #[arg(long, requires = "until_stale", conflicts_with_all = ["timeout", "stale"])]
    by_mail: bool,
    /// With --by-mail: speak for this agent [$RELAY_AGENT, else this shell's session]
    #[arg(long, value_name = "AGENT", requires = "by_mail")]
    from: Option<AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = match self.stale {
            Some(silence) => context.with_away_after(u64::try_from(silence.as_millis()).unwrap_or(u64::MAX)).open()?,
            None => context.open()?,
        };
        let timeout = Patience::from_now(self.timeout);
        let waited = if self.until_stale {
            // An agent that never joined cannot leave: an unknown name is an error.
            for agent in &self.agents {
                open.mesh.resolve(agent.as_str(), None).await?;
            }
            if self.by_mail {
                let caller = context.principal(&open, self.from).await?;
                open.mesh.notify_when_offline(&caller, &self.agents).await?;
                context.printer.say("you will have a message; a server that runs sends it (`relay-mesh up`)");
                return Ok(Exit::Success);
            }
            timeout.wait(open.mesh.stale(&self.agents)).await?
        } else {
            timeout.wait(open.mesh.here(&self.agents)).await?
        };
        match waited {
            Waited::For(seen) => {
                let detail = Detail { all: true, reasons: true, as_found: true };
                context.printer.show(&AgentsShape { agents: &seen?, now: open.machine.now(), detail })?;
                Ok(Exit::Success)
            }
            Waited::InVain => {
                let in_vain = match self.until_stale {
                    true => "all of them are still here".to_owned(),
                    false => missing(&self.agents, &open.mesh.agents().await?),
                };
                context.printer.say(&in_vain);
                Ok(Exit::TimedOut)
            }
            Waited::UntilStopped => Ok(Exit::Failure),
        }
    }
}

/// Which of the wanted agents are not here, and why.
fn missing(wanted: &[AgentName], seen: &[AgentSummary]) -> String {
    let why = |name: &AgentName| match seen.iter().find(|seen| seen.agent.name == *name) {
        None => Some(format!("{name} has not joined")),
        Some(seen) => match seen.presence {
            Presence::Busy | Presence::NeedsInput | Presence::Idle => None,
            Presence::Away | Presence::Offline => {
                Some(format!("{name} is {}: {}", seen.presence.as_str(), seen.evidence))
            }
        },
    };
    let missing: Vec<String> = wanted.iter().filter_map(why).collect();
    // They may all have come after the timeout and before this check.
    if missing.is_empty() { "they came too late".to_owned() } else { missing.join("; ") }
}
