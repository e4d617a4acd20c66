//! Deleting runs that are over: their files after the time that everything settled is kept, their worktrees only when
//! nothing in them would be lost.

use std::fs;
use std::path::Path;

use mesh::DryRun;
use mesh::ports::data_files::Amount;
use mesh::ports::machine::Instant;
use mesh::runs::{RunRecord, Workplace};
use processes::git::Git;

use super::changes::remove_if_clean;
use super::{RunFolder, Runs};

/// What was deleted, and what stays although it is old.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeletedRuns {
    /// Runs and their bytes.
    pub(crate) runs: Amount,
    /// Worktrees that hold work which was never applied.
    pub(crate) kept: Vec<String>,
}

/// Deletes the runs that ended before a time, or only counts them.
pub(crate) async fn delete_old(runs: &Runs, git: &Git, before: Instant, dry_run: DryRun) -> DeletedRuns {
    let mut deleted = DeletedRuns::default();
    let old = runs.ids().into_iter().filter(|id| id.made() < before);
    for (folder, record) in old.filter_map(|id| runs.load(id).ok()) {
        if record.ended.as_ref().is_none_or(|end| end.at >= before) {
            continue;
        }
        if let Some(kept) = holds_work(git, &record).await {
            deleted.kept.push(kept);
            continue;
        }
        let bytes = size(&folder.root);
        let outcome = match dry_run {
            DryRun::Yes => Ok(()),
            DryRun::No if !remove_if_clean(git, &record.workplace).await => continue,
            DryRun::No => delete(&folder),
        };
        match outcome {
            Ok(()) => deleted.runs.add(bytes),
            Err(error) => tracing::debug!(%error, run = %record.id, "the files of a run stay"),
        }
    }
    deleted
}

/// The worktree of a run, if something in it would be lost.
async fn holds_work(git: &Git, record: &RunRecord) -> Option<String> {
    let Workplace::Worktree { top, folder, .. } = &record.workplace else { return None };
    if !folder.exists() || !top.exists() {
        return None;
    }
    match git.status(folder).await {
        Ok(status) if status.is_clean() => None,
        Ok(_) | Err(_) => Some(folder.display().to_string()),
    }
}

fn delete(folder: &RunFolder) -> std::io::Result<()> {
    folder.delete()
}

/// The bytes of the files below a folder.
pub(crate) fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let found = entry.metadata().ok()?;
            Some(if found.is_dir() { size(&entry.path()) } else { found.len() })
        })
        .sum()
}
