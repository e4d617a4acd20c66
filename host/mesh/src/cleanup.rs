//! Sweeping: what is over and old goes. Nothing live does, and nothing that somebody may still want.

use std::collections::BTreeSet;

use store::{Durability, Position, StoreError, SwapError};

use crate::Wanted;
use crate::agents::Agent;
use crate::agents::presence;
use crate::agents::presence::is_here;
use crate::commands::order;
use crate::commands::{Command, CommandStage, CommandStatus};
use crate::core::Core;
use crate::delivery::invitation;
use crate::messages::address;
use crate::messages::inboxes::Inboxes;
use crate::messages::retention;
use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::reservations;
use crate::reservations::Reservation;
use crate::reservations::repository::Repository;
use crate::reservations::reserve;
use crate::sessions::listeners;
use crate::storage::{keys, records};

/// For how long whoever asked for a command may still read how it ended, in milliseconds.
const RESULT_KEPT: u64 = 3_600_000;

/// What is looked through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Reservations, commands, agents and logs.
    #[default]
    Everything,
    /// Only what has an end of its own: reservations and commands.
    Expired,
}

/// Whether what is found goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// It goes.
    #[default]
    No,
    /// It is only looked at.
    Yes,
}

/// What was, or would be, cleanup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Reservations that have lapsed or were taken.
    pub reservations: Vec<(Repository, Reservation)>,
    /// Commands that have ended or expired an hour ago, and those that were taken long ago and never ended.
    pub commands: Vec<Command>,
    /// Agents of which nothing was heard for very long and for whom nothing waits.
    pub agents: Vec<AgentName>,
    /// Old segments of the event log. Not known where it is only looked.
    pub segments: usize,
}

pub(crate) async fn clean_up(
    core: &Core,
    inboxes: &Inboxes,
    scope: Scope,
    dry_run: DryRun,
    stale: Option<u64>,
) -> Result<Cleanup, StoreError> {
    let mut cleanup = Cleanup {
        reservations: clean_up_reservations(core, dry_run).await?,
        commands: clean_up_commands(core, dry_run).await?,
        ..Cleanup::default()
    };
    if dry_run == DryRun::No {
        invitation::clean_up_invitations(core).await?;
        listeners::clean_up_listeners(core).await?;
    }
    match scope {
        Scope::Expired => {}
        Scope::Everything => {
            cleanup.agents = clean_up_agents(core, inboxes, dry_run, stale.unwrap_or(core.limits.keep)).await?;
            if dry_run == DryRun::No {
                retention::retire_old(core, inboxes).await?;
                cleanup.segments = retire_event_log(core).await?;
            }
        }
    }
    if dry_run == DryRun::No && cleanup != Cleanup::default() {
        let details = serde_json::json!({
            "reservations": cleanup.reservations.len(), "commands": cleanup.commands.len(), "agents": cleanup.agents,
            "segments": cleanup.segments,
        });
        core.event_log.note("deleted", details).await;
    }
    Ok(cleanup)
}

async fn clean_up_reservations(core: &Core, dry_run: DryRun) -> Result<Vec<(Repository, Reservation)>, StoreError> {
    let all = reservations::list::reservations(core, &Wanted { also_over: true, ..Wanted::default() }).await?;
    let all = all.read()?;
    let repositories = all.iter().map(|listed| Repository::named(&listed.repository));
    let mut cleanup = Vec::new();
    for repository in repositories {
        let gone = reserve::change_ledger(core, &repository, |ledger| {
            let gone = ledger.clean_up(core.machine.now());
            (dry_run == DryRun::No && !gone.is_empty(), gone)
        })
        .await?;
        cleanup.extend(gone.into_iter().map(|one| (repository.clone(), one)));
    }
    Ok(cleanup)
}

async fn clean_up_commands(core: &Core, dry_run: DryRun) -> Result<Vec<Command>, StoreError> {
    let now = core.machine.now();
    let mut cleanup = Vec::new();
    for command in order::commands(core, None).await?.into_iter().filter(|command| is_over(core, command, now)) {
        let key = keys::command(command.id);
        let gone = match dry_run {
            DryRun::Yes => true,
            // Looked at again where it is removed: a taker may have been faster.
            DryRun::No => {
                records::update(core.shared.as_ref(), &key, Durability::Process, |old: Option<Command>| match old {
                    Some(old) if is_over(core, &old, now) => (records::Next::Remove, true),
                    Some(_) | None => (records::Next::Keep, false),
                })
                .await?
            }
        };
        if gone {
            cleanup.push(command);
        }
    }
    Ok(cleanup)
}

fn is_over(core: &Core, command: &Command, now: Instant) -> bool {
    match &command.stage {
        CommandStage::Pending { .. } => {
            command.standing(now) == CommandStatus::Expired && now.since(command.expires) >= RESULT_KEPT
        }
        CommandStage::Running { at, .. } => now.since(*at) >= core.limits.keep,
        CommandStage::Done { at, .. } => now.since(*at) >= RESULT_KEPT,
    }
}

/// Removes the records of agents that nobody will miss. Their mail, all of it settled, stays until its
/// segments are old: a message that is stored at this very moment is found by whoever has the name next.
async fn clean_up_agents(
    core: &Core,
    inboxes: &Inboxes,
    dry_run: DryRun,
    stale: u64,
) -> Result<Vec<AgentName>, StoreError> {
    let held = reservations::list::reservations(core, &Wanted::default()).await?;
    let held = held.read()?;
    let holding: BTreeSet<&str> =
        held.iter().flat_map(|listed| &listed.reservations).map(|one| one.owner.as_ref()).collect();
    let now = core.machine.now();
    let asked: BTreeSet<AgentName> = order::commands(core, None)
        .await?
        .into_iter()
        .filter(|command| !command.standing(now).is_final())
        .map(|command| command.to)
        .collect();
    let mut cleanup = Vec::new();
    for name in address::names(core).await? {
        let key = keys::meta(&name);
        let Some((revision, agent)) = records::load::<Agent>(core.shared.as_ref(), &key).await? else { continue };
        // What lives on another machine shows no sign of life here.
        if agent.machine != core.machine.name() || holding.contains(name.as_str()) || asked.contains(&name) {
            continue;
        }
        let seen = presence::seen(core, inboxes, agent).await?;
        let silent = seen.last_heard.is_none_or(|heard| now.since(heard) >= stale);
        if is_here(seen.presence) || !silent || seen.waiting > 0 {
            continue;
        }
        if dry_run == DryRun::No {
            match core.shared.swap(&key, Some(revision), None, Durability::Process).await {
                Ok(_) => {}
                // It has come back just now.
                Err(SwapError::Changed { .. }) => continue,
                Err(SwapError::Store(error)) => return Err(error),
            }
            let rest = [(&core.shared, keys::heartbeat(&name)), (&core.local, keys::work(&name))];
            for (store, key) in rest {
                let gone = |_: Option<serde_json::Value>| (records::Next::Remove, ());
                if store.get(&key).await?.is_some() {
                    records::update(store.as_ref(), &key, Durability::Process, gone).await?;
                }
            }
        }
        cleanup.push(name);
    }
    Ok(cleanup)
}

/// Retires the segments of the event log in which everything is old.
async fn retire_event_log(core: &Core) -> Result<usize, StoreError> {
    let now = core.machine.now();
    let mut from = Position::START;
    loop {
        let batch = core.shared.read(&keys::global(), from, 1 << 20).await?;
        let young = |entry: &&store::Entry| {
            let event: Option<When> = serde_json::from_slice(&entry.bytes).ok();
            event.is_some_and(|event| now.since(event.at) < core.limits.keep)
        };
        if let Some(entry) = batch.entries.iter().find(young) {
            return core.shared.retire(&keys::global(), entry.at).await;
        }
        if batch.at_end || batch.next == from {
            return core.shared.retire(&keys::global(), batch.next).await;
        }
        from = batch.next;
    }
}

/// All that matters here of an event.
#[derive(serde::Deserialize)]
struct When {
    at: Instant,
}
