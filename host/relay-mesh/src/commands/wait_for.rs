//! `relay-mesh wait-for`: wait until agents are here.

use std::time::Duration;

use mesh::agent::{AgentSummary, Presence};
use mesh::machine::Machine;
use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::commands::waiting::{Patience, Waited, timeout};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::agents::AgentsShape;

/// Wait until agents are here
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh wait-for alice bob --timeout 5m && relay-mesh send alice,bob 'we can begin'\n  \
    relay-mesh wait-for ci --until-stale --stale 2m && relay-mesh send boss 'ci has fallen silent'\n  \
    relay-mesh wait-for bob --until-stale --by-mail --from alice\n\n\
    An agent is here while it is busy or idle, not while it is away or offline. \
    It ends with 7 where they did not come in time, with --until-stale where all stayed.")]
pub(crate) struct Args {
    /// Whom: their exact names, whether they have joined yet or not
    #[arg(value_name = "AGENT", required = true)]
    agents: Vec<AgentName>,
    /// For how long [default: for as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Wait instead until one of them is no longer here, and show who
    #[arg(long)]
    until_stale: bool,
    /// With --until-stale: after how long a silence one counts as away, where nothing else shows that it lives
    /// [default: `away-after` of the settings]
    #[arg(long, value_name = "TIME", requires = "until_stale", value_parser = timeout)]
    stale: Option<Duration>,
    /// With --until-stale: do not wait, but have a message sent to you once, by a server or by whoever follows
    /// events
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
            // Of somebody who never joined it cannot be seen that they left.
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
                context.printer.show(&AgentsShape { agents: &seen?, now: open.machine.now() })?;
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

/// Who of those that were waited for is not here, and why.
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
    // Whoever came at the last moment came too late for this.
    if missing.is_empty() { "they came too late".to_owned() } else { missing.join("; ") }
}
