//! `relay-mesh uninstall`: takes the mesh out of a harness, or out of everything. Files unchanged since the install are
//! restored byte for byte.

mod everything;

use mesh::ports::harness::{Action, Harness as _, Scope};

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::setup::agreement::Confirmation;
use crate::setup::apply::{PlanContext, carry_out};
use crate::setup::changes::Changes;
use crate::setup::installed::scope_name;
use crate::setup::request::{Installation, Reach, setup};
use crate::setup::scope_args::ScopeArgs;

/// Take the mesh out of a harness
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh uninstall claude-code --project . --dry-run\n  \
    relay-mesh uninstall claude-code --user --yes\n  \
    relay-mesh uninstall --all\n\n\
    A file that was not changed since the install is restored byte for byte; from any other file only our part is \
    removed. Without a terminal and without `--yes` nothing changes, and the command exits with 4.\n\n\
    `--all` goes through every project and your own settings, takes out the guard of those projects and the files of \
    `wake install`, and says what is left: your mail, your settings, the program, and a plugin of relay-mesh that a \
    harness has, with the command that removes it.")]
pub(crate) struct Args {
    /// Which harness, as `relay-mesh harnesses` lists them
    #[arg(required_unless_present = "all")]
    harness: Option<String>,
    /// Out of every harness in every project, and out of your own settings
    #[arg(long, conflicts_with_all = ["harness", "project", "user"])]
    all: bool,
    #[command(flatten)]
    place: ScopeArgs,
    /// Show the changes and make none
    #[arg(long)]
    dry_run: bool,
    /// Make the changes without asking
    #[arg(long, short)]
    yes: bool,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let confirmation = Confirmation::from_flags(self.dry_run, self.yes);
        match &self.harness {
            None => everything::take_out(context, confirmation).await,
            Some(harness) => {
                let context = &context.at(self.place.folder(&context.workdir)?);
                take_out(context, harness, self.place.scope(), confirmation).await
            }
        }
    }
}

/// Takes the mesh out of a harness, in the project that `context` stands in or in the user's own settings.
async fn take_out(
    context: &Context,
    harness: &str,
    scope: Scope,
    confirmation: Confirmation,
) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let harness = match open.adapters.adapter_even_disabled(harness).await {
        Ok(Some(harness)) => harness,
        Ok(None) => return Err(errors::adapters::unknown(harness, open.adapters.as_ref())),
        Err(error) => return Err(errors::adapters::failed(harness, error)),
    };
    let (name, title) = (harness.about().harness.as_str(), &harness.about().title);
    let asked = setup(Action::Remove, scope, &Reach::Stdio(None), &Installation::of(context)?);
    let changes = Changes { context, open: &open, harness: name, scope };
    let make = async || {
        let proposed = harness.propose(&asked).await.map_err(|error| errors::adapters::failed(name, error))?;
        changes.removal(proposed)
    };
    let about = PlanContext {
        harness: name,
        is_foreign: !open.adapters.is_built_in(name),
        scope,
        confirmation,
        nothing_to_do: format!("{title} is not set up for the {}.", scope_name(scope)),
        done: format!("{title} is no longer set up for the {}", scope_name(scope)),
    };
    carry_out(context, &about, make, |edit| changes.path_of(edit), |plan| changes.apply(Action::Remove, plan)).await
}
