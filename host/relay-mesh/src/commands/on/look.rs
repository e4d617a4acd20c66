//! Showing event hooks and what became of their events, and trying one.

use mesh::event_hooks::{Attempt, Invocation};
use mesh::ports::machine::Machine as _;

use super::add::HookError;
use crate::config::EventHooks;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::event_hooks::{Doing, attempt, sample};
use crate::exit::Exit;
use crate::runs::permission;
use crate::shapes::event_hooks::{HooksShape, InvocationsShape, TriedShape};

pub(super) fn list(context: &Context) -> Result<Exit, CommandError> {
    let kept = EventHooks::of(&context.settings, &context.environment)?;
    let hooks = kept.listed()?;
    context.printer.show(&HooksShape::of(&hooks, kept.path()))?;
    if hooks.is_empty() {
        context.printer.say("you have no event hook; `relay-mesh help on` shows how to make one");
    }
    Ok(Exit::Success)
}

pub(super) async fn test(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    permission::only_the_user(context, &open, "try event hooks").await?;
    let hooks = EventHooks::of(&context.settings, &context.environment)?.listed()?;
    let Some(hook) = hooks.into_iter().find(|hook| hook.id == id) else {
        return Err(HookError::Unknown(id.to_owned()).into());
    };
    let now = open.machine.now();
    let event = sample(hook.on, now, &context.workdir.display().to_string());
    let called = format!("{id}-{}-test", now.0);
    match attempt(Doing { context, open: &open }, &hook, &called, &event).await {
        Attempt::Done(told) => {
            context.printer.show(&TriedShape { hook: hook.id, told })?;
            Ok(Exit::Success)
        }
        Attempt::TryAgain(why) => Err(failed(id, &why, "a real event is tried again; `relay-mesh on log` shows it")),
        Attempt::Failed(why) => {
            Err(failed(id, &why, "a real event is not tried again after this; `relay-mesh on log` shows it"))
        }
    }
}

fn failed(id: &str, why: &str, hint: &str) -> CommandError {
    CommandError::from(Failure {
        what: format!("the hook `{id}` failed: {why}"),
        hint: Some(hint.to_owned()),
        exit: Exit::Failure,
        source: None,
    })
}

pub(super) async fn log(id: Option<&str>, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let all = open.mesh.hook_invocations().await?;
    let wanted: Vec<Invocation> = all.into_iter().filter(|one| id.is_none_or(|id| one.hook == id)).collect();
    context.printer.show(&InvocationsShape::of(&wanted, open.machine.now()))?;
    if wanted.is_empty() {
        context.printer.say("no hook was carried out lately");
    }
    Ok(Exit::Success)
}
