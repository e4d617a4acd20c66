//! `relay-mesh reservations`: list the reservations, and set what happens to an edit of what another agent holds.

use std::path::PathBuf;

use mesh::names::AgentName;
use mesh::reservations::repository::PlaceError;
use mesh::{EditMode, ReservationFilter};

use crate::command::CommandSpec;
use crate::config::{self, Origin};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::git_checkout;
use crate::shapes::reservations::{ListedShapes, ModeShape, ReservationsShape};

/// Show who has reserved what
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh reservations\n  \
    relay-mesh reservations --repo . --agent alice\n  \
    relay-mesh reservations --json | jq -r '.reservations[].pattern'\n  \
    relay-mesh reservations mode advise")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Only of the repository of this folder
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Only of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<AgentName>,
    /// Also those that lapsed or were taken within the last hour
    #[arg(long)]
    expired: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Show or set what happens to an edit of what another agent holds
    #[command(after_help = "enforce: a harness's hook refuses the edit, and the guard refuses the commit.\n\n\
        advise: both go on, and the agent is told who holds the file.\n\n\
        Examples:\n  \
        relay-mesh reservations mode\n  \
        relay-mesh reservations mode advise\n  \
        relay-mesh reservations mode enforce --user\n\n\
        The mode is in the project's .relay-mesh.toml, which a team commits; your own settings decide for \
        projects that do not set it. Each worktree uses its own copy of the file.")]
    Mode(ModeArgs),
}

#[derive(clap::Args, Debug)]
struct ModeArgs {
    /// The new mode; without it, the current one is shown
    #[arg(value_enum)]
    mode: Option<Mode>,
    /// Set it in your own settings, for every project that does not set it
    #[arg(long, requires = "mode")]
    user: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    Advise,
    Enforce,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        if let Some(Command::Mode(args)) = self.command {
            return mode(&args, context);
        }
        let open = context.open()?;
        let repository = match self.repo {
            Some(folder) => Some(open.mesh.checkout(&context.workdir.join(folder))?.repository),
            None => None,
        };
        let filter = ReservationFilter { repository, owner: self.agent.clone(), also_over: self.expired };
        let listed = open.mesh.reservations(&filter).await?;
        let reservations = ListedShapes::of(&listed, open.mesh.machine().now());
        context.printer.show(&ReservationsShape { reservations })?;
        if listed.is_empty() {
            context.say_nothing_found(&open, "nothing is reserved", self.agent.as_ref()).await?;
        }
        Ok(Exit::Success)
    }
}

fn mode(args: &ModeArgs, context: &Context) -> Result<Exit, CommandError> {
    let edits = &context.settings.edits;
    let Some(wanted) = args.mode else {
        context.printer.show(&ModeShape { mode: edits.value.as_str(), origin: edits.origin.to_string() })?;
        return Ok(Exit::Success);
    };
    let wanted = match wanted {
        Mode::Advise => EditMode::Advise,
        Mode::Enforce => EditMode::Enforce,
    };
    let place = if args.user { config::SettingsFile::User } else { config::SettingsFile::Project };
    let unseen = |source| PlaceError::Unseen { path: context.workdir.display().to_string(), source };
    let checkout = git_checkout::checkout(&context.workdir).map_err(unseen)?;
    let workdir = std::fs::canonicalize(&context.workdir).map_err(unseen)?;
    let path = config::set_edit_mode(place, wanted, &context.environment, &workdir, &checkout.top)?;
    context.printer.show(&ModeShape { mode: wanted.as_str(), origin: path.display().to_string() })?;
    match (place, &edits.origin) {
        (config::SettingsFile::User, Origin::Project(project)) => {
            context.printer.say(&format!("here {} decides, and it says {}", project.display(), edits.value.as_str()));
        }
        (config::SettingsFile::Project, _) => context.printer.say("commit the file to share it with your team"),
        (config::SettingsFile::User, Origin::Flags | Origin::Environment | Origin::User(_) | Origin::Default) => {}
    }
    Ok(Exit::Success)
}
