//! Deleting runs that are over: their files after the time that everything settled is kept, their worktrees only when
//! nothing in them would be lost.

use mesh::DryRun;
use mesh::allowances::still_counts;
use mesh::ports::data_files::Amount;
use mesh::ports::machine::Instant;
use mesh::runs::{RunRecord, Workplace};
use processes::git::Git;

use super::changes::{holds_what_was_applied, remove_if_applied, remove_if_clean};
use super::{RunFolder, Runs, RunsError, worktrees};
use crate::retention::folders;

/// What was deleted, and what stays although it is old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeletedRuns {
    /// Runs and their bytes.
    pub(crate) runs: Amount,
    /// Worktrees that hold work which was never applied.
    pub(crate) kept: Vec<String>,
}

/// Deletes the runs that ended before a time, or only counts them. What an agent may start within a day is counted by the
/// runs of that day, so these stay. What stays is found without the lock of all runs, because no run begins while that is
/// held; each run that is to go is looked at once more with it.
pub(crate) async fn delete_old(
    runs: &Runs,
    git: &Git,
    (before, now): (Instant, Instant),
    dry_run: DryRun,
) -> Result<DeletedRuns, RunsError> {
    let mut deleted = DeletedRuns::default();
    for id in runs.ids().into_iter().filter(|id| id.made() < before) {
        let folder = runs.folder(id);
        let Some(over) = Over::of(&folder, (before, now)) else { continue };
        if let Some(kept) = over.holds_work(git, &folder).await {
            deleted.kept.push(kept);
            continue;
        }
        let _alone = match dry_run {
            DryRun::Yes => None,
            DryRun::No => Some(runs.alone().await?),
        };
        if dry_run == DryRun::Yes || is_given_up(git, &folder, (before, now)).await {
            folders::delete(&folder.root, dry_run, &mut deleted.runs);
        }
    }
    if dry_run == DryRun::No {
        runs.delete_marks_alone(before);
    }
    Ok(deleted)
}

/// A run that nobody needs any more, unless its worktree holds work.
enum Over {
    /// It ended long ago.
    Ended(Box<RunRecord>),
    /// A process was killed while it made or deleted it.
    Unrecorded,
}

impl Over {
    fn of(folder: &RunFolder, (before, now): (Instant, Instant)) -> Option<Over> {
        let record = match folder.record() {
            Ok(record) => record,
            Err(RunsError::Unknown(_)) => return Some(Over::Unrecorded),
            Err(_) => return None,
        };
        let is_old = record.ended.as_ref().is_some_and(|end| end.at < before);
        let is_over = is_old && !still_counts(record.by.as_ref(), record.started, now);
        is_over.then(|| Over::Ended(Box::new(record)))
    }

    async fn holds_work(&self, git: &Git, folder: &RunFolder) -> Option<String> {
        match self {
            Over::Ended(record) => {
                let worktree = holds_work(git, &record.workplace).await?;
                (!holds_what_was_applied(git, record, folder).await).then_some(worktree)
            }
            Over::Unrecorded => folder.worktree().exists().then(|| folder.worktree().display().to_string()),
        }
    }
}

/// Whether a run is still over, and has no worktree any more: one that holds nothing is removed. The caller has the lock of
/// all runs, without which another process may be applying this one.
async fn is_given_up(git: &Git, folder: &RunFolder, times: (Instant, Instant)) -> bool {
    match Over::of(folder, times) {
        Some(Over::Ended(record)) => {
            remove_if_clean(git, &record.workplace).await || remove_if_applied(git, &record, folder).await
        }
        Some(Over::Unrecorded) => !folder.worktree().exists(),
        None => false,
    }
}

/// A worktree, if something in it would be lost. What git cannot tell counts as work: its repository may be on a disk that
/// is not there now, or outside of this container.
pub(crate) async fn holds_work(git: &Git, workplace: &Workplace) -> Option<String> {
    let Workplace::Worktree { folder, .. } = workplace else { return None };
    if !folder.exists() || worktrees::is_unfinished(folder) {
        return None;
    }
    match git.status(folder).await {
        Ok(status) if status.is_clean() => None,
        Ok(_) | Err(_) => Some(folder.display().to_string()),
    }
}
