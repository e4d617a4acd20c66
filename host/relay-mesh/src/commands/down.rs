//! `relay-mesh down`: stop the server of this data folder, and no other process.

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::server::nats::{self, ServerRecord};
use crate::server::{HostRecord, background};
use crate::shapes::host::DownShape;

/// Stop the server that runs in the background
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh down\n\n\
    A nats-server that `relay-mesh up --nats` started is stopped with it; what it keeps stays.")]
pub(crate) struct Args {}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let found = HostRecord::find(&context.settings.dir.value, open.machine.as_ref())?;
        let (outcome, pid) = match found {
            Some(record) => {
                background::stop(&record, open.machine.as_ref()).await?;
                ("stopped", Some(record.process.pid))
            }
            None => ("not running", None),
        };
        // The server goes first: it may have something to say to the server.
        let server = ServerRecord::find(&context.settings.dir.value, open.machine.as_ref())?;
        if let Some(record) = &server {
            nats::stop(record, open.machine.as_ref()).await?;
        }
        let shape = DownShape { outcome, pid, server_pid: server.map(|record| record.process.pid) };
        context.printer.show(&shape)?;
        Ok(Exit::Success)
    }
}
