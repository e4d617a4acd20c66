//! `relay-mesh down`: stop the server of this data folder, and no other server.

use crate::command::CommandSpec;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::server::nats::{self, NatsRecord};
use crate::server::{ServerRecord, background};
use crate::shapes::server::DownShape;

/// Stop the server that runs in the background
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh down\n\n\
    A nats-server that `relay-mesh up --nats` started stops too; its data stays.")]
pub(crate) struct Args {}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let found = ServerRecord::find(&context.settings.dir.value, open.machine.as_ref())?;
        let (outcome, pid) = match found {
            Some(record) => {
                background::stop(&record, open.machine.as_ref()).await?;
                ("stopped", Some(record.process.pid))
            }
            None => ("not running", None),
        };
        // The relay-mesh server stops first: it may still write to nats-server.
        let server = NatsRecord::find(&context.settings.dir.value, open.machine.as_ref())?;
        if let Some(record) = &server {
            nats::stop(record, open.machine.as_ref()).await?;
        }
        let shape = DownShape { outcome, pid, server_pid: server.map(|record| record.process.pid) };
        context.printer.show(&shape)?;
        Ok(Exit::Success)
    }
}
