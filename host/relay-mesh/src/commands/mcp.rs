//! `relay-mesh mcp`: the MCP server on standard input and output that a harness starts.

use std::sync::Arc;

use mcp::{ClientProcess, Profile, Service};
use tokio_util::sync::CancellationToken;

use crate::command::{CommandSpec, Threads};
use crate::config::Values;
use crate::context::Context;
use crate::driven::for_clients::ClientAgents;
use crate::errors::{CommandError, StreamError};
use crate::event_hooks::Carrier;
use crate::exit::Exit;
use crate::process_info;
use crate::runs::for_clients::ClientRuns;
use crate::server::ServerError;
use crate::signals::Stop;
use crate::tool_threads::ToolThreads;
use crate::tool_threads::flags::ThreadFlags;

/// Serve MCP over standard input and output: what a harness starts
#[derive(clap::Args, Debug)]
#[command(after_help = "A harness starts this by itself, once it is set up:\n  \
    relay-mesh install claude-code --project .\n\n\
    For any other MCP client:\n  \
    {\"mcpServers\": {\"relay-mesh\": {\"command\": \"relay-mesh\", \"args\": [\"mcp\"]}}}\n\n\
    With reservations, commands and runs as tools too:\n  \
    relay-mesh mcp --tools core,reservations,commands,runs,runners\n\n\
    With Codex as a tool:\n  \
    relay-mesh mcp --tools codex --identity reviewer")]
pub(crate) struct Args {
    #[arg(long, value_name = "GROUP,…", help = TOOLS)]
    pub(crate) tools: Option<Profile>,
    #[command(flatten)]
    threads: ThreadFlags,
}

/// Help text of `--tools` in `mcp`, `serve` and `up`.
pub(crate) const TOOLS: &str = "Groups of tools to show: core, reservations, commands, runs, runners, asks, spawn, channels, codex, subagents, atm [$RELAY_TOOLS, else core]";

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;
    const THREADS: Threads = Threads::Many;

    fn settings(&self, common: Values) -> Values {
        Values { tools: self.tools, threads: self.threads.values(), ..common }
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = Arc::new(context.open()?);
        let mut asked = Stop::listen().map_err(StreamError::Input)?;
        let process = ClientProcess {
            environment: context.environment.pairs(),
            workdir: Some(context.workdir.display().to_string()),
            pid: process_info::client().map(|process| process.pid),
        };
        let stop = CancellationToken::new();
        let hooks = Carrier::start(context, Arc::clone(&open));
        let runs = ClientRuns::new(context, Arc::clone(&open));
        let threads = ToolThreads::new(context, Arc::clone(&open), self.threads.resume());
        let service = Service {
            mesh: Arc::clone(&open.mesh),
            runs: Some(Arc::new(runs.clone())),
            spawns: Some(Arc::new(ClientAgents::new(context, Arc::clone(&open)))),
            threads: Some(Arc::new(threads.clone())),
        };
        let profile = self.threads.profile(context.settings.tools.value);
        let serving = mcp::serve_stdio(service, process, profile, stop.clone());
        tokio::pin!(serving);
        let outcome = tokio::select! {
            outcome = &mut serving => outcome,
            () = asked.asked() => {
                stop.cancel();
                serving.await
            }
        };
        runs.finish().await;
        threads.finish().await;
        hooks.finish().await;
        outcome.map_err(ServerError::from)?;
        Ok(Exit::Success)
    }
}
