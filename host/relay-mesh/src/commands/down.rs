//! `relay-mesh down`: stop the server of this data folder, and no other server.

use crate::command::CommandSpec;
use crate::context::Context;
use crate::driven;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::server::nats::{self, NatsRecord};
use crate::server::of_harness::{self, HarnessServerRecord};
use crate::server::{ServerRecord, background};
use crate::shapes::counted;
use crate::shapes::harness_servers::HarnessServerShape;
use crate::shapes::server::DownShape;

/// Stop the server that runs in the background
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  relay-mesh down\n\n\
    What `relay-mesh up --with` started stops too, and a nats-server that `relay-mesh up --nats` started; its data stays.")]
pub(crate) struct Args {}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = context.open()?;
        let agents = driven::host::stop(&open).await?;
        // They talk to the server, and what they report last should still reach it.
        let mut of_harnesses = HarnessServerRecord::all(&context.settings.dir.value, open.machine.as_ref())?;
        of_harnesses.retain(|record| record.runs(open.machine.as_ref()));
        for record in &of_harnesses {
            of_harness::stop(record, open.machine.as_ref()).await?;
        }
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
        let harness_servers = of_harnesses.iter().map(HarnessServerShape::from).collect();
        let shape = DownShape { outcome, pid, server_pid: server.map(|record| record.process.pid), harness_servers };
        context.printer.show(&shape)?;
        if agents > 0 {
            context.printer.say(&format!(
                "{} that you started {}; `relay-mesh up` goes on with them, `relay-mesh dismiss NAME` ends one",
                counted(agents, "agent"),
                if agents == 1 { "rests" } else { "rest" }
            ));
        }
        Ok(Exit::Success)
    }
}
