//! `relay-mesh interrupt`: stop the turn of a driven agent.

use mesh::driven::RequestKind;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::driven::asking::{Asked, ask};
use crate::errors::CommandError;
use crate::exit::Exit;

/// Stop the turn of an agent that you started
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh interrupt fixer\n\nThe agent stays, and so does its mail.")]
pub(crate) struct Args {
    /// The agent
    #[arg(value_name = "NAME")]
    name: String,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let asked = Asked { name: &self.name, kind: RequestKind::Interrupt, done: "its turn was stopped" };
        ask(context, asked).await
    }
}
