//! What the view shows of the mesh beside conversations, read in one go.

use mesh::ports::machine::Machine as _;
use mesh::runs::RunStage;
use mesh::{MeshStatus, Queued, RepositoryReservations, StuckMail};
use view::live::{Overview, RunRow, StuckRow};
use view::{AgentDetail, AskDetail, CommandDetail, ReservationDetail};

use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::runs::Runs;

/// So many runs are shown.
const RUNS: usize = 50;

/// Reads the mesh. Runs are those that were read last.
pub(super) async fn overview(open: &Open, runs: Vec<RunRow>) -> Result<Overview, CommandError> {
    let mut status = open.mesh.status().await?;
    let now = open.machine.now();
    let (reserved, mut commands) = open.mesh.coordination(&mut status).await?.unwrap_or_default();
    commands.retain(|command| !command.standing(now).is_final());
    let asks = open.mesh.asks().await?;
    let of_repository = |listed: &RepositoryReservations| {
        let repository = listed.repository.as_str().to_owned();
        listed.reservations.iter().map(|one| ReservationDetail::of(&repository, one, now)).collect::<Vec<_>>()
    };
    Ok(Overview {
        now,
        machine: open.machine.name().to_owned(),
        agents: status.agents.iter().map(AgentDetail::from).collect(),
        asks: asks.iter().map(|ask| AskDetail::of(ask, now)).collect(),
        reservations: reserved.iter().flat_map(of_repository).collect(),
        commands: commands.iter().map(|command| CommandDetail::of(command, now)).collect(),
        runs,
        stuck: stuck(&status),
        damaged: status.damaged,
        out_of_reach: status.out_of_reach,
    })
}

/// Mail that goes no further by itself.
fn stuck(status: &MeshStatus) -> Vec<StuckRow> {
    let row = |state: &'static str, mail: &StuckMail| StuckRow {
        key: format!("{state} {} {}", mail.from, mail.to),
        state,
        from: mail.from.to_string(),
        to: mail.to.to_string(),
        messages: mail.messages,
        why: mail.reason.clone(),
    };
    let held = status.held.iter().map(|mail| row("held", mail));
    let undeliverable = status.undeliverable.iter().map(|mail| row("undeliverable", mail));
    held.chain(undeliverable).chain(status.queued.iter().flat_map(of_outbox)).collect()
}

/// A message that waits for the servers, and those of its recipients that it can never be sent to.
fn of_outbox(queued: &Queued) -> Vec<StuckRow> {
    let row = |state: &'static str, to: String, why: String| StuckRow {
        key: format!("{} {state} {to}", queued.id),
        state,
        from: queued.from.to_string(),
        to,
        messages: 1,
        why,
    };
    let waits = queued.refused.clone().unwrap_or_else(|| "the servers cannot be reached".to_owned());
    let waiting = (!queued.to.is_empty()).then(|| row("queued", queued.to.join(", "), waits));
    let returned = queued.returned.iter().map(|(to, why)| row("undeliverable", to.clone(), why.clone()));
    waiting.into_iter().chain(returned).collect()
}

/// The newest runs. One that cannot be read is passed over.
pub(super) fn runs(context: &Context, open: &Open) -> Vec<RunRow> {
    let runs = Runs::of(&context.settings.dir.value);
    let newest = runs.ids().into_iter().take(RUNS).filter_map(|id| runs.load(id).ok());
    let row = |(folder, record): (crate::runs::RunFolder, mesh::runs::RunRecord)| {
        let end = record.ended.as_ref();
        let state = match (folder.stage(&record, open.machine.as_ref()), end) {
            (RunStage::Running, _) => "running",
            (RunStage::Ended, Some(end)) => end.ending.as_str(),
            (RunStage::Ended, None) => "ended",
            (RunStage::Abandoned, _) => "abandoned",
        };
        RunRow {
            id: record.id.to_string(),
            harness: record.harness.clone(),
            state: state.to_owned(),
            about: record.about.clone(),
            why: end.and_then(|end| end.why.clone()),
            started: record.started,
            ended: end.map(|end| end.at),
        }
    };
    newest.map(row).collect()
}
