//! `relay-mesh down`: stop the host of this data folder, and no other process.

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;
use crate::host::{HostRecord, background};
use crate::shapes::host::DownShape;

/// Stop the host that runs in the background
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh down")]
pub(crate) struct Args {}

/// Does it.
pub(crate) async fn run(_: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = context.open()?;
    let found = HostRecord::find(&context.settings.dir.value, open.machine.as_ref())?;
    let shape = match found {
        Some(record) => {
            background::stop(&record, open.machine.as_ref()).await?;
            DownShape { outcome: "stopped", pid: Some(record.process.pid) }
        }
        None => DownShape { outcome: "not running", pid: None },
    };
    context.printer.show(&shape)?;
    Ok(Outcome::DONE)
}
