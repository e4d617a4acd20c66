//! `relay-mesh status`: the mesh at a glance.

use std::time::Duration;

use mesh::Wanted;
use mesh::machine::Machine;

use crate::cli::Outcome;
use crate::commands::waiting::patience;
use crate::context::Context;
use crate::error::CommandError;
use crate::host::HostRecord;
use crate::shapes::commands::CommandsShape;
use crate::shapes::host::{HeldShape, Part, StatusShape};
use crate::shapes::reservations::ReservationsShape;

/// Show how the mesh is doing
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh status\n  \
    relay-mesh status --agents --stale 5m\n  \
    relay-mesh status --reservations --commands\n  \
    relay-mesh status --json | jq .waiting\n\n\
    What is named is shown alone; with nothing named, everything is.")]
pub(crate) struct Args {
    /// Show the agents
    #[arg(long)]
    agents: bool,
    /// Show what is reserved, by whom and for how long
    #[arg(long)]
    reservations: bool,
    /// Show the commands that wait or are being worked on
    #[arg(long)]
    commands: bool,
    /// After how long a silence an agent counts as away, where nothing else shows that it lives [default:
    /// `away-after` of the settings]
    #[arg(long, value_name = "TIME", value_parser = patience)]
    stale: Option<Duration>,
}

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let open = match args.stale {
        Some(silence) => context.with_away_after(u64::try_from(silence.as_millis()).unwrap_or(u64::MAX)).open()?,
        None => context.open()?,
    };
    let named = [(args.agents, Part::Agents), (args.reservations, Part::Reservations), (args.commands, Part::Commands)];
    let named: Vec<Part> = named.into_iter().filter(|(asked, _)| *asked).map(|(_, part)| part).collect();
    let dir = &context.settings.dir.value;
    let host = HostRecord::find(dir, open.machine.as_ref())?;
    let status = open.mesh.status().await?;
    let now = open.machine.now();
    let reserved = open.mesh.reservations(&Wanted::default()).await?;
    let mut commands = open.mesh.commands(None).await?;
    commands.retain(|command| !command.standing(now).is_final());
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
        reservations: ReservationsShape::of(&reserved, now).reservations,
        commands: CommandsShape::of(&commands, now).commands,
        held: held.collect(),
        damaged: status.damaged,
        now,
        named,
    })?;
    Ok(Outcome::DONE)
}
