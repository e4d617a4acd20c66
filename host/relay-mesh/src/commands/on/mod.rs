//! `relay-mesh on`: what is carried out when something happens on the mesh.

mod add;
mod look;

use std::path::PathBuf;
use std::time::Duration;

use mesh::event_hooks::{HookMatch, HookTrigger};
use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::duration::span;
use crate::errors::CommandError;
use crate::exit::Exit;

/// Have something done whenever agents do something
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    relay-mesh on file-changed --match '*.rs' --run 'rustfmt --check \"$RELAY_FILE\"'\n  \
    relay-mesh on command-run --tell '#audit'\n  \
    relay-mesh on turn-completed --agent fixer --notify\n  \
    relay-mesh on needs-input --post https://example.org/hook\n  \
    relay-mesh on --import agent-relay.yaml\n  \
    relay-mesh on list\n\n\
    EVENT is turn-started, turn-completed, turn-failed, item-started, file-changed, command-run, needs-input, spawned, ended \
    or message. A command gets the event in variables and as JSON on standard input, never as a part of itself. Hooks are \
    kept in your own settings, and carried out while a server, an MCP server or a driven agent runs; what happened before \
    comes then. See docs/event-hooks.md."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    add: Add,
}

#[derive(clap::Args, Debug)]
struct Add {
    /// What it is for
    #[arg(value_name = "EVENT", required_unless_present = "import")]
    event: Option<HookTrigger>,
    /// Only what this agent does; messages to it
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Only what agents of this harness do
    #[arg(long, value_name = "HARNESS")]
    harness: Option<String>,
    /// Only files, commands or texts that fit this pattern
    #[arg(long = "match", value_name = "GLOB")]
    matches: Option<HookMatch>,
    /// Run this with `sh -c`, in the agent's folder
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// Send a message to this agent or channel
    #[arg(long, value_name = "AGENT|#CHANNEL")]
    tell: Option<String>,
    /// Post the event to this URL, signed
    #[arg(long, value_name = "URL")]
    post: Option<String>,
    /// Show a notice on the desktop
    #[arg(long)]
    notify: bool,
    /// How long the command may take, in seconds or as in `5m` [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = span, requires = "run")]
    timeout: Option<Duration>,
    /// Take over the hooks of an agent-relay.yaml
    #[arg(long, value_name = "FILE", conflicts_with_all = ["event", "agent", "harness", "matches", "run", "tell", "post", "notify"])]
    import: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Show your hooks
    #[command(after_help = "Example:\n  relay-mesh on list --json | jq '.hooks[].id'")]
    List,
    /// Remove a hook
    #[command(after_help = "Example:\n  relay-mesh on remove k3v9x2ma")]
    Remove {
        /// Its id
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Carry a hook out once, with an event that is made up
    #[command(after_help = "Example:\n  relay-mesh on test k3v9x2ma")]
    Test {
        /// Its id
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Show what became of the events that hooks were for
    #[command(after_help = "Examples:\n  relay-mesh on log\n  relay-mesh on log k3v9x2ma --json")]
    Log {
        /// Only of this hook
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.verb {
            None => match self.add.import.clone() {
                Some(file) => add::import(&file, context).await,
                None => add::add(self.add, context).await,
            },
            Some(Verb::List) => look::list(context),
            Some(Verb::Remove { id }) => add::remove(&id, context).await,
            Some(Verb::Test { id }) => look::test(&id, context).await,
            Some(Verb::Log { id }) => look::log(id.as_deref(), context).await,
        }
    }
}
