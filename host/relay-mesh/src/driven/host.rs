//! The process that drives the agents of a data folder: one per folder, started when an agent is asked for, and gone when
//! none is left. If it is killed, its guards end what it had started, and the next one goes on from the records.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mesh::driven::{DrivenEnd, DrivenId, DrivenRecord};
use mesh::ports::machine::{Life, Machine as _};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{DrivenFolder, MARK, agent};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::signals::Stop;

/// How long to stay when no agent is left: the next is often asked for soon.
const LINGERS: Duration = Duration::from_secs(5);

/// What every driven agent of this process needs.
pub(crate) struct Host {
    pub(crate) context: Context,
    pub(crate) open: Open,
}

/// Drives every agent of the data folder until none is left, or until it is asked to stop. Returns at once if another
/// process does.
pub(crate) async fn run(context: &Context, stop: &mut Stop) -> Result<(), CommandError> {
    let open = context.open()?;
    let Some(_driving) = open.mesh.hold_driving().await? else { return Ok(()) };
    let host = Arc::new(Host { context: context.at(context.workdir.clone()), open });
    sweep(&host.open).await?;
    // Watch before reading, so that no change is missed in between.
    let mut records = host.open.mesh.watch_driven().await?;
    let (changed, changes) = watch::channel(());
    let all = CancellationToken::new();
    let mut agents: JoinSet<DrivenId> = JoinSet::new();
    let mut driven: BTreeSet<DrivenId> = BTreeSet::new();
    loop {
        for record in live(&host.open).await? {
            if driven.insert(record.id) {
                agents.spawn(drive(Arc::clone(&host), record, changes.clone(), all.clone()));
            }
        }
        tokio::select! {
            () = stop.asked() => break,
            changed_now = records.changed() => {
                changed_now?;
                changed.send_replace(());
            }
            Some(ended) = agents.join_next() => match ended {
                Ok(id) => drop(driven.remove(&id)),
                Err(error) => tracing::error!(%error, "an agent is not driven any more"),
            },
            () = tokio::time::sleep(LINGERS), if agents.is_empty() => break,
        }
    }
    all.cancel();
    while agents.join_next().await.is_some() {}
    Ok(())
}

async fn drive(
    host: Arc<Host>,
    record: DrivenRecord,
    changes: watch::Receiver<()>,
    stop: CancellationToken,
) -> DrivenId {
    let id = record.id;
    if let Err(error) = agent::drive(Arc::clone(&host), record, changes, stop).await {
        let why = store::reasons(&error);
        tracing::error!(%id, error = %why, "an agent cannot be driven");
        let end = DrivenEnd { at: host.open.machine.now(), why, meant: false };
        let ended = host.open.mesh.change_driven(id, |record| {
            record.ended.get_or_insert_with(|| end.clone());
        });
        if let Err(error) = ended.await {
            tracing::error!(%id, %error, "the end of an agent could not be noted");
        }
    }
    id
}

async fn live(open: &Open) -> Result<Vec<DrivenRecord>, CommandError> {
    let mut records = open.mesh.driven_agents().await?;
    records.retain(|record| record.ended.is_none());
    Ok(records)
}

/// Ends what a process that drove agents has left: its guards do that, unless they were killed as well.
pub(crate) async fn sweep(open: &Open) -> Result<(), CommandError> {
    let lives = |process| match open.machine.life(process) {
        Life::Runs => true,
        // One of another namespace holds the lock while it drives.
        Life::Ended | Life::Unknown => false,
    };
    let own = open.machine.this_process();
    for record in live(open).await? {
        let Some(mark) = record.mark.clone() else { continue };
        if record.driver.is_some_and(|driver| !driver.is(&own) && lives(driver)) {
            continue;
        }
        processes::end_marked(MARK, &mark);
        open.mesh
            .change_driven(record.id, |record| {
                record.mark = None;
                record.driver = None;
            })
            .await?;
    }
    Ok(())
}

/// Deletes what is kept of agents that ended a week ago.
pub(crate) async fn clean_up(context: &Context, open: &Open) -> Result<usize, CommandError> {
    let old = open.mesh.clean_up_driven().await?;
    for id in &old {
        if let Err(error) = DrivenFolder::of(&context.settings.dir.value, *id).delete() {
            tracing::warn!(%id, %error, "the folder of a driven agent stays");
        }
    }
    Ok(old.len())
}
