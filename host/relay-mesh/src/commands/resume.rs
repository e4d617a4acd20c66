//! `relay-mesh resume`: let paused agents go on.

use super::pause::Which;
use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::asks::PausedShape;

/// Let paused agents go on
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh resume alice\n  \
    relay-mesh resume --all\n\n\
    What has waited for them is delivered, in order.")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        permission::only_the_user(context, &open, "resume agents").await?;
        let names = self.which.names(&open).await?;
        let resumed = open.mesh.resume(names.as_deref()).await?;
        context.printer.show(&PausedShape::resumed(&resumed))?;
        if resumed.is_empty() {
            context.printer.say("none of them was paused");
        }
        Ok(Exit::Success)
    }
}
