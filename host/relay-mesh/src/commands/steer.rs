//! `relay-mesh steer`: tell a driven agent something, in the turn that runs.

use mesh::driven::{LONGEST_REQUEST, RequestKind};

use crate::command::CommandSpec;
use crate::commands::input;
use crate::context::Context;
use crate::driven::asking::{Asked, ask};
use crate::errors::CommandError;
use crate::exit::Exit;

/// Tell an agent that you started something
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh steer fixer 'leave the tests alone'\n  \
    relay-mesh steer fixer --next 'then look at the docs'\n\n\
    The turn that runs takes it, where the harness can; else it begins the next one. It counts as your own word.")]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "NAME")]
    name: String,
    /// What to say; `-` takes it from standard input
    #[arg(value_name = "TEXT")]
    text: String,
    /// Begin a turn of its own with it, after the one that runs
    #[arg(long)]
    next: bool,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let text = if self.text == "-" { input::text(LONGEST_REQUEST)? } else { self.text };
        let kind = if self.next { RequestKind::Prompt { text } } else { RequestKind::Steer { text } };
        ask(context, Asked { name: &self.name, kind, done: "it has it" }).await
    }
}
