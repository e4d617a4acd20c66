//! Adding, importing and removing event hooks. Only the user may do these.

use std::path::Path;

use mesh::event_hooks::{EventHook, HookAction, HookMatch, HookTrigger};
use mesh::messages::channel::ChannelName;
use mesh::names::AgentName;
use mesh::ports::machine::Machine;

use super::Add;
use crate::compose::Open;
use crate::config::{EventHooks, USUAL_TIMEOUT};
use crate::context::Context;
use crate::errors::{CommandError, Explain};
use crate::event_hooks::{ImportError, WebhookUrl, imported, new_secret};
use crate::exit::Exit;
use crate::runs::{begin, permission};
use crate::shapes::event_hooks::{HookShape, HooksShape};

/// What an agent is told that would change hooks.
const WHAT: &str = "change event hooks";
/// The letters of an id: none that look like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Why no hook was added or found.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookError {
    #[error("the hook does nothing")]
    NoAction,
    #[error("a hook does one thing, and this one has {0}")]
    SeveralActions(&'static str),
    #[error("{0}")]
    Url(String),
    #[error("`{0}` is no agent and no channel")]
    Recipient(String),
    #[error("the command is empty")]
    EmptyCommand,
    #[error("`{0}` is no hook of yours")]
    Unknown(String),
    #[error("`{path}` cannot be read")]
    Unreadable { path: String, source: std::io::Error },
    #[error("`{path}`, {error}")]
    Import { path: String, error: ImportError },
}

impl Explain for HookError {
    fn exit(&self) -> Exit {
        match self {
            HookError::Unknown(_) | HookError::Unreadable { .. } => Exit::NotFound,
            HookError::NoAction
            | HookError::SeveralActions(_)
            | HookError::Url(_)
            | HookError::Recipient(_)
            | HookError::EmptyCommand
            | HookError::Import { .. } => Exit::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            HookError::NoAction => "add `--run COMMAND`, `--tell AGENT`, `--post URL` or `--notify`",
            HookError::SeveralActions(_) => "make a hook for each",
            HookError::Url(_) => "write it as in `https://example.org/hook`",
            HookError::Recipient(_) => "write an agent's name, or a channel in quotes, as in `'#audit'`",
            HookError::EmptyCommand => "write what the shell is to run, as in `--run 'make lint'`",
            HookError::Unknown(_) => "`relay-mesh on list` shows their ids",
            HookError::Unreadable { .. } => "see whether the file is there",
            HookError::Import { .. } => {
                "nothing was taken over; `relay-mesh on --help` says what a hook can be for and do"
            }
        };
        Some(hint.to_owned())
    }
}

pub(super) async fn add(add: Add, context: &Context) -> Result<Exit, CommandError> {
    let action = action(&add)?;
    let Add { event, agent, harness, matches, timeout, .. } = add;
    let Some(on) = event else { return Err(HookError::NoAction.into()) };
    let open = context.open()?;
    permission::only_the_user(context, &open, WHAT).await?;
    let harness = known_harness(&open, harness).await?;
    let timeout = timeout.map_or(USUAL_TIMEOUT * 1_000, |timeout| timeout.as_millis().try_into().unwrap_or(u64::MAX));
    let hook = new_hook(&open, on, (agent, harness, matches), action, timeout);
    let kept = EventHooks::of(&context.settings, &context.environment)?;
    kept.add(std::slice::from_ref(&hook))?;
    open.mesh.event_hooks_changed().await?;
    context.printer.show(&HookShape::with_secret(&hook))?;
    if let HookAction::Tell(to) = &hook.action
        && !ChannelName::is_meant(to)
        && open.mesh.resolve(to, None).await.is_err()
    {
        context.printer.say(&format!("{} yet", mesh::names::no_such_agent(to)));
    }
    context.printer.say(&format!(
        "kept in {}; `relay-mesh on test {}` tries it, `relay-mesh on remove {}` removes it",
        kept.path().display(),
        hook.id,
        hook.id
    ));
    Ok(Exit::Success)
}

pub(super) async fn import(file: &Path, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    permission::only_the_user(context, &open, WHAT).await?;
    let path = file.display().to_string();
    let text = std::fs::read_to_string(context.workdir.join(file))
        .map_err(|source| HookError::Unreadable { path: path.clone(), source })?;
    let found = imported(&text).map_err(|error| HookError::Import { path, error })?;
    let mut hooks = Vec::new();
    for hook in found {
        if let HookAction::Tell(to) = &hook.action {
            recipient(to)?;
        }
        let harness = known_harness(&open, Some(hook.harness)).await?;
        hooks.push(new_hook(&open, hook.on, (None, harness, None), hook.action, USUAL_TIMEOUT * 1_000));
    }
    let kept = EventHooks::of(&context.settings, &context.environment)?;
    kept.add(&hooks)?;
    open.mesh.event_hooks_changed().await?;
    context.printer.show(&HooksShape::with_secrets(&hooks, kept.path()))?;
    context.printer.say(&format!("kept in {}", kept.path().display()));
    Ok(Exit::Success)
}

pub(super) async fn remove(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    permission::only_the_user(context, &open, WHAT).await?;
    let kept = EventHooks::of(&context.settings, &context.environment)?;
    let Some(removed) = kept.remove(id)? else { return Err(HookError::Unknown(id.to_owned()).into()) };
    open.mesh.event_hooks_changed().await?;
    context.printer.show(&HookShape::of(&removed))?;
    context.printer.say("removed; what it was doing goes on to its end");
    Ok(Exit::Success)
}

fn action(add: &Add) -> Result<HookAction, HookError> {
    let given = [add.run.is_some(), add.tell.is_some(), add.post.is_some(), add.notify];
    match given.iter().filter(|given| **given).count() {
        0 => return Err(HookError::NoAction),
        1 => {}
        2 => return Err(HookError::SeveralActions("two")),
        _ => return Err(HookError::SeveralActions("more")),
    }
    match add {
        Add { run: Some(command), .. } if command.trim().is_empty() => Err(HookError::EmptyCommand),
        Add { run: Some(command), .. } => Ok(HookAction::Run(command.clone())),
        Add { tell: Some(to), .. } => {
            recipient(to)?;
            Ok(HookAction::Tell(to.clone()))
        }
        Add { post: Some(url), .. } => {
            url.parse::<WebhookUrl>().map_err(|error| HookError::Url(error.to_string()))?;
            Ok(HookAction::Post(url.clone()))
        }
        _ => Ok(HookAction::Notify),
    }
}

fn recipient(to: &str) -> Result<(), HookError> {
    let is_one =
        if ChannelName::is_meant(to) { to.parse::<ChannelName>().is_ok() } else { to.parse::<AgentName>().is_ok() };
    if is_one { Ok(()) } else { Err(HookError::Recipient(to.to_owned())) }
}

/// The whole name of a harness that there is.
async fn known_harness(open: &Open, harness: Option<String>) -> Result<Option<String>, CommandError> {
    match harness {
        Some(harness) => Ok(Some(begin::harness(open, &harness).await?.about().harness.clone())),
        None => Ok(None),
    }
}

fn new_hook(
    open: &Open,
    on: HookTrigger,
    (agent, harness, matches): (Option<AgentName>, Option<String>, Option<HookMatch>),
    action: HookAction,
    timeout: u64,
) -> EventHook {
    let machine = open.machine.as_ref();
    let letter = |byte: &u8| char::from(LETTERS[usize::from(byte & 31)]);
    let secret = matches!(action, HookAction::Post(_)).then(|| new_secret(|| machine.random()));
    let id = machine.random().iter().take(8).map(letter).collect();
    EventHook { id, on, agent, harness, matches, action, timeout, secret, since: machine.now() }
}
