//! `relay-mesh version`.

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;
use crate::shapes::host::VersionShape;

/// The version of the interface between adapters and host.
const WIT: &str = "0.1";

/// Print the version
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh version --json")]
pub(crate) struct Args {}

/// Does it.
pub(crate) async fn run(_: Args, context: &Context) -> Result<Outcome, CommandError> {
    context.printer.show(&VersionShape {
        version: env!("CARGO_PKG_VERSION"),
        wit: WIT,
        system: std::env::consts::OS,
        architecture: std::env::consts::ARCH,
    })?;
    Ok(Outcome::DONE)
}
