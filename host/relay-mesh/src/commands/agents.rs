//! `relay-mesh agents`: list the agents and their presence.

use mesh::agents::AgentSummary;
use mesh::ports::machine::Machine;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::agents::{AgentsShape, Detail};

/// Show who is here
#[derive(clap::Args, Debug)]
#[command(after_help = "busy: working; needs-input: waiting for its user; idle: waiting for work; away: silent for \
    `away-after`, and nothing else, such as a process or an open stream, shows that it is there; offline: ended.\n\n\
    Examples:\n  \
    relay-mesh agents\n  \
    relay-mesh agents --all -v\n  \
    relay-mesh agents reviewer\n  \
    relay-mesh agents --json | jq -r '.agents[] | select(.presence == \"idle\") | .name'\n\n\
    On a terminal the table is as wide as that, and leaves out who is offline; in a pipe, and as JSON, it has everybody.")]
pub(crate) struct Args {
    /// Only those whose name, role, task, project, harness, model or skills match, best first
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    /// Show at most this many matches
    #[arg(long, value_name = "NUMBER", default_value_t = 50, requires = "query")]
    limit: usize,
    /// On a terminal, also those that are offline
    #[arg(long, short)]
    all: bool,
    /// On a terminal, also why each is thought to be busy, idle or away
    #[arg(long, short)]
    verbose: bool,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let agents: Vec<AgentSummary> = match &self.query {
            Some(query) => open.mesh.find(query, self.limit).await?.into_iter().map(|found| found.seen).collect(),
            None => open.mesh.agents().await?,
        };
        if agents.is_empty() {
            context.printer.say(match self.query {
                Some(_) => "no agent matches; `relay-mesh agents` shows everyone",
                None => "no agents are here yet; `relay-mesh register NAME` makes an agent for this command line",
            });
        }
        let as_found = self.query.is_some();
        let detail = Detail { all: self.all || as_found, reasons: self.verbose, as_found };
        context.printer.show(&AgentsShape { agents: &agents, now: open.machine.now(), detail })?;
        Ok(Exit::Success)
    }
}
