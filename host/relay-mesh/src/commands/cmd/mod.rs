//! `relay-mesh cmd`: ask an agent to run a command, take such a command, and report how it ended.

mod allow;
mod order;
mod serve;

use std::time::Duration;

use mesh::commands::CommandName;
use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::duration::timeout;
use crate::errors::CommandError;
use crate::exit::Exit;

/// Ask an agent to run a command
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "relay-mesh cmd [OPTIONS] TARGET /COMMAND [ARG]...\n       \
        relay-mesh cmd take TARGET\n       \
        relay-mesh cmd done ID [RESULT]\n       \
        relay-mesh cmd list\n       \
        relay-mesh cmd allow SENDER [/COMMAND] [--to AGENT]\n       \
        relay-mesh cmd disallow SENDER [/COMMAND] [--to AGENT]\n       \
        relay-mesh cmd allowed",
    after_help = "Examples:\n  \
    relay-mesh cmd bob /review src/parser --wait --timeout 10m\n  \
    relay-mesh cmd bob /deploy staging --wake --from alice\n  \
    relay-mesh cmd take bob --json | jq -r .command\n  \
    relay-mesh cmd done 01JD8Z3K5V0000000000000000 'all green' --from bob\n  \
    relay-mesh cmd allow alice /review --to bob\n\n\
    A command is pending until TARGET takes it, then running, then done or failed with its result. It expires if \
    it is not taken in time. `--wait` exits with 0 if the command succeeded, with 1 if it failed, and with 7 if it \
    expired or did not end in time.\n\n\
    If the harness of TARGET can run commands of its own (OpenCode, Codex), it runs those of a SENDER whom TARGET's \
    user has allowed: once, in an idle session. Commands of other senders wait to be taken."
)]
pub(crate) struct Args {
    /// Take, end or list commands instead.
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The agent that is to run the command
    #[arg(value_name = "TARGET", required = true)]
    target: Option<String>,
    /// The command's name, with its slash
    #[arg(value_name = "/COMMAND", required = true)]
    command: Option<CommandName>,
    /// Its arguments; write `--` before one that begins with a dash
    #[arg(value_name = "ARG")]
    arguments: Vec<String>,
    /// Wait until the command ends, and print its result
    #[arg(long)]
    wait: bool,
    /// With --wait: for how long [default: for as long as it takes]
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Also send TARGET a message about it, and try every route to deliver that message now
    #[arg(long)]
    wake: bool,
    /// How long the command may wait to be taken
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = timeout)]
    ttl: Duration,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session, else `shell`]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<AgentName>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Take the oldest command that waits for TARGET, so that no one else gets it
    Take(TakeArgs),
    /// Report how a command that was taken ended
    Done(DoneArgs),
    /// Show commands
    List(ListArgs),
    /// Let SENDER's commands run in the sessions of your agents
    Allow(ConsentArgs),
    /// Take such a permission back
    Disallow(ConsentArgs),
    /// Show whose commands may run, and the file that says so
    #[command(after_help = "Examples:\n  relay-mesh cmd allowed\n  relay-mesh cmd allowed --json")]
    Allowed,
}

/// Which sender's commands may run, and in whose sessions
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh cmd allow alice /review --to bob\n  \
    relay-mesh cmd disallow alice\n\n\
    It applies to this machine and this mesh, and is stored in your own settings: neither a project nor a message \
    can change it. Without /COMMAND it covers every command, without --to every agent here. Commands of SENDER that \
    wait already run as soon as you allow them.")]
struct ConsentArgs {
    /// Whose commands: an agent's name
    #[arg(value_name = "SENDER")]
    sender: String,
    /// Which one [default: every command]
    #[arg(value_name = "/COMMAND")]
    command: Option<CommandName>,
    /// Only in this agent's sessions [default: every agent here]
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentName>,
}

/// Take the oldest command that waits for TARGET, so that no one else gets it
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh cmd take ci --wait --json\n\n\
    Exits with 3 if no command waits, and with 7 if none came in time.")]
struct TakeArgs {
    /// An agent that this command line speaks for
    #[arg(value_name = "TARGET")]
    target: AgentName,
    /// Wait until there is one
    #[arg(long)]
    wait: bool,
    /// With --wait: for how long [default: for as long as it takes]
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = timeout)]
    timeout: Option<Duration>,
}

/// Report how a command that was taken ended
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh cmd done 01JD8Z3K5V0000000000000000 'all green' --from ci\n  \
    make test 2>&1 | tail -50 | relay-mesh cmd done 01JD8Z3K5V0000000000000000 --stdin --failed --from ci")]
struct DoneArgs {
    /// The command's id; its first characters are enough if they are unique
    #[arg(value_name = "ID", value_parser = mesh::check_id)]
    id: String,
    /// Its result
    #[arg(value_name = "RESULT")]
    result: Option<String>,
    /// Take the result from standard input
    #[arg(long, conflicts_with = "result")]
    stdin: bool,
    /// The command failed
    #[arg(long)]
    failed: bool,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<AgentName>,
}

/// Show commands
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh cmd list --to bob")]
struct ListArgs {
    /// Only those for this agent
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentName>,
    /// Also those that have ended or expired
    #[arg(long)]
    all: bool,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        match self {
            Args { verb: Some(Verb::Take(take)), .. } => serve::take(take, context).await,
            Args { verb: Some(Verb::Done(done)), .. } => serve::done(done, context).await,
            Args { verb: Some(Verb::List(list)), .. } => serve::list(list, context).await,
            Args { verb: Some(Verb::Allow(consent)), .. } => allow::allow(consent, context).await,
            Args { verb: Some(Verb::Disallow(consent)), .. } => allow::disallow(consent, context).await,
            Args { verb: Some(Verb::Allowed), .. } => allow::allowed(context),
            Args { verb: None, .. } => order::run(self, context).await,
        }
    }
}
