//! Takes, ends and lists commands.

use mesh::commands::{Ended, LONGEST_RESULT};
use mesh::ports::machine::Machine;

use super::{DoneArgs, ListArgs, TakeArgs};
use crate::commands::input;
use crate::commands::waiting::{Patience, Waited};
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::shapes::commands::{CommandShape, CommandsShape};

pub(super) async fn take(args: TakeArgs, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let caller = context.principal(&open, Some(args.target.clone())).await?;
    let timeout = Patience::from_now(args.timeout);
    let mut taken = open.mesh.take_command(&caller).await?;
    // The timeout ends only a wait, never a take. The loop is needed because another process may take each one first.
    while args.wait && taken.is_none() {
        match timeout.wait(open.mesh.command_waits(&caller)).await? {
            Waited::For(waits) => waits?,
            Waited::InVain => {
                context.printer.say(&format!("no command came for {} in time", args.target));
                return Ok(Exit::TimedOut);
            }
            Waited::UntilStopped => return Ok(Exit::Failure),
        }
        taken = open.mesh.take_command(&caller).await?;
    }
    let Some(command) = taken else {
        context.printer.say(&format!("no command waits for {}", args.target));
        return Ok(Exit::NotFound);
    };
    // If this fails, some of it may have been read: given back, the command would be carried out twice. Its taker may
    // still end it, and if nobody does in time it ends as failed.
    context.printer.show(&CommandShape::of(&command, open.machine.now()))?;
    open.mesh.confirm_command(command.id).await?;
    context.printer.say(&format!(
        "when it has ended: `relay-mesh cmd done {} RESULT --from {}`, with `--failed` if it failed",
        command.id, args.target
    ));
    Ok(Exit::Success)
}

pub(super) async fn done(args: DoneArgs, context: &Context) -> Result<Exit, CommandError> {
    let result = match args.result {
        None if args.stdin => input::text(LONGEST_RESULT)?,
        result => result.unwrap_or_default(),
    };
    let open = context.open()?;
    let caller = context.principal(&open, args.from).await?;
    let id = open.mesh.id_of(&caller, &args.id).await?;
    let ended = if args.failed { Ended::Failed } else { Ended::Done };
    let command = open.mesh.finish_command(&caller, id, ended, &result).await?;
    context.printer.show(&CommandShape::of(&command, open.machine.now()))?;
    Ok(Exit::Success)
}

pub(super) async fn list(args: ListArgs, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let mut commands = open.mesh.commands(args.to.as_ref()).await?;
    let now = open.machine.now();
    commands.retain(|command| args.all || !command.standing(now).is_final());
    context.printer.show(&CommandsShape::of(&commands, now))?;
    if commands.is_empty() {
        let none = if args.all { "no command is kept" } else { "no command waits or is being worked on" };
        context.say_nothing_found(&open, none, args.to.as_ref()).await?;
    }
    Ok(Exit::Success)
}
