//! The process that drives the agents of a data folder: one per folder, started when an agent is asked for, and gone when
//! none is left. If it is killed, its guards end what it had started, and the next one goes on from the records.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mesh::allowances::Starts;
use mesh::driven::{DrivenEnd, DrivenId, DrivenRecord, DrivenStage};
use mesh::ports::machine::Machine as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::begin::{self, Begun};
use super::deltas::Deltas;
use super::program::{self, Programs};
use super::{MARK, agent, ending, permission};
use crate::compose::Open;
use crate::config::Allowed;
use crate::context::Context;
use crate::errors::CommandError;
use crate::event_hooks::Carrier;
use crate::server::background;
use crate::signals::Stop;

/// How long to stay when no agent is left: the next is often asked for soon.
const LINGERS: Duration = Duration::from_secs(5);

/// How often, and at which interval, to look whether the lock of a process that was killed is free.
const LOOKS: usize = 40;
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// How often the server looks whether the agents are driven.
const BETWEEN_ROUNDS: Duration = Duration::from_secs(5);
/// How long it may take to end what it has started.
const STOPS: Duration = Duration::from_secs(60);
/// How long an agent rests that cannot be driven, and whose end cannot be noted.
const UNNOTED: Duration = Duration::from_secs(5);

/// What is logged if that fails.
const NOT_RESUMED: &str = "agents that were started are not resumed";

/// What every driven agent of this process needs.
pub(crate) struct Host {
    pub(crate) context: Context,
    pub(crate) open: Arc<Open>,
    /// Where they say what they say.
    pub(super) deltas: Deltas,
    /// The programs that several of them share, and how many may share one.
    pub(super) programs: Programs,
    pub(super) most_on_a_program: usize,
    /// Changes when an agent is asked for a command.
    pub(super) orders: watch::Sender<()>,
}

/// Drives every agent of the data folder until none is left, or until it is asked to stop. Returns at once if another
/// process does.
pub(crate) async fn run(context: &Context, stop: &mut Stop) -> Result<(), CommandError> {
    let open = Arc::new(context.open()?);
    let Some(_driving) = open.mesh.hold_driving().await? else { return Ok(()) };
    let (deltas, all) = (Deltas::new(), CancellationToken::new());
    let offering = tokio::spawn(deltas.clone().offer(context.at(context.workdir.clone()), all.clone()));
    let bounds =
        Allowed::to_start(Starts::Agents, &context.settings, &context.environment).and_then(|all| all.bounds());
    let most_on_a_program = bounds.unwrap_or_default().share;
    let programs = Programs::default();
    let (context_of_all, orders) = (context.at(context.workdir.clone()), watch::Sender::new(()));
    let host = Host { context: context_of_all, open, deltas, programs, most_on_a_program, orders };
    let host = Arc::new(host);
    sweep(&host.open).await?;
    program::clean_up(&context.settings.dir.value);
    // Watch before reading, so that no change is missed in between.
    let mut records = host.open.mesh.watch_driven().await?;
    let mut pauses = host.open.mesh.watch_pauses().await?;
    let mut commands = host.open.mesh.watch_orders().await?;
    let (changed, changes) = watch::channel(());
    let mut agents: JoinSet<DrivenId> = JoinSet::new();
    let mut driven: BTreeSet<DrivenId> = BTreeSet::new();
    let hooks = Carrier::start(context, Arc::clone(&host.open));
    loop {
        // A change of a record that is known is its agent's to see: to read them all at each would cost the more, the more
        // there are.
        if host.open.mesh.driven_ids().await?.iter().any(|id| !driven.contains(id)) {
            for record in host.open.mesh.driven_agents().await? {
                if driven.insert(record.id) {
                    agents.spawn(drive(Arc::clone(&host), record, changes.clone(), all.clone()));
                }
            }
        }
        tokio::select! {
            () = stop.asked() => break,
            changed_now = records.changed() => changed_now?,
            paused = pauses.changed() => {
                paused?;
                changed.send_replace(());
            }
            ordered = commands.changed() => {
                ordered?;
                host.orders.send_replace(());
                changed.send_replace(());
            }
            Some(ended) = agents.join_next() => match ended {
                Ok(id) => drop(driven.remove(&id)),
                Err(error) => tracing::error!(%error, "an agent is not driven any more"),
            },
            () = tokio::time::sleep(LINGERS), if agents.is_empty() => if !hooks.is_busy() { break },
        }
    }
    all.cancel();
    while agents.join_next().await.is_some() {}
    hooks.finish().await;
    if let Err(error) = offering.await {
        tracing::error!(%error, "offering what agents say ended badly");
    }
    Ok(())
}

pub(super) async fn drive(
    host: Arc<Host>,
    record: DrivenRecord,
    changes: watch::Receiver<()>,
    stop: CancellationToken,
) -> DrivenId {
    let (id, session) = (record.id, agent::session_of(&record));
    if let Err(error) = agent::drive(Arc::clone(&host), record.clone(), changes, stop).await {
        let why = store::reasons(&error);
        tracing::error!(%id, error = %why, "an agent cannot be driven");
        // Before its record says so, which is looked at no more from then on.
        if let Err(error) = ending::ends_undriven(&host, &record, &why).await {
            tracing::warn!(%id, error = %store::reasons(&error), "the end of an agent could not be told");
        }
        if let Err(error) = host.open.mesh.run_leaves(&session).await {
            tracing::warn!(%id, %error, "the end of an agent's session could not be noted");
        }
        let end = DrivenEnd { at: host.open.machine.now(), why, meant: false };
        let ended = host.open.mesh.change_driven(id, |record| {
            record.ended.get_or_insert_with(|| end.clone());
        });
        if let Err(error) = ended.await {
            tracing::error!(%id, %error, "the end of an agent could not be noted");
            // It is begun anew, which is of no use at once.
            tokio::time::sleep(UNNOTED).await;
        }
    }
    id
}

/// Has agents gone on with whose process was killed, unless the user has stopped them. Costs one look at a folder where
/// there are none. Errors are only logged: the command that was asked for has done its work.
pub(crate) async fn go_on(context: &Context) {
    let folder = context.settings.dir.value.join("driven");
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        match context.open() {
            Ok(open) => look_after(context, &open).await,
            Err(error) => tracing::warn!(error = %store::reasons(&error), "{NOT_RESUMED}"),
        }
    }
}

/// The same, with stores that are open. Agents that the user has agreed to are begun, if that was cut off.
pub(crate) async fn look_after(context: &Context, open: &Open) {
    if let Err(error) = permission::begin_agreed(context, open).await {
        tracing::warn!(error = %store::reasons(&error), "agents that the user has agreed to are not started");
    }
    if let Err(error) = go_on_if_resting(context, open).await {
        tracing::warn!(error = %store::reasons(&error), "{NOT_RESUMED}");
    }
}

async fn go_on_if_resting(context: &Context, open: &Open) -> Result<(), CommandError> {
    let rests = |record: &DrivenRecord| record.stage(|driver| open.machine.runs(driver)) == DrivenStage::Resting;
    if !open.mesh.driven_agents().await?.iter().any(rests) || !open.mesh.is_driving_wanted().await? {
        return Ok(());
    }
    sweep(open).await?;
    // The lock of a process that has just been killed is free a moment after its end.
    for _ in 0..LOOKS {
        if begin::ensure_host(context, open).await? == Begun::Now {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
        if !open.mesh.driven_agents().await?.iter().any(rests) {
            return Ok(());
        }
    }
    Ok(())
}

/// Has agents gone on with for as long as the server runs.
pub(crate) async fn keep_going(context: &Context, open: Arc<Open>, stop: CancellationToken) {
    if let Err(error) = open.mesh.want_driving(true).await {
        tracing::warn!(%error, "agents that were started rest until something is asked of them");
    }
    while !stop.is_cancelled() {
        look_after(context, &open).await;
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(BETWEEN_ROUNDS) => {}
        }
    }
}

/// Stops the process that drives the agents, with everything that it has started. Returns how many agents rest.
pub(crate) async fn stop(open: &Open) -> Result<usize, CommandError> {
    let resting = open.mesh.driven_agents().await?;
    if resting.is_empty() {
        return Ok(0);
    }
    open.mesh.want_driving(false).await?;
    for driver in resting.iter().filter_map(|record| record.driver).filter(|driver| open.machine.runs(*driver)) {
        background::end(driver, STOPS, open.machine.as_ref()).await?;
    }
    sweep(open).await?;
    Ok(resting.len())
}

/// Ends what a process that drove agents has left: its guards do that, unless they were killed as well.
pub(crate) async fn sweep(open: &Open) -> Result<(), CommandError> {
    let own = open.machine.this_process();
    for record in open.mesh.driven_agents().await? {
        let marks: Vec<String> = record.mark.iter().chain(&record.program_mark).cloned().collect();
        if marks.is_empty() {
            continue;
        }
        // One of another namespace, of which that is not known, holds the lock while it drives.
        if record.driver.is_some_and(|driver| !driver.is(&own) && open.machine.runs(driver)) {
            continue;
        }
        for mark in &marks {
            processes::end_marked(MARK, mark);
        }
        open.mesh
            .change_driven(record.id, |record| {
                record.mark = None;
                record.program_mark = None;
                record.socket = None;
                record.driver = None;
            })
            .await?;
    }
    Ok(())
}
