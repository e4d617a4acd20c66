//! Sweeping: what is over and old goes. Nothing live does, and nothing that somebody may still want.

use std::collections::BTreeSet;

use store::{Durability, Position, StoreError, SwapError};

use crate::Wanted;
use crate::agents::Agent;
use crate::agents::presence;
use crate::agents::presence::is_here;
use crate::commands::order;
use crate::commands::{Command, Stage, Standing};
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
pub enum Broom {
    /// It goes.
    #[default]
    Sweep,
    /// It is only looked at.
    Look,
}

/// What was, or would be, swept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Reservations that have lapsed or were taken.
    pub reservations: Vec<(Repository, Reservation)>,
    /// Commands that have ended or expired an hour ago, and those that were taken long ago and never ended.
    pub commands: Vec<Command>,
    /// Agents of which nothing was heard for very long and for whom nothing waits.
    pub agents: Vec<AgentName>,
    /// Old segments of the diary. Not known where it is only looked.
    pub segments: usize,
}

pub(crate) async fn sweep(
    core: &Core,
    inboxes: &Inboxes,
    scope: Scope,
    broom: Broom,
    stale: Option<u64>,
) -> Result<Swept, StoreError> {
    let mut swept = Swept {
        reservations: sweep_reservations(core, broom).await?,
        commands: sweep_commands(core, broom).await?,
        ..Swept::default()
    };
    if broom == Broom::Sweep {
        invitation::sweep_invitations(core).await?;
        listeners::sweep_listeners(core).await?;
    }
    match scope {
        Scope::Expired => {}
        Scope::Everything => {
            swept.agents = sweep_agents(core, inboxes, broom, stale.unwrap_or(core.limits.keep)).await?;
            if broom == Broom::Sweep {
                retention::retire_old(core, inboxes).await?;
                swept.segments = retire_diary(core).await?;
            }
        }
    }
    if broom == Broom::Sweep && swept != Swept::default() {
        let details = serde_json::json!({
            "reservations": swept.reservations.len(), "commands": swept.commands.len(), "agents": swept.agents,
            "segments": swept.segments,
        });
        core.event_log.note("swept", details).await;
    }
    Ok(swept)
}

async fn sweep_reservations(core: &Core, broom: Broom) -> Result<Vec<(Repository, Reservation)>, StoreError> {
    let all = reservations::list::reservations(core, &Wanted { also_over: true, ..Wanted::default() }).await?;
    let all = all.read()?;
    let repositories = all.iter().map(|listed| Repository::named(&listed.repository));
    let mut swept = Vec::new();
    for repository in repositories {
        let gone = reserve::change_ledger(core, &repository, |ledger| {
            let gone = ledger.sweep(core.machine.now());
            (broom == Broom::Sweep && !gone.is_empty(), gone)
        })
        .await?;
        swept.extend(gone.into_iter().map(|one| (repository.clone(), one)));
    }
    Ok(swept)
}

async fn sweep_commands(core: &Core, broom: Broom) -> Result<Vec<Command>, StoreError> {
    let now = core.machine.now();
    let mut swept = Vec::new();
    for command in order::commands(core, None).await?.into_iter().filter(|command| is_over(core, command, now)) {
        let key = keys::command(command.id);
        let gone = match broom {
            Broom::Look => true,
            // Looked at again where it is removed: a taker may have been faster.
            Broom::Sweep => {
                records::update(core.shared.as_ref(), &key, Durability::Process, |old: Option<Command>| match old {
                    Some(old) if is_over(core, &old, now) => (records::Next::Remove, true),
                    Some(_) | None => (records::Next::Keep, false),
                })
                .await?
            }
        };
        if gone {
            swept.push(command);
        }
    }
    Ok(swept)
}

fn is_over(core: &Core, command: &Command, now: Instant) -> bool {
    match &command.stage {
        Stage::Pending { .. } => {
            command.standing(now) == Standing::Expired && now.since(command.expires) >= RESULT_KEPT
        }
        Stage::Consumed { at, .. } => now.since(*at) >= core.limits.keep,
        Stage::Done { at, .. } => now.since(*at) >= RESULT_KEPT,
    }
}

/// Removes the records of agents that nobody will miss. Their mail, all of it settled, stays until its
/// segments are old: a message that is stored at this very moment is found by whoever has the name next.
async fn sweep_agents(core: &Core, inboxes: &Inboxes, broom: Broom, stale: u64) -> Result<Vec<AgentName>, StoreError> {
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
    let mut swept = Vec::new();
    for name in address::names(core).await? {
        let key = keys::meta(&name);
        let Some((revision, agent)) = records::load::<Agent>(core.shared.as_ref(), &key).await? else { continue };
        // What lives on another machine shows no sign of life here.
        if agent.host != core.machine.host() || holding.contains(name.as_str()) || asked.contains(&name) {
            continue;
        }
        let seen = presence::seen(core, inboxes, agent).await?;
        let silent = seen.last_heard.is_none_or(|heard| now.since(heard) >= stale);
        if is_here(seen.presence) || !silent || seen.waiting > 0 {
            continue;
        }
        if broom == Broom::Sweep {
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
        swept.push(name);
    }
    Ok(swept)
}

/// Retires the segments of the diary in which everything is old.
async fn retire_diary(core: &Core) -> Result<usize, StoreError> {
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
