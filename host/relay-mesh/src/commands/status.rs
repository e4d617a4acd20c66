//! `relay-mesh status`: the mesh at a glance.

use std::time::Duration;

use mesh::command::Command;
use mesh::machine::{Instant, Machine};
use mesh::{Listed, Listing, MeshStatus};

use crate::command::CommandSpec;
use crate::commands::waiting::timeout;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::render::Format;
use crate::render::Show;
use crate::server::HostRecord;
use crate::shapes::commands::CommandsShape;
use crate::shapes::host::{HeldShape, Part, StatusShape};
use crate::shapes::mail::QueuedShape;
use crate::shapes::reservations::ListedShapes;
use crate::signals::Stop;

/// Show how the mesh is doing
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh status\n  \
    relay-mesh status --agents --stale 5m\n  \
    relay-mesh status --reservations --commands\n  \
    relay-mesh status --json | jq .waiting\n  \
    relay-mesh status --agents --follow\n\n\
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
    #[arg(long, value_name = "TIME", value_parser = timeout)]
    stale: Option<Duration>,
    /// Go on, and show it anew whenever it has changed
    #[arg(long, short)]
    follow: bool,
}

/// Following lets changes gather for so long: in a busy mesh each of them would be a screenful.
const GATHER: Duration = Duration::from_millis(250);
/// Following looks at least this often: that nothing is heard of somebody is announced by nothing.
const LOOK: Duration = Duration::from_secs(5);

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let open = match self.stale {
            Some(silence) => context.with_away_after(u64::try_from(silence.as_millis()).unwrap_or(u64::MAX)).open()?,
            None => context.open()?,
        };
        let named =
            [(self.agents, Part::Agents), (self.reservations, Part::Reservations), (self.commands, Part::Commands)];
        let named: Vec<Part> = named.into_iter().filter(|(asked, _)| *asked).map(|(_, part)| part).collect();
        if !self.follow {
            let found = look(context, &open).await?;
            context.printer.show(&shape(context, &found, &found.listed()?, &named))?;
            return match found.status.out_of_reach {
                None => Ok(Exit::Success),
                Some(_) => Ok(Exit::Store),
            };
        }
        let mut stop = Stop::listen().map_err(StreamError::Input)?;
        // Watching begins before looking, so that nothing can come in between.
        let mut watch = open.mesh.watch_status().await?;
        let mut last = String::new();
        loop {
            let found = look(context, &open).await?;
            show_if_new(context, &shape(context, &found, &found.listed()?, &named), &mut last)?;
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

/// Shows it where people would see something else than last time.
fn show_if_new(context: &Context, shape: &StatusShape<'_>, last: &mut String) -> Result<(), CommandError> {
    let text = shape.text();
    if text == *last {
        return Ok(());
    }
    if !last.is_empty() && context.printer.format() == Format::Text {
        context.printer.data("")?;
    }
    *last = text;
    context.printer.show(shape)
}

/// Everything that is shown, as it was found.
struct Found {
    host: Option<HostRecord>,
    status: MeshStatus,
    /// None while the servers are out of reach.
    reserved: Option<Listing>,
    commands: Vec<Command>,
    now: Instant,
}

impl Found {
    fn listed(&self) -> Result<Vec<Listed<'_>>, CommandError> {
        Ok(self.reserved.as_ref().map(Listing::read).transpose()?.unwrap_or_default())
    }
}

/// How everything stands now.
async fn look(context: &Context, open: &Open) -> Result<Found, CommandError> {
    let host = HostRecord::find(&context.settings.dir.value, open.machine.as_ref())?;
    let mut status = open.mesh.status().await?;
    let now = open.machine.now();
    let (reserved, mut commands) = match open.mesh.coordination(&mut status).await? {
        Some((reserved, commands)) => (Some(reserved), commands),
        None => (None, Vec::new()),
    };
    commands.retain(|command| !command.standing(now).is_final());
    Ok(Found { host, status, reserved, commands, now })
}

/// What is shown of it.
fn shape<'a>(context: &Context, found: &'a Found, listed: &'a [Listed<'a>], named: &[Part]) -> StatusShape<'a> {
    let Found { host, status, reserved: _, commands, now } = found;
    let held = status.held.iter().map(|held| HeldShape {
        from: held.from.to_string(),
        to: held.to.to_string(),
        messages: held.messages,
        reason: held.reason.clone(),
    });
    StatusShape {
        dir: context.settings.dir.value.display().to_string(),
        host: HostRecord::shape(host.as_ref()),
        agents: &status.agents,
        waiting: status.waiting,
        counted: status.counted,
        reservations: ListedShapes::of(listed, *now),
        commands: CommandsShape::of(commands, *now).commands,
        held: held.collect(),
        damaged: status.damaged.clone(),
        queued: status.queued.iter().map(QueuedShape::from).collect(),
        out_of_reach: status.out_of_reach.clone(),
        now: *now,
        named: named.to_vec(),
    }
}
