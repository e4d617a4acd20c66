//! Deleting runs that are over: their files after the time that everything settled is kept, their worktrees only when
//! nothing in them would be lost.

use mesh::DryRun;
use mesh::allowances::still_counts;
use mesh::ports::data_files::Amount;
use mesh::ports::machine::Instant;
use mesh::runs::Workplace;
use processes::git::Git;

use super::changes::remove_if_clean;
use super::{Runs, worktrees};
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
/// runs of that day, so these stay.
pub(crate) async fn delete_old(
    runs: &Runs,
    git: &Git,
    (before, now): (Instant, Instant),
    dry_run: DryRun,
) -> DeletedRuns {
    let mut deleted = DeletedRuns::default();
    let old = runs.ids().into_iter().filter(|id| id.made() < before);
    for (folder, record) in old.filter_map(|id| runs.load(id).ok()) {
        let is_young = record.ended.as_ref().is_none_or(|end| end.at >= before);
        if is_young || still_counts(record.by.as_ref(), record.started, now) {
            continue;
        }
        if let Some(kept) = holds_work(git, &record.workplace).await {
            deleted.kept.push(kept);
            continue;
        }
        if dry_run == DryRun::No && !remove_if_clean(git, &record.workplace).await {
            continue;
        }
        folders::delete(&folder.root, dry_run, &mut deleted.runs);
    }
    for folder in runs.without_record(before) {
        if folder.worktree().exists() {
            deleted.kept.push(folder.worktree().display().to_string());
            continue;
        }
        folders::delete(&folder.root, dry_run, &mut deleted.runs);
    }
    if dry_run == DryRun::No {
        runs.delete_marks_alone(before);
    }
    deleted
}

/// A worktree, if something in it would be lost. What git cannot tell counts as work: its repository may be on a disk that
/// is not there now, or outside of this container.
pub(crate) async fn holds_work(git: &Git, workplace: &Workplace) -> Option<String> {
    let Workplace::Worktree { folder, .. } = workplace else { return None };
    if !folder.exists() || worktrees::unused(folder).is_some() {
        return None;
    }
    match git.status(folder).await {
        Ok(status) if status.is_clean() => None,
        Ok(_) | Err(_) => Some(folder.display().to_string()),
    }
}
