//! `relay-mesh plugin enable` and `disable`: use an installed adapter or not.

use adapters::InstalledError;
use adapters::installed::Enablement;
use mesh::ports::harness::Harnesses as _;

use super::install::{installed_adapters, installed_error};
use super::shapes::Stood;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::permission;

/// Use an installed adapter again
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh plugin enable gemini-cli")]
pub(super) struct Args {
    /// Which adapter, as `relay-mesh plugin list` names it
    name: String,
}

/// Leave an adapter installed and use it no longer
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh plugin disable gemini-cli\n\n\
    Its grants stay. If it replaced a built-in adapter, that one answers again.")]
pub(super) struct DisableArgs {
    /// Which adapter, as `relay-mesh plugin list` names it
    name: String,
}

/// What was granted before holds again.
pub(super) async fn enable(args: Args, context: &Context) -> Result<Exit, CommandError> {
    permission::only_the_user(context, &context.open()?, "consent").await?;
    stand(context, &args.name, Enablement::Enabled)
}

pub(super) fn disable(args: DisableArgs, context: &Context) -> Result<Exit, CommandError> {
    stand(context, &args.name, Enablement::Disabled)
}

fn stand(context: &Context, name: &str, standing: Enablement) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let before = installed_adapters(&open)?.stand(name, standing).map_err(|error| match error {
        InstalledError::Absent(_) if open.adapters.names().iter().any(|known| known == name) => {
            CommandError::from(Failure {
                what: format!("the adapter `{name}` was not installed by `relay-mesh plugin install`"),
                hint: Some(
                    "it is part of this program, or is in a plugin folder: `relay-mesh plugin list` says which"
                        .to_owned(),
                ),
                exit: Exit::Refused,
                source: None,
            })
        }
        error => installed_error(error),
    })?;
    let state = word(standing);
    let changed = before != standing;
    context.printer.say(&if changed { format!("{name} is {state}.") } else { format!("{name} was {state} already.") });
    context.printer.show(&Stood { adapter: name.to_owned(), state, changed })?;
    Ok(Exit::Success)
}

pub(super) fn word(standing: Enablement) -> &'static str {
    match standing {
        Enablement::Enabled => "enabled",
        Enablement::Disabled => "disabled",
    }
}
