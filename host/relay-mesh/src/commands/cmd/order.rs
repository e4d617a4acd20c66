//! Asks for a command, and waits for its end.

use mesh::Order;
use mesh::commands::{Command, CommandStatus};
use mesh::messages::{Draft, Priority};
use mesh::ports::machine::Machine;
use mesh::sessions::Principal;

use super::Args;
use crate::commands::send;
use crate::commands::waiting::{Patience, Waited};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, StreamError};
use crate::exit::Exit;
use crate::shapes::commands::CommandShape;
use crate::signals::Stop;

pub(super) async fn run(args: Args, context: &Context) -> Result<Exit, CommandError> {
    let (Some(to), Some(command)) = (args.target, args.command) else {
        unreachable!("the command line requires both if it names no verb");
    };
    // Listen before the command is stored, so that a user who interrupts the wait still sees its id.
    let mut stop = if args.wait { Some(Stop::listen().map_err(StreamError::Input)?) } else { None };
    let open = context.open()?;
    let caller = context.principal(&open, args.from).await?;
    let ttl = Some(u64::try_from(args.ttl.as_millis()).unwrap_or(u64::MAX));
    let command = open.mesh.order(&caller, Order { to, command, arguments: args.arguments, ttl }).await?;
    if args.wake {
        wake(context, &open, &caller, &command).await?;
    }
    let told = open.mesh.foreseen(&command).await?;
    if let Some(why) = &told {
        context.printer.say(&format!("it waits: {why}"));
    }
    let Some(stop) = &mut stop else {
        context.printer.show(&CommandShape::of(&command, open.machine.now()))?;
        return Ok(Exit::Success);
    };
    match Patience::from_now(args.timeout).wait_unless(stop, ended(context, &open, &command, told)).await {
        Waited::For(ended) => ended_so(context, &open, ended?),
        Waited::InVain => left(context, &open, command, "it has not ended in time", Exit::TimedOut).await,
        Waited::UntilStopped => left(context, &open, command, "the wait was stopped", Exit::Failure).await,
    }
}

/// Shows the state of a command when the wait ends before it. The command goes on.
async fn left(context: &Context, open: &Open, command: Command, why: &str, exit: Exit) -> Result<Exit, CommandError> {
    let by_now = open.mesh.command(command.id).await?.unwrap_or(command);
    context.printer.show(&CommandShape::of(&by_now, open.machine.now()))?;
    context.printer.say(&format!("{why}; `relay-mesh cmd list --all` shows what becomes of it"));
    Ok(exit)
}

/// Waits for a command's end. Tells the user once if the target is not here or leaves, and whenever the reason
/// changes why its session does not run the command.
async fn ended(
    context: &Context,
    open: &Open,
    command: &Command,
    mut told: Option<String>,
) -> Result<Option<Command>, CommandError> {
    let ended = open.mesh.command_ended(command.id);
    tokio::pin!(ended);
    let target = [command.to.clone()];
    let mut stale = std::pin::pin!(async {
        for seen in open.mesh.stale(&target).await? {
            context.printer.say(&format!(
                "{} is {} ({}); the command waits for it, and expires if it is not taken",
                seen.agent.name,
                seen.presence.as_str(),
                seen.evidence
            ));
        }
        std::future::pending::<Result<(), CommandError>>().await
    });
    loop {
        tokio::select! {
            biased;
            ended = &mut ended => return Ok(ended?),
            told_stale = &mut stale => told_stale?,
            news = open.mesh.command_news(command.id, told.as_deref()) => {
                told = news?;
                if let Some(why) = &told {
                    context.printer.say(&format!("it waits: {why}"));
                }
            }
        }
    }
}

fn ended_so(context: &Context, open: &Open, ended: Option<Command>) -> Result<Exit, CommandError> {
    let Some(command) = ended else {
        context.printer.say("the command was removed before it ended");
        return Ok(Exit::NotFound);
    };
    let now = open.machine.now();
    context.printer.show(&CommandShape::of(&command, now))?;
    Ok(match command.standing(now) {
        CommandStatus::Done => Exit::Success,
        CommandStatus::Failed => Exit::Failure,
        CommandStatus::Unknown => {
            context.printer.say("its session ran it, and how it ended is unknown; it is not run again");
            Exit::TimedOut
        }
        CommandStatus::Expired | CommandStatus::Pending | CommandStatus::Running => Exit::TimedOut,
    })
}

/// Sends the target a message that a command waits, and tries every route to deliver it.
async fn wake(context: &Context, open: &Open, caller: &Principal, command: &Command) -> Result<(), CommandError> {
    let draft = Draft {
        body: format!(
            "A command waits for you: {} ({}). Take it with the tool take_command, or by `relay-mesh cmd take {}`.",
            command.line(),
            command.id,
            command.to
        ),
        priority: Priority::Normal,
        idempotency_key: Some(format!("command-{}", command.id)),
        ..Draft::default()
    };
    let sent = open.mesh.send(caller, &[command.to.to_string()], draft).await?;
    send::wake(context, open, caller, &sent).await
}
