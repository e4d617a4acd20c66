//! What a hook does with one event.

use mesh::SendError;
use mesh::event_hooks::{Attempt, EventHook, HookAction, Occurrence};
use mesh::messages::Draft;
use mesh::ports::machine::Machine as _;

use super::{command, payload, post};
use crate::compose::Open;
use crate::context::Context;

/// What every hook needs.
pub(crate) struct Doing<'a> {
    pub(crate) context: &'a Context,
    pub(crate) open: &'a Open,
}

/// Does it once. `id` is the same however often it is tried.
pub(crate) async fn attempt(doing: Doing<'_>, hook: &EventHook, id: &str, event: &Occurrence) -> Attempt {
    let Doing { context, open } = doing;
    match &hook.action {
        HookAction::Run(line) => command::run(context, line, hook.timeout, (&hook.id, id), event).await,
        HookAction::Tell(to) => tell(open, hook, to, id, event).await,
        HookAction::Post(url) => {
            let body = payload::json_of(&hook.id, id, event).to_string().into_bytes();
            post::post(url, hook.secret.as_deref(), id, open.machine.now(), body).await
        }
        HookAction::Notify => {
            open.mesh.show_notice(&format!("relay-mesh: {}", event.on), &payload::line(event)).await;
            Attempt::Done("shown, if there is a desktop".to_owned())
        }
    }
}

async fn tell(open: &Open, hook: &EventHook, to: &str, id: &str, event: &Occurrence) -> Attempt {
    let draft = Draft {
        body: payload::message(&hook.id, event),
        subject: Some(payload::line(event).chars().take(80).collect()),
        tags: vec!["event-hook".to_owned()],
        idempotency_key: Some(format!("hook-{id}")),
        ..Draft::default()
    };
    match open.mesh.send_for_hook(&hook.id, event, to, draft).await {
        Ok(sent) => {
            let held = sent.recipients.iter().filter_map(|one| one.held.as_ref()).next();
            let names: Vec<&str> = sent.recipients.iter().map(|one| one.to.as_str()).collect();
            Attempt::Done(match (held, names.as_slice()) {
                (Some(why), _) => format!("sent as {}, and held: {why}", sent.id),
                (None, []) => format!("queued as {}", sent.id),
                (None, names) => format!("sent as {} to {}", sent.id, names.join(", ")),
            })
        }
        Err(
            error @ (SendError::Store { .. }
            | SendError::Unreadable(_)
            | SendError::NotQueued(_)
            | SendError::ChannelOutOfReach { .. }),
        ) => Attempt::TryAgain(store::reasons(&error)),
        Err(error) => Attempt::Failed(store::reasons(&error)),
    }
}
