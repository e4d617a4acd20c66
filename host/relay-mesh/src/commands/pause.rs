//! `relay-mesh pause`: let agents do nothing more until they are resumed.

use mesh::PauseError;
use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Explain};
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::asks::PausedShape;

/// Let agents do nothing more until you resume them
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh pause alice\n  \
    relay-mesh pause --all\n\n\
    Mail for a paused agent is kept and begins no turn; where the harness has hooks that can refuse a tool, they refuse \
    it with the reason. A turn that goes on is not cut off. A pause lasts until `relay-mesh resume`, also if everything \
    is started again. It is refused below a harness and below a run.")]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
}

/// Which agents.
#[derive(clap::Args, Debug)]
pub(super) struct Which {
    /// Their addresses
    #[arg(value_name = "AGENT", required_unless_present = "all")]
    agents: Vec<String>,
    /// All of this machine
    #[arg(long, conflicts_with = "agents")]
    all: bool,
}

impl Which {
    /// The agents' names; none for all. Each has to be there.
    pub(super) async fn names(&self, open: &Open) -> Result<Option<Vec<AgentName>>, CommandError> {
        if self.all {
            return Ok(None);
        }
        let mut names = Vec::new();
        for agent in &self.agents {
            names.push(open.mesh.resolve(agent, None).await?);
        }
        Ok(Some(names))
    }
}

impl Explain for PauseError {
    fn exit(&self) -> Exit {
        match self {
            PauseError::Elsewhere { .. } => Exit::Refused,
            PauseError::Store(error) => error.exit(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            PauseError::Elsewhere { .. } => Some("run it on that machine".to_owned()),
            PauseError::Store(error) => error.hint(),
        }
    }
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        permission::only_the_user(context, &open, "pause agents").await?;
        let names = self.which.names(&open).await?;
        let paused = open.mesh.pause(names.as_deref()).await?;
        context.printer.show(&PausedShape::paused(&paused))?;
        if paused.is_empty() {
            context.printer.say("no further agent is paused by this");
        } else {
            let (whom, names) = if let [one] = paused.as_slice() {
                ("it", one.to_string())
            } else if self.which.all {
                ("them", "--all".to_owned())
            } else {
                ("them", paused.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
            };
            context
                .printer
                .say(&format!("what comes for {whom} is kept; `relay-mesh resume {names}` lets {whom} go on"));
        }
        Ok(Exit::Success)
    }
}
