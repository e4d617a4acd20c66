//! `relay-mesh version`: print the versions of the program and of its adapter interface.

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::server::VersionShape;

/// The version of the WIT interface that adapters implement.
const WIT: &str = "0.1";

/// Print the version
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh version --json")]
pub(crate) struct Args {}

impl CommandSpec for Args {
    fn uses_folder(&self) -> bool {
        false
    }

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        context.printer.show(&VersionShape {
            version: env!("CARGO_PKG_VERSION"),
            wit: WIT,
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
        })?;
        Ok(Exit::Success)
    }
}
