//! `relay-mesh cmd`: ask an agent to run a command, take what was asked, and say how it ended.

mod allow;
mod order;
mod serve;

use std::time::Duration;

use mesh::command::CommandName;
use mesh::names::{AgentName, MessageId};

use crate::command::CommandSpec;
use crate::commands::waiting::timeout;
use crate::context::Context;
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
    A command is pending until somebody takes it in TARGET's name, then running, then done with its result. \
    One that nobody takes in time expires. With `--wait` it ends with 0 where the command succeeded, with 1 \
    where it failed, and with 7 where it expired or did not end in time.\n\n\
    Where the harness of TARGET can run commands of its own (OpenCode, Codex), it runs those of a SENDER whom the \
    person of TARGET has allowed, in an idle session, once. Everybody else's wait to be taken."
)]
pub(crate) struct Args {
    /// Take, end or list commands instead.
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Who is to run it
    #[arg(value_name = "TARGET", required = true)]
    target: Option<String>,
    /// What: a name with its slash
    #[arg(value_name = "/COMMAND", required = true)]
    command: Option<CommandName>,
    /// With what; write `--` before one that begins with a dash
    #[arg(value_name = "ARG")]
    arguments: Vec<String>,
    /// Wait until it ended, and print its result
    #[arg(long)]
    wait: bool,
    /// With --wait: for how long [default: for as long as it takes]
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Also send TARGET a message about it, and try every way to bring that one now
    #[arg(long)]
    wake: bool,
    /// For how long it may wait to be taken
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = timeout)]
    ttl: Duration,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session, else `shell`]
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentName>,
}

/// What else there is to do with commands.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Take the oldest command that waits for TARGET: nobody else gets it then
    Take(TakeArgs),
    /// Say how a command that was taken ended
    Done(DoneArgs),
    /// Show commands
    List(ListArgs),
    /// Let SENDER's commands run in the sessions of your agents
    Allow(ConsentArgs),
    /// Take that back
    Disallow(ConsentArgs),
    /// Show whose commands run, and where that is kept
    #[command(after_help = "Examples:\n  relay-mesh cmd allowed\n  relay-mesh cmd allowed --json")]
    Allowed,
}

/// Whose commands run where
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh cmd allow alice /review --to bob\n  \
    relay-mesh cmd disallow alice\n\n\
    It counts for this machine and this mesh, and is kept in your own settings: neither a project nor a message \
    can change it. Without /COMMAND it is every command, without --to every agent here. What SENDER asked for and \
    what waits for it is run as soon as it is allowed.")]
struct ConsentArgs {
    /// Whose commands: an agent's name
    #[arg(value_name = "SENDER")]
    sender: String,
    /// Which one [default: every command]
    #[arg(value_name = "/COMMAND")]
    command: Option<CommandName>,
    /// In whose session [default: of every agent here]
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentName>,
}

/// Take the oldest command that waits for TARGET: nobody else gets it then
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh cmd take ci --wait --json\n\n\
    It ends with 3 where no command waits, and with 7 where none came in time.")]
struct TakeArgs {
    /// For whom: an agent that this command line speaks for
    #[arg(value_name = "TARGET")]
    target: AgentName,
    /// Wait until there is one
    #[arg(long)]
    wait: bool,
    /// With --wait: for how long [default: for as long as it takes]
    #[arg(long, value_name = "TIME", requires = "wait", value_parser = timeout)]
    timeout: Option<Duration>,
}

/// Say how a command that was taken ended
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh cmd done 01JD8Z3K5V0000000000000000 'all green' --from ci\n  \
    make test 2>&1 | tail -50 | relay-mesh cmd done 01JD8Z3K5V0000000000000000 --stdin --failed --from ci")]
struct DoneArgs {
    /// Which
    #[arg(value_name = "ID")]
    id: MessageId,
    /// What came of it
    #[arg(value_name = "RESULT")]
    result: Option<String>,
    /// Take the result from standard input
    #[arg(long, conflicts_with = "result")]
    stdin: bool,
    /// It did not do what it was asked
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
