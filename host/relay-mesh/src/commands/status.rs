//! `relay-mesh status`: the mesh at a glance.

use mesh::machine::Machine;

use crate::cli::Outcome;
use crate::context::Context;
use crate::error::CommandError;
use crate::host::HostRecord;
use crate::shapes::host::{HeldShape, StatusShape};

/// Show how the mesh is doing
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh status\n  \
    relay-mesh status --json | jq .waiting")]
pub(crate) struct Args {}

/// Does it.
pub(crate) async fn run(_: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = context.open()?;
    let dir = &context.settings.dir.value;
    let host = HostRecord::find(dir, open.machine.as_ref())?;
    let status = open.mesh.status().await?;
    let held = status.held.into_iter().map(|held| HeldShape {
        from: held.from.to_string(),
        to: held.to.to_string(),
        messages: held.messages,
        reason: held.reason,
    });
    context.printer.show(&StatusShape {
        dir: dir.display().to_string(),
        host: HostRecord::shape(host.as_ref()),
        agents: status.agents.iter().map(Into::into).collect(),
        waiting: status.waiting,
        held: held.collect(),
        damaged: status.damaged,
        now: open.machine.now(),
    })?;
    Ok(Outcome::DONE)
}
