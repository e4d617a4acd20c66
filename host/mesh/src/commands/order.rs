//! Requesting, taking and finishing commands.

use std::time::Duration;

use store::{Durability, StoreError, SwapError};

use crate::AddressError;
use crate::agents::presence;
use crate::agents::remote_cache::RemoteCache;
use crate::commands::record::HANDED_OVER_WITHIN;
use crate::commands::{
    COMMAND_TTL, Command, CommandName, CommandStage, CommandStatus, Ended, LONGEST_ARGUMENTS, LONGEST_RESULT, Run,
};
use crate::core::Core;
use crate::delivery::chain;
use crate::delivery::loop_guard::next_trace;
use crate::messages::address;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::reservations::LONGEST_TTL;
use crate::sessions::{Principal, Transport};
use crate::storage::keys;
use crate::storage::records::{self, Next};

/// A request to run a command.
#[derive(Clone, Debug)]
pub struct Order {
    /// The address of the agent that shall run it.
    pub to: String,
    pub command: CommandName,
    pub arguments: Vec<String>,
    /// How long it may wait to be taken, in milliseconds; by default an hour.
    pub ttl: Option<u64>,
}

/// Why a command could not be requested.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The address names no agent.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The arguments are too long.
    #[error("the arguments have {0} bytes and may have {LONGEST_ARGUMENTS}")]
    TooLong(usize),
    /// The time to live is below a second or above a week.
    #[error("a command can wait between a second and a week to be taken")]
    Ttl,
    /// The store failed.
    #[error("the command could not be stored")]
    Store(#[from] StoreError),
}

/// Why no command was taken.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The store failed.
    #[error("the commands could not be read or changed")]
    Store(#[from] StoreError),
}

/// Why a command could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// There is no such command for this agent.
    #[error("you have no command `{0}`")]
    Unknown(MessageId),
    /// The command was not taken.
    #[error("command `{0}` has not been taken")]
    NotTaken(MessageId),
    /// The harness runs the command and reports its result itself.
    #[error("command `{id}` is being run by {by}, which reports the result itself")]
    Runs {
        /// The command's id.
        id: MessageId,
        /// The means that runs it.
        by: String,
    },
    /// The command already has a result, which is final.
    #[error("command `{0}` has already ended")]
    Ended(MessageId),
    /// The result is too long.
    #[error("the result has {0} bytes and may have {LONGEST_RESULT}")]
    TooLong(usize),
    /// The store failed.
    #[error("the command could not be stored")]
    Store(#[from] StoreError),
}

pub(crate) async fn order(
    core: &Core,
    remote: &RemoteCache,
    caller: &Principal,
    order: Order,
) -> Result<Command, OrderError> {
    let from = match (caller.agent(), caller.transport) {
        (Some(agent), _) => agent.clone(),
        (None, Transport::CommandLine) => AgentName::shell(),
        (None, Transport::Stdio | Transport::Http) => return Err(OrderError::NotRegistered),
    };
    let bytes = order.arguments.iter().map(String::len).sum();
    if bytes > LONGEST_ARGUMENTS {
        return Err(OrderError::TooLong(bytes));
    }
    let ttl = order.ttl.unwrap_or(COMMAND_TTL);
    if !(1_000..=LONGEST_TTL).contains(&ttl) {
        return Err(OrderError::Ttl);
    }
    let to = address::resolve(core, remote, &order.to, caller.agent()).await?;
    let now = core.machine.now();
    let id = core.new_id(now);
    let working_on = if from.is_shell() { None } else { chain::working_on(core, &from).await? };
    let command = Command {
        id,
        from,
        to,
        command: order.command,
        arguments: order.arguments,
        trace: Some(next_trace(id, working_on)),
        created: now,
        expires: now.plus(ttl),
        stage: CommandStage::Pending { waits: None },
    };
    let value = records::json(&command);
    match core.shared.swap(&keys::command(command.id), None, Some(&value), Durability::Synced).await {
        Ok(_) => {}
        Err(SwapError::Store(error)) => return Err(error.into()),
        Err(SwapError::Changed { .. }) => unreachable!("no two ids are the same"),
    }
    let Command { id, from, to, command: name, .. } = &command;
    core.event_log.note("commanded", serde_json::json!({ "id": id, "from": from, "to": to, "command": name })).await;
    Ok(command)
}

pub(crate) async fn take_command(core: &Core, caller: &Principal) -> Result<Option<Command>, TakeError> {
    let agent = caller.agent().ok_or(TakeError::NotRegistered)?.clone();
    presence::beat(core, &agent).await;
    for waiting in commands(core, Some(&agent)).await? {
        if waiting.standing(core.machine.now()) != CommandStatus::Pending {
            continue;
        }
        let now = core.machine.now();
        let key = keys::command(waiting.id);
        // Synced before returning: otherwise a power loss could let two callers take it.
        let taken = records::update(core.shared.as_ref(), &key, Durability::Synced, |old: Option<Command>| {
            match old.filter(|old| old.standing(now) == CommandStatus::Pending) {
                None => (Next::Keep, None),
                Some(mut command) => {
                    let handed_over_by = Some(now.plus(HANDED_OVER_WITHIN));
                    command.stage = CommandStage::Running { at: now, run: None, handed_over_by };
                    (Next::Put(command.clone()), Some(command))
                }
            }
        })
        .await?;
        if let Some(command) = taken {
            core.event_log.note("command-taken", serde_json::json!({ "id": command.id, "agent": agent })).await;
            return Ok(Some(command));
        }
    }
    Ok(None)
}

/// Notes that a command which was taken has reached its taker.
pub(crate) async fn confirm_command(core: &Core, id: MessageId) -> Result<(), TakeError> {
    change_unconfirmed(core, id, |at| CommandStage::Running { at, run: None, handed_over_by: None }).await
}

/// Lets a command that did not reach its taker be taken again.
pub(crate) async fn give_command_back(core: &Core, id: MessageId) -> Result<(), TakeError> {
    change_unconfirmed(core, id, |_| CommandStage::Pending { waits: None }).await
}

async fn change_unconfirmed(
    core: &Core,
    id: MessageId,
    next: impl Fn(Instant) -> CommandStage + Send + Sync,
) -> Result<(), TakeError> {
    let now = core.machine.now();
    let change =
        |old: Option<Command>| match old {
            Some(
                command @ Command { stage: CommandStage::Running { at, run: None, handed_over_by: Some(by) }, .. },
            ) if now < by => (Next::Put(Command { stage: next(at), ..command }), ()),
            Some(_) | None => (Next::Keep, ()),
        };
    Ok(records::update(core.shared.as_ref(), &keys::command(id), Durability::Synced, change).await?)
}

pub(crate) async fn command_waits(core: &Core, caller: &Principal) -> Result<(), TakeError> {
    let agent = caller.agent().ok_or(TakeError::NotRegistered)?;
    // Watch before reading, so that no change in between is lost.
    let mut watch = core.shared.watch(&[keys::commands()]).await?;
    loop {
        let now = core.machine.now();
        if commands(core, Some(agent)).await?.iter().any(|command| command.standing(now) == CommandStatus::Pending) {
            return Ok(());
        }
        watch.changed().await?;
    }
}

pub(crate) async fn finish_command(
    core: &Core,
    caller: &Principal,
    id: MessageId,
    ended: Ended,
    result: &str,
) -> Result<Command, FinishError> {
    let agent = caller.agent().ok_or(FinishError::NotRegistered)?.clone();
    if result.len() > LONGEST_RESULT {
        return Err(FinishError::TooLong(result.len()));
    }
    let now = core.machine.now();
    let key = keys::command(id);
    let finished = records::update(core.shared.as_ref(), &key, Durability::Synced, |old: Option<Command>| {
        let Some(mut command) = old.filter(|old| old.to == agent) else {
            return (Next::Keep, Err(FinishError::Unknown(id)));
        };
        match command.stage {
            CommandStage::Pending { .. } => (Next::Keep, Err(FinishError::NotTaken(id))),
            CommandStage::Done { .. } => (Next::Keep, Err(FinishError::Ended(id))),
            CommandStage::Running { run: Some(Run { by, until, .. }), .. } if now < until => {
                (Next::Keep, Err(FinishError::Runs { id, by }))
            }
            CommandStage::Running { run, .. } => {
                command.stage = CommandStage::Done { at: now, ended, result: result.to_owned(), run };
                (Next::Put(command.clone()), Ok(command))
            }
        }
    })
    .await??;
    presence::beat(core, &agent).await;
    core.event_log.note("command-done", serde_json::json!({ "id": id, "agent": agent, "ended": ended })).await;
    Ok(finished)
}

pub(crate) async fn command(core: &Core, id: MessageId) -> Result<Option<Command>, StoreError> {
    let found = records::load::<Command>(core.shared.as_ref(), &keys::command(id)).await?;
    Ok(found.map(|(_, command)| command))
}

pub(crate) async fn commands(core: &Core, to: Option<&AgentName>) -> Result<Vec<Command>, StoreError> {
    let mut commands = Vec::new();
    for key in core.shared.list(&keys::commands()).await? {
        let command = match records::load::<Command>(core.shared.as_ref(), &key).await {
            Ok(found) => found.map(|(_, command)| command),
            // A damaged record must hide only its own command.
            Err(error @ StoreError::Damaged { .. }) => {
                tracing::warn!(%key, %error, "a damaged command is skipped");
                None
            }
            Err(error) => return Err(error),
        };
        commands.extend(command.filter(|command| to.is_none_or(|to| command.to == *to)));
    }
    commands.sort_by_key(|command| command.id);
    Ok(commands)
}

pub(crate) async fn command_news(
    core: &Core,
    id: MessageId,
    known: Option<&str>,
) -> Result<Option<String>, StoreError> {
    let key = keys::command(id);
    // Watch before reading, so that no change in between is lost.
    let mut watch = core.shared.watch(std::slice::from_ref(&key)).await?;
    loop {
        let command = self::command(core, id).await?;
        let is_taken = command.as_ref().is_some_and(|command| !matches!(command.stage, CommandStage::Pending { .. }));
        let waits = command.as_ref().and_then(|command| command.waits()).map(str::to_owned);
        // The known reason stays valid until the runner writes another one.
        if waits.as_deref() != known && (waits.is_some() || is_taken) {
            return Ok(waits);
        }
        watch.changed().await?;
    }
}

pub(crate) async fn command_ended(core: &Core, id: MessageId) -> Result<Option<Command>, StoreError> {
    let key = keys::command(id);
    // Watch before reading, so that no change in between is lost.
    let mut watch = core.shared.watch(std::slice::from_ref(&key)).await?;
    loop {
        let Some((_, command)) = records::load::<Command>(core.shared.as_ref(), &key).await? else {
            return Ok(None);
        };
        let now = core.machine.now();
        match command.standing(now) {
            CommandStatus::Expired | CommandStatus::Unknown | CommandStatus::Done | CommandStatus::Failed => {
                return Ok(Some(command));
            }
            CommandStatus::Pending | CommandStatus::Running => {}
        }
        // Expiry changes nothing in the store, so a timer waits for it.
        let time_is_up = async {
            match command.ends_by() {
                Some(end) => tokio::time::sleep(Duration::from_millis(end.since(now).max(1))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = watch.changed() => changed?,
            () = time_is_up => {}
        }
    }
}
