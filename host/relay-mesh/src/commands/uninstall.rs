//! `relay-mesh uninstall`: takes the mesh out of a harness. Files unchanged since the install are restored byte
//! for byte.

use mesh::ports::harness::{Action, Harness as _};

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::setup::agreement::Confirmation;
use crate::setup::carry::{PlanContext, carry_out};
use crate::setup::changes::Changes;
use crate::setup::installed::scope_name;
use crate::setup::place::Place;
use crate::setup::request::{Installation, Reach, setup};

/// Take the mesh out of a harness
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh uninstall claude-code --project . --dry-run\n  \
    relay-mesh uninstall claude-code --user --yes\n\n\
    A file that was not changed since the install is restored byte for byte; from any other file only our part is \
    removed. Without a terminal and without `--yes` nothing changes, and the command exits with 4.")]
pub(crate) struct Args {
    /// Which harness, as `relay-mesh harnesses` lists them
    harness: String,
    #[command(flatten)]
    place: Place,
    /// Show the changes and make none
    #[arg(long)]
    dry_run: bool,
    /// Make the changes without asking
    #[arg(long, short)]
    yes: bool,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let context = &context.at(self.place.folder(&context.workdir)?);
        let open = context.open()?;
        let harness = match open.adapters.adapter_even_disabled(&self.harness).await {
            Ok(Some(harness)) => harness,
            Ok(None) => return Err(errors::adapters::unknown(&self.harness, open.adapters.as_ref())),
            Err(error) => return Err(errors::adapters::failed(&self.harness, error)),
        };
        let (name, title) = (harness.about().harness.as_str(), &harness.about().title);
        let scope = self.place.scope();
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
            confirmation: Confirmation::from_flags(self.dry_run, self.yes),
            nothing_to_do: format!("{title} is not set up for the {}.", scope_name(scope)),
            done: format!("{title} is no longer set up for the {}", scope_name(scope)),
        };
        carry_out(context, &about, make, |edit| changes.path_of(edit), |plan| changes.apply(Action::Remove, plan)).await
    }
}
