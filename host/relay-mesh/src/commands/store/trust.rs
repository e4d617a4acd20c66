//! `relay-mesh store trust`: take the data folder that the project's settings name as one's own.

use crate::config::ProjectFolder;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::settings::TrustShape;

/// Take the data folder that the project's settings name as your own
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh store trust\n\n\
    What is in a data folder counts as yours: the adapters that are installed in it and what they may do, agents that are \
    continued, keys. So a folder that a project names is used only if it was made here. This is for one that you have \
    moved or copied yourself.")]
pub(super) struct Args {}

pub(super) async fn run(context: &Context) -> Result<Exit, CommandError> {
    let Some(folder) = ProjectFolder::of(&context.settings, &context.environment)? else {
        return Err(Failure {
            what: "no project names the data folder, so it is yours already".to_owned(),
            hint: Some("`relay-mesh config` shows where each setting comes from".to_owned()),
            exit: Exit::Usage,
            source: None,
        }
        .into());
    };
    // Who asks is told by the sessions of the user's own folder: what is in the other one is not believed yet.
    let own = context.in_own_folder()?;
    permission::only_the_user(&own, &own.open()?, "take a data folder as its user's").await?;
    let is_new = folder.trust()?;
    context.printer.show(&TrustShape { dir: folder.dir().display().to_string(), is_new })?;
    Ok(Exit::Success)
}
