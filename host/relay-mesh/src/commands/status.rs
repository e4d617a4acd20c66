//! `relay-mesh status`: the mesh at a glance.

use std::time::Duration;

use mesh::commands::Command;
use mesh::ports::machine::{Instant, Machine};
use mesh::{MeshStatus, RepositoryReservations};

use crate::command::CommandSpec;
use crate::compose::Open;
use crate::context::Context;
use crate::duration::timeout;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::render::Format;
use crate::render::Show;
use crate::server::ServerRecord;
use crate::server::of_harness::HarnessServerRecord;
use crate::shapes::agents::Detail;
use crate::shapes::commands::CommandsShape;
use crate::shapes::harness_servers::HarnessServerShape;
use crate::shapes::mail::QueuedShape;
use crate::shapes::reservations::ListedShapes;
use crate::shapes::server::{StatusPart, StatusShape, StuckShape};
use crate::signals::Stop;

/// Show how the mesh is doing
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh status\n  \
    relay-mesh status --agents --stale 5m\n  \
    relay-mesh status --reservations --commands\n  \
    relay-mesh status --json | jq .waiting\n  \
    relay-mesh status --agents --follow\n\n\
    It shows only the parts that you name, or everything if you name none.")]
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
    /// Count an agent as away after this much silence, unless something else shows that it is alive [default:
    /// `away-after` of the settings]
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    stale: Option<Duration>,
    /// Keep running, and show it again whenever it has changed; on a terminal in the same place
    #[arg(long, short)]
    follow: bool,
    /// On a terminal, also agents that are offline
    #[arg(long, short)]
    all: bool,
    /// On a terminal, also why each agent is thought to be busy, idle or away
    #[arg(long, short)]
    verbose: bool,
}

/// How long changes are collected while following: in a busy mesh each one would print a screenful.
const GATHER: Duration = Duration::from_millis(250);
/// Poll interval while following. Silence raises no event.
const LOOK: Duration = Duration::from_secs(5);

impl CommandSpec for Args {
    const STARTS_CLEANUP: bool = true;

    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = match self.stale {
            Some(silence) => context.with_away_after(u64::try_from(silence.as_millis()).unwrap_or(u64::MAX)).open()?,
            None => context.open()?,
        };
        let named = [
            (self.agents, StatusPart::Agents),
            (self.reservations, StatusPart::Reservations),
            (self.commands, StatusPart::Commands),
        ];
        let named: Vec<StatusPart> = named.into_iter().filter(|(asked, _)| *asked).map(|(_, part)| part).collect();
        let detail = Detail { all: self.all, reasons: self.verbose, as_found: false };
        if !self.follow {
            let found = look(context, &open).await?;
            context.printer.show(&shape(context, &found, &named, detail))?;
            return match found.status.out_of_reach {
                None => Ok(Exit::Success),
                Some(_) => Ok(Exit::Store),
            };
        }
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        // Watch before reading, so that no change is missed in between.
        let mut watch = open.mesh.watch_status().await?;
        let mut last = String::new();
        loop {
            let found = look(context, &open).await?;
            show_if_new(context, &shape(context, &found, &named, detail), &mut last)?;
            drop(found);
            tokio::select! {
                () = stop.asked() => return Ok(Exit::Success),
                changed = watch.changed() => {
                    changed?;
                    tokio::time::sleep(GATHER).await;
                }
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

/// Shows the status if its text differs from the last one shown.
fn show_if_new(context: &Context, shape: &StatusShape<'_>, last: &mut String) -> Result<(), CommandError> {
    let screen = context.printer.screen().filter(|_| context.printer.format() == Format::Text);
    let text = screen.map_or_else(|| shape.text(), |screen| shape.text_on(&screen));
    if text == *last {
        return Ok(());
    }
    match screen {
        // In the same place: to the top, and what was below is gone. Nothing has to be put back when this is killed.
        Some(screen) if screen.redraws => context.printer.bytes(b"\x1b[H\x1b[J")?,
        Some(_) | None if !last.is_empty() && context.printer.format() == Format::Text => context.printer.data("")?,
        Some(_) | None => {}
    }
    *last = text;
    context.printer.show(shape)
}

struct Snapshot {
    server: Option<ServerRecord>,
    of_harnesses: Vec<HarnessServerRecord>,
    status: MeshStatus,
    /// Empty while the servers are out of reach.
    reserved: Vec<RepositoryReservations>,
    commands: Vec<Command>,
    now: Instant,
}

async fn look(context: &Context, open: &Open) -> Result<Snapshot, CommandError> {
    let server = ServerRecord::find(&context.settings.dir.value, open.machine.as_ref())?;
    let mut of_harnesses = HarnessServerRecord::all(&context.settings.dir.value, open.machine.as_ref())?;
    of_harnesses.retain(|record| record.runs(open.machine.as_ref()));
    let mut status = open.mesh.status().await?;
    let now = open.machine.now();
    let (reserved, mut commands) = open.mesh.coordination(&mut status).await?.unwrap_or_default();
    commands.retain(|command| !command.standing(now).is_final());
    Ok(Snapshot { server, of_harnesses, status, reserved, commands, now })
}

fn shape<'a>(context: &Context, found: &'a Snapshot, named: &[StatusPart], detail: Detail) -> StatusShape<'a> {
    let Snapshot { server, of_harnesses, status, reserved, commands, now } = found;
    StatusShape {
        dir: context.settings.dir.value.display().to_string(),
        server: ServerRecord::shape(server.as_ref()),
        harness_servers: of_harnesses.iter().map(HarnessServerShape::from).collect(),
        agents: &status.agents,
        waiting: status.waiting,
        counted: status.counted,
        reservations: ListedShapes::of(reserved, *now),
        commands: CommandsShape::of(commands, *now).commands,
        held: status.held.iter().map(StuckShape::from).collect(),
        undeliverable: status.undeliverable.iter().map(StuckShape::from).collect(),
        damaged: status.damaged.clone(),
        queued: status.queued.iter().map(QueuedShape::from).collect(),
        out_of_reach: status.out_of_reach.clone(),
        now: *now,
        named: named.to_vec(),
        detail,
    }
}
