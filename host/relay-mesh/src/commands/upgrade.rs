//! `relay-mesh upgrade`: say how this program was installed, and the command that brings a newer one the same way.

use std::path::Path;

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::install_channel;
use crate::own_path::own_file;
use crate::shapes::server::UpgradeShape;

/// Say by which command this program is upgraded
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh upgrade\n\n\
    It changes nothing itself and asks no server. What runs keeps the version that it began with, and talks with what \
    is newer: sessions end by themselves, and a server is started again by `relay-mesh down` and `relay-mesh up`.")]
pub(crate) struct Args {}

impl CommandSpec for Args {
    fn uses_folder(&self) -> bool {
        false
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let program = own_file().map_err(|error| {
            CommandError::caused_by("where this program lies is unknown", None, Exit::Failure, error)
        })?;
        let by = install_channel::of(&program, Path::new("/"));
        context.printer.show(&UpgradeShape {
            version: env!("CARGO_PKG_VERSION"),
            program: program.display().to_string(),
            channel: by.channel,
            command: by.command,
        })?;
        Ok(Exit::Success)
    }
}
