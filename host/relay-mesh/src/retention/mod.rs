//! The cleanup of a data folder and its mesh: what `gc` does, the server once a day, and a process that an ordinary
//! command leaves behind once a day where no server runs.
//!
//! A run that is killed loses nothing: each thing is deleted by itself, after everything that refers to it, and the next
//! run finds the rest.

pub(crate) mod daily;
mod data_files;
pub(crate) mod folders;
mod left_over;

use std::time::{Duration, Instant, SystemTime};

use adapters::LeftByAdapters;
use mesh::ports::data_files::Amount;
use mesh::ports::machine::Machine as _;
use mesh::{Cleanup, DryRun, Scope};
use processes::git::Git;
use store::{Hold, Key, StoreError};

use crate::compose::Open;
use crate::config::Settings;
use crate::driven;
use crate::environment::Environment;
use crate::pipelines::Pipelines;
use crate::reviews::Reviews;
use crate::runs::Runs;
use crate::runs::retention::{DeletedRuns, delete_old};
use crate::server::background;
use data_files::DataFolder;
pub(crate) use left_over::DeletedFiles;

/// How often to look whether another cleanup is done.
const LOOK: Duration = Duration::from_millis(20);

/// What one cleanup deleted, or would.
#[derive(Debug, Default)]
pub(crate) struct CleanedUp {
    pub(crate) mesh: Cleanup,
    pub(crate) files: DeletedFiles,
    pub(crate) adapters: LeftByAdapters,
    /// Runs that ended long ago, and the worktrees of whatever kind that hold work.
    pub(crate) runs: DeletedRuns,
    pub(crate) reviews: Amount,
    pub(crate) pipelines: Amount,
    /// Folders of driven agents that have no record any more.
    pub(crate) driven: Amount,
}

/// Held by the one cleanup of a data folder; none if another one still runs after `patience`.
pub(crate) async fn turn(open: &Open, patience: Duration) -> Result<Option<Box<dyn Hold>>, StoreError> {
    let key: Key = "cleanup".parse().expect("a constant of this file is a key");
    let until = Instant::now() + patience;
    loop {
        match open.store.hold(&key).await? {
            None if Instant::now() < until => tokio::time::sleep(LOOK).await,
            outcome => return Ok(outcome),
        }
    }
}

/// Deletes what is over, or only counts it.
pub(crate) async fn clean_up(
    open: &Open,
    settings: &Settings,
    (scope, dry_run, stale): (Scope, DryRun, Option<u64>),
) -> Result<CleanedUp, StoreError> {
    let folder = DataFolder::new(&settings.dir.value, &settings.shared.value);
    let at = open.machine.now();
    let before = mesh::ports::machine::Instant(at.0.saturating_sub(settings.keep.value));
    let git = Git::new(Environment::of_this_process().pairs());
    // Before their records.
    let mut kept = driven::folder::remove_worktrees(open, &git, before, dry_run).await?;
    let mesh = open.mesh.clean_up_in(scope, dry_run, stale, &folder).await?;
    if scope == Scope::Expired {
        return Ok(CleanedUp { mesh, ..CleanedUp::default() });
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(at.0);
    let keep = Duration::from_millis(settings.keep.value);
    let files = left_over::delete(&folder, keep, now, dry_run);
    if dry_run == DryRun::No
        && let Err(error) = background::rotate_log(&folder.root)
    {
        tracing::debug!(%error, "the server's log stays as long as it is");
    }
    // An adapter that is away for a while, as one in a folder that another shell names, keeps what it noted for longer.
    let longer = keep.max(Duration::from_millis(settings.expire_after.value));
    let adapters = open.adapters.clean_up(&folder.root, (longer, now), dry_run).await?;
    let runs = Runs::of(&folder.root);
    let mut runs = delete_old(&runs, &git, (before, at), dry_run).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "old runs stay until the next cleanup");
        DeletedRuns::default()
    });
    let (reviews, pipelines) = (Reviews::of(&folder.root), Pipelines::of(&folder.root));
    let reviews = reviews.delete_old(before, open.machine.as_ref(), dry_run);
    let pipelines = pipelines.delete_old(&git, before, open.machine.as_ref(), (dry_run, &mut kept)).await;
    let driven = driven::folder::clean_up(&settings.dir.value, open, &git, (dry_run, &mut kept)).await?;
    runs.kept.append(&mut kept);
    Ok(CleanedUp { mesh, files, adapters, runs, reviews, pipelines, driven })
}
