//! Cleanup: deletes what is finished and old. Keeps what is live and what an agent may still ask for.

use std::collections::BTreeMap;

use store::{Durability, StoreError};

use crate::agents;
use crate::asks;
use crate::commands::order;
use crate::commands::{Command, CommandStage, CommandStatus};
use crate::core::Core;
use crate::delivery::invitation;
use crate::driven;
use crate::event_hooks;
use crate::messages::inboxes::Inboxes;
use crate::messages::retention;
use crate::names::AgentName;
use crate::ports::data_files::{Amount, DataFiles};
use crate::ports::machine::Instant;
use crate::reservations;
use crate::reservations::Reservation;
use crate::reservations::repository::Repository;
use crate::reservations::reserve;
use crate::sessions::{listeners, record, retention as sessions};
use crate::storage::old::Ages;
use crate::storage::{keys, old, records};
use crate::tool_threads;
use crate::{RepositoryReservations, ReservationFilter};

/// How long the sender of a command can still read its result, in milliseconds.
const RESULT_KEPT: u64 = 3_600_000;

/// What a cleanup covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Reservations, commands, agents and logs.
    #[default]
    Everything,
    /// Only what expires by itself: reservations and commands.
    Expired,
}

/// Whether a cleanup only reports what it would delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// Deletes.
    #[default]
    No,
    /// Only reports.
    Yes,
}

/// What was deleted, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Reservations that expired or were taken over.
    pub reservations: Vec<(Repository, Reservation)>,
    /// Commands an hour after they ended and expired, and those that an agent took long ago and never finished.
    pub commands: Vec<Command>,
    /// Agents that were silent for very long and have no waiting mail.
    pub agents: Vec<AgentName>,
    /// How many old segments of the event log were deleted. A dry run does not count them.
    pub segments: usize,
    /// Everything else, by kind.
    pub tally: Tally,
}

/// A kind of what a cleanup deletes by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordKind {
    /// Records of sessions that are over.
    Sessions,
    /// Wake files of those sessions.
    WakeFiles,
    /// Invitations that expired.
    Invitations,
    /// Records of dead listeners.
    Listeners,
    /// Pauses of agents that have no record any more.
    Pauses,
    /// Questions to the user that have been over for a day.
    Asks,
    /// Driven agents that ended a week ago.
    DrivenAgents,
    /// Threads of tools that nobody has gone on with for a quarter of a year.
    Threads,
    /// Events that hooks were for.
    HookInvocations,
    /// Segments of inboxes.
    Mail,
    /// Segments of receipts.
    Receipts,
    /// Segments of what agents sent.
    Sent,
    /// Segments of the event log.
    Events,
    /// Chains of messages that agents worked on.
    Chains,
    /// Marks of agents of the command line that have no record any more.
    Speakers,
    /// Requests for a notice about agents that have no record any more.
    OfflineNotices,
    /// Notes of folders in which nothing is reserved any more.
    Folders,
}

impl RecordKind {
    /// The kind in output and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            RecordKind::Sessions => "sessions",
            RecordKind::WakeFiles => "wake files",
            RecordKind::Invitations => "invitations",
            RecordKind::Listeners => "listeners",
            RecordKind::Pauses => "pauses",
            RecordKind::Asks => "questions to the user",
            RecordKind::DrivenAgents => "driven agents",
            RecordKind::Threads => "threads of tools",
            RecordKind::HookInvocations => "records of event hooks",
            RecordKind::Mail => "mail segments",
            RecordKind::Receipts => "receipt segments",
            RecordKind::Sent => "sent segments",
            RecordKind::Events => "event log segments",
            RecordKind::Chains => "message chains",
            RecordKind::Speakers => "command line marks",
            RecordKind::OfflineNotices => "offline notices",
            RecordKind::Folders => "notes of folders",
        }
    }
}

/// How much of each kind was deleted, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub amounts: BTreeMap<RecordKind, Amount>,
    /// What a dry run would delete of logs: the files of segments, or on servers the logs whose beginning would go.
    pub segments: Vec<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, kind: RecordKind, amount: Amount) {
        if amount.count > 0 {
            let sum = self.amounts.entry(kind).or_default();
            sum.count += amount.count;
            sum.bytes += amount.bytes;
        }
    }
}

pub(crate) async fn clean_up(
    core: &Core,
    inboxes: &Inboxes,
    (scope, dry_run, stale): (Scope, DryRun, Option<u64>),
    files: &dyn DataFiles,
) -> Result<Cleanup, StoreError> {
    let mut cleanup = Cleanup {
        reservations: clean_up_reservations(core, dry_run).await?,
        commands: clean_up_commands(core, dry_run).await?,
        ..Cleanup::default()
    };
    let tally = &mut cleanup.tally;
    invitation::clean_up_invitations(core, dry_run, tally).await?;
    listeners::clean_up_listeners(core, dry_run, tally).await?;
    asks::retention::clean_up_asks(core, dry_run, tally).await?;
    driven::retention::clean_up_driven(core, (dry_run, files), tally).await?;
    tool_threads::retention::clean_up_threads(core, dry_run, tally).await?;
    event_hooks::retention::clean_up_invocations(core, dry_run, tally).await?;
    match scope {
        Scope::Expired => {}
        Scope::Everything => {
            // Agents first: then the last session of one that goes is nobody's current session.
            cleanup.agents =
                agents::retention::clean_up_agents(core, inboxes, dry_run, stale.unwrap_or(core.limits.keep)).await?;
            sessions::clean_up_sessions(core, &cleanup.agents, (dry_run, files), tally).await?;
            sessions::clean_up_notes(core, dry_run, tally).await?;
            retention::retire_old(core, inboxes, (dry_run, files), tally).await?;
            cleanup.segments = retire_event_log(core, (dry_run, files), tally).await?;
        }
    }
    if dry_run == DryRun::No && cleanup != Cleanup::default() {
        let counts: serde_json::Map<String, serde_json::Value> = cleanup
            .tally
            .amounts
            .iter()
            .map(|(kind, amount)| (kind.as_str().to_owned(), amount.count.into()))
            .collect();
        let details = serde_json::json!({
            "reservations": cleanup.reservations.len(), "commands": cleanup.commands.len(), "agents": cleanup.agents,
            "segments": cleanup.segments, "records": counts,
        });
        core.event_log.note("deleted", details).await;
    }
    Ok(cleanup)
}

async fn clean_up_reservations(core: &Core, dry_run: DryRun) -> Result<Vec<(Repository, Reservation)>, StoreError> {
    let all =
        reservations::list::reservations(core, &ReservationFilter { also_over: true, ..ReservationFilter::default() })
            .await?;
    let mut cleanup = Vec::new();
    for RepositoryReservations { repository, .. } in all {
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
        if another_machine_is_first(core, &command, now).await? {
            continue;
        }
        let key = keys::command(command.id);
        let gone = match dry_run {
            DryRun::Yes => true,
            // Checked again inside the update: another process may have taken the command meanwhile.
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

/// Never before it expires: on servers the request is a part of its own, and could be taken again once it is alone.
fn is_over(core: &Core, command: &Command, now: Instant) -> bool {
    let is_old = match &command.stage {
        CommandStage::Pending { .. } => {
            command.standing(now) == CommandStatus::Expired && now.since(command.expires) >= RESULT_KEPT
        }
        CommandStage::Running { at, .. } => now.since(*at) >= core.limits.keep,
        CommandStage::Done { at, .. } => now.since(*at) >= RESULT_KEPT,
    };
    is_old && now >= command.expires
}

/// Whether another machine deletes its part of a command first: the recipient's, if it has one, because that part
/// counts only as long as the request is there. A machine that has not done so for very long is not waited for.
async fn another_machine_is_first(core: &Core, command: &Command, now: Instant) -> Result<bool, StoreError> {
    let (owner, since) = match &command.stage {
        CommandStage::Pending { waits: None } => (&command.from, command.expires),
        CommandStage::Pending { waits: Some(_) } => (&command.to, command.expires),
        CommandStage::Running { at, .. } | CommandStage::Done { at, .. } => (&command.to, *at),
    };
    if now.since(since) >= core.limits.keep.saturating_mul(2) {
        return Ok(false);
    }
    match record::lives_elsewhere(core, owner).await {
        // Who deletes first is not known. That keeps nothing else.
        Err(error @ StoreError::Damaged { .. }) => {
            tracing::warn!(agent = %owner, %error, "what became of its commands stays");
            Ok(true)
        }
        found => found,
    }
}

/// Deletes the segments of the event log that hold only old events.
async fn retire_event_log(core: &Core, how: (DryRun, &dyn DataFiles), tally: &mut Tally) -> Result<usize, StoreError> {
    let log = keys::global();
    if how.0 == DryRun::No {
        core.shared.index(&log).await?;
    }
    let ages = Ages::of(core.machine.now(), core.limits.keep);
    let old = old::old_part(core.shared.as_ref(), &log, ages, None).await?;
    old::retire(core.shared.as_ref(), (RecordKind::Events, &log), old, how, tally).await
}
