//! `relay-mesh release`: give back what was reserved.

use std::path::PathBuf;

use mesh::Release;
use mesh::names::AgentName;

use crate::command::CommandSpec;
use crate::commands::reserve::folder;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::patterns::meant;
use crate::shapes::reservations::ReleasedShape;

/// Give back what you reserved
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh release src/parser --from alice\n  \
    relay-mesh release --all --from alice")]
pub(crate) struct Args {
    /// The paths and patterns, as you reserved them
    #[arg(value_name = "PATTERN", required_unless_present = "all", conflicts_with = "all")]
    patterns: Vec<String>,
    /// Everything that you hold in this repository
    #[arg(long)]
    all: bool,
    /// A folder of another repository, at which the patterns then start
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let (repository, patterns) = meant(&open.mesh, &folder(context, self.repo), &self.patterns)?;
        let caller = context.principal(&open, self.from).await?;
        let what = if self.all { Release::All } else { Release::These(patterns) };
        let given = open.mesh.release_reservations(&caller, &repository, &what).await?;
        context.printer.show(&ReleasedShape::of(&repository, &given.released, open.mesh.machine().now()))?;
        if given.released.is_empty() {
            context.printer.say("you held nothing in this repository");
        }
        Ok(Exit::Success)
    }
}
