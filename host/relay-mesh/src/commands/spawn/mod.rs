//! `relay-mesh spawn`: start an agent and keep it, list those that were started, and show what one did.

mod acp;
mod approve;
mod look;
mod start;

pub(crate) use start::ANY_PROGRAM;

use std::path::PathBuf;
use std::time::Duration;

use mesh::allowances::Starts;
use mesh::names::AgentName;
use mesh::ports::runner::Reach;

use crate::command::CommandSpec;
use crate::commands::allowing::{self, AllowArgs, DisallowArgs};
use crate::context::Context;
use crate::driven::host;
use crate::duration::span;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::signals::Stop;
use crate::unix;
use crate::whole_numbers::at_least_one;

/// Start an agent that you and others talk with
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    relay-mesh spawn codex 'look for flaky tests, and tell me which'\n  \
    relay-mesh spawn claude-code --name fixer --reach edit --worktree 'mend what alice reports'\n  \
    relay-mesh spawn gemini-cli --name reader --for 2h\n  \
    relay-mesh spawn helper --acp 'my-agent --acp' --reach unguarded\n  \
    relay-mesh spawn list\n\n\
    It goes on after this command: mail to it begins turns, `relay-mesh steer NAME TEXT` tells it something, \
    `relay-mesh spawn show NAME` shows what it does, `relay-mesh dismiss NAME` ends it. The final words of a turn that one \
    agent's mail began go back to that agent."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    start: Start,
}

#[derive(clap::Args, Debug)]
struct Start {
    /// The harness: claude-code, codex, opencode, gemini-cli, or one of an adapter of yours
    #[arg(value_name = "HARNESS")]
    harness: Option<String>,
    /// Start this program instead, which speaks the Agent Client Protocol; the first word is then the agent's name
    #[arg(long, value_name = "COMMAND", conflicts_with = "name")]
    acp: Option<String>,
    /// Its first prompt; `-` takes it from standard input [default: it waits for mail]
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// Its name in the mesh [default: as in codex-1]
    #[arg(long, value_name = "NAME")]
    name: Option<AgentName>,
    /// The same as PROMPT
    #[arg(long, value_name = "PROMPT", conflicts_with = "prompt")]
    task: Option<String>,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Work in a new git worktree
    #[arg(long)]
    worktree: bool,
    /// The model, in the harness's own spelling
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What it is there for, as a text for its whole session
    #[arg(long, value_name = "TEXT")]
    role: Option<String>,
    /// What it may change: nothing (look), files (edit), what the harness's rules allow (work), anything (unguarded)
    #[arg(long, value_name = "REACH", default_value = "look")]
    reach: Reach,
    /// Refuse what it asks for beyond that, instead of asking you
    #[arg(long)]
    never_ask: bool,
    /// The most turns; then it is ended
    #[arg(long, value_name = "N", value_parser = at_least_one::<u32>)]
    budget_turns: Option<u32>,
    /// The most tokens that its model reads and writes, where its harness tells them; then it is ended
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>)]
    budget_tokens: Option<u64>,
    /// How long it lives, in seconds or as in `2h`
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    lives: Option<Duration>,
    /// Wait for what its first turn comes to, and print that
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Show the agents that were started
    #[command(after_help = "Example:\n  relay-mesh spawn list --all")]
    List {
        /// Also those that have ended
        #[arg(long)]
        all: bool,
    },
    /// Show what an agent was told, did and said
    #[command(after_help = "Examples:\n  relay-mesh spawn show fixer\n  relay-mesh spawn show fixer --follow")]
    Show {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
        /// Go on until it has ended
        #[arg(long)]
        follow: bool,
    },
    /// Let an agent start agents of a harness
    #[command(after_help = "Example:\n  relay-mesh spawn allow alice codex --reach edit --budget 5/day\n\n\
        It applies to this machine and this mesh, and is stored in your own settings. An agent that is not allowed asks \
        you each time: `relay-mesh asks` shows it. An agent cannot give it: it is refused below a harness, below a run \
        and below a driven agent.")]
    Allow(AllowArgs),
    /// Take such a permission back
    #[command(after_help = "Example:\n  relay-mesh spawn disallow alice")]
    Disallow(DisallowArgs),
    /// Show which agents may start agents, and the file that says so
    #[command(after_help = "Example:\n  relay-mesh spawn allowed")]
    Allowed,
    /// Programs of your own that may be started as agents
    #[command(subcommand, after_help = "Example:\n  relay-mesh spawn acp allow 'opencode acp'")]
    Acp(acp::Verb),
    /// Agree to an agent that another one wants
    #[command(after_help = "Examples:\n  relay-mesh spawn approve\n  relay-mesh spawn approve 01M7ZYH2C87X\n\n\
        The same as `relay-mesh asks answer ID allow`. Without an ID it agrees to the only one that waits.")]
    Approve {
        /// The question's id, or its beginning
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Drive the agents of the data folder
    #[command(hide = true)]
    Work,
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self.verb {
            None => start::run(self.start, context).await,
            Some(Verb::List { all }) => look::list(all, context).await,
            Some(Verb::Show { name, follow }) => look::show(&name, follow, context).await,
            Some(Verb::Allow(wanted)) => allowing::allow(Starts::Agents, wanted, context).await,
            Some(Verb::Disallow(wanted)) => allowing::disallow(Starts::Agents, &wanted, context),
            Some(Verb::Allowed) => allowing::allowed(Starts::Agents, context),
            Some(Verb::Acp(verb)) => acp::run(verb, context).await,
            Some(Verb::Approve { id }) => approve::approve(id.as_deref(), context).await,
            Some(Verb::Work) => {
                unix::process::begin_session();
                let mut stop = Stop::listen().map_err(StreamError::Input)?;
                host::run(context, &mut stop).await?;
                Ok(Exit::Success)
            }
        }
    }
}
