//! `relay-mesh codex`: the threads of the tools `codex` and `ask_agent`, and what they summed up.

use std::time::Duration;

use mesh::ports::machine::{Instant, Machine as _};
use mesh::tool_threads::ThreadRow;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::duration::span;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::threads::{PrunedShape, SummaryShape, ThreadsShape};

/// How long a thread was not used that `--prune` removes, if nothing else is said.
const WEEK: &str = "7d";

/// Show the threads of the tool `codex`, and what they summed up
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh codex threads --repo shop\n  \
    relay-mesh codex threads --prune 30d\n  \
    relay-mesh codex summary 01a2104c-0000-7000-8000-000000000001\n\n\
    A thread begins with a call of the tool `codex` or `ask_agent` and goes on with `codex-reply`. `relay-mesh install \
    HARNESS --tools core,codex` gives a harness these tools.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Show the threads, the last active first
    #[command(
        after_help = "Example:\n  relay-mesh codex threads --identity reviewer --json | jq '.threads[].thread_id'"
    )]
    Threads {
        /// Only those of this repository, by name or folder
        #[arg(long, value_name = "REPO")]
        repo: Option<String>,
        /// Only those of this identity
        #[arg(long, value_name = "NAME")]
        identity: Option<String>,
        /// Forget those that nobody has used for so long; what their harness keeps stays
        #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = WEEK, value_parser = span)]
        prune: Option<Duration>,
    },
    /// Show what a thread summed up at its end
    #[command(after_help = "Example:\n  relay-mesh codex summary 01a2104c-0000-7000-8000-000000000001")]
    Summary {
        /// The thread
        #[arg(value_name = "THREAD")]
        thread: String,
    },
}

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        match self.verb {
            Verb::Threads { repo, identity, prune } => {
                let wanted = |row: &ThreadRow| {
                    repo.as_deref().is_none_or(|repo| row.is_in(repo))
                        && identity.as_ref().is_none_or(|identity| row.identity == *identity)
                };
                if let Some(unused) = prune {
                    permission::only_the_user(context, &open, "forget threads").await?;
                    let now = open.machine.now();
                    let unused = u64::try_from(unused.as_millis()).unwrap_or(u64::MAX);
                    let before = Instant(now.0.saturating_sub(unused));
                    let removed = open.mesh.prune_threads(before, wanted).await?;
                    context.printer.show(&PrunedShape { removed })?;
                    return Ok(Exit::Success);
                }
                let rows: Vec<ThreadRow> = open.mesh.threads().await?.into_iter().filter(wanted).collect();
                context.printer.show(&ThreadsShape::of(&rows))?;
                if rows.is_empty() {
                    context.printer.say("no thread was begun: `relay-mesh install claude-code --tools core,codex` gives Claude Code the tools that begin one");
                }
            }
            Verb::Summary { thread } => {
                let row = open.mesh.thread(&thread).await?;
                let summary = match &row {
                    Some(row) => open.mesh.thread_summary(&row.thread).await?,
                    None => None,
                };
                let (Some(row), Some(summary)) = (row, summary) else {
                    return Err(Failure {
                        what: format!("no summary is kept of a thread `{thread}`"),
                        hint: Some(
                            "one is made when a server ends in good order; `relay-mesh codex threads`".to_owned(),
                        ),
                        exit: Exit::NotFound,
                        source: None,
                    }
                    .into());
                };
                context.printer.show(&SummaryShape { thread_id: row.thread, summary })?;
            }
        }
        Ok(Exit::Success)
    }
}
