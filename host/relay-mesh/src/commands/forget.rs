//! `relay-mesh forget`: remove an agent that is gone, without waiting for the cleanup.

use mesh::names::AgentName;
use serde::Serialize;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::Show;
use crate::runs::permission::only_the_user;

/// Remove an agent that is gone and has got its mail
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh forget worker-3\n  \
    relay-mesh agents --all\n\n\
    Only you may, and only an agent of this machine that is away or offline, for which no mail and no command waits, and \
    which has reserved nothing. Its mail stays until it is old. Without this an agent goes by itself once it was silent for \
    a week.")]
pub(crate) struct Args {
    /// Which agent
    #[arg(value_name = "AGENT")]
    agent: AgentName,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        only_the_user(context, &open, "forget an agent").await?;
        open.mesh.forget(&self.agent).await?;
        context.printer.show(&ForgottenShape { agent: self.agent.to_string() })?;
        Ok(Exit::Success)
    }
}

/// `relay-mesh forget`.
#[derive(Debug, Serialize)]
struct ForgottenShape {
    /// The agent that is no more.
    agent: String,
}

impl Show for ForgottenShape {
    fn text(&self) -> String {
        format!("{} is forgotten; its mail stays until it is old", self.agent)
    }
}
