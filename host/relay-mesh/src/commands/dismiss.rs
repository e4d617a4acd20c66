//! `relay-mesh dismiss`: end a driven agent.

use mesh::driven::RequestKind;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::driven::asking::{Asked, ask};
use crate::errors::CommandError;
use crate::exit::Exit;

/// End an agent that you started
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  relay-mesh dismiss fixer\n  relay-mesh dismiss fixer --summary\n\n\
    A turn that runs is stopped. Its worktree goes if it holds nothing; mail that it has not read stays in its inbox.")]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "NAME")]
    name: String,
    /// Have it sum up first what it has done, and print that
    #[arg(long)]
    summary: bool,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let kind = RequestKind::Dismiss { summary: self.summary };
        ask(context, Asked { name: &self.name, kind, done: "it has ended" }).await
    }
}
