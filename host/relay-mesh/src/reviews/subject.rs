//! The difference that is reviewed.

use std::path::{Path, PathBuf};

use mesh::reviews::{Diff, ReviewRecord, Subject};
use mesh::runs::{RunRecord, Workplace};
use processes::git::{Git, GitError};

use super::ReviewFolder;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::changes::PATCH;
use crate::runs::{RunFolder, Runs};

/// The longest difference that is reviewed, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;

/// The working copy in which reviewers look.
pub(super) async fn top(git: &Git, runs: &Runs, subject: &Subject, folder: &Path) -> Result<PathBuf, CommandError> {
    match subject {
        Subject::Uncommitted | Subject::Base(_) | Subject::Commit(_) => Ok(git.top(folder).await?),
        Subject::Run(id) => {
            let (_, run) = runs.load(*id)?;
            Ok(of_run(&run))
        }
    }
}

/// The working copy with what a run changed: its own while that is there, else the user's.
fn of_run(run: &RunRecord) -> PathBuf {
    match &run.workplace {
        Workplace::Worktree { folder, .. } if folder.is_dir() => folder.clone(),
        Workplace::Worktree { top, .. } => top.clone(),
        Workplace::Here { top } => top.clone().unwrap_or_else(|| run.task.folder.clone()),
    }
}

/// The difference, as git tells it.
pub(super) async fn difference(
    git: &Git,
    runs: &Runs,
    record: &ReviewRecord,
    folder: &ReviewFolder,
) -> Result<Diff, CommandError> {
    let bytes = bytes(git, runs, record, &folder.scratch()).await;
    if let Err(error) = std::fs::remove_dir_all(folder.scratch())
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "the scratch folder of a review stays until it is deleted");
    }
    let bytes = bytes?;
    if bytes.len() > LONGEST {
        return Err(Failure {
            what: format!("the change has {} MB, and {} MB are reviewed at most", bytes.len() >> 20, LONGEST >> 20),
            hint: Some("review it commit by commit: `--commit C`".to_owned()),
            exit: Exit::Usage,
            source: None,
        }
        .into());
    }
    Ok(Diff::parse(&String::from_utf8_lossy(&bytes)))
}

async fn bytes(git: &Git, runs: &Runs, record: &ReviewRecord, scratch: &Path) -> Result<Vec<u8>, CommandError> {
    let top = &record.top;
    let (before, after) = match &record.subject {
        Subject::Uncommitted => (Git::tree_of(&git.head(top).await?), git.tree(top, scratch).await?),
        Subject::Base(base) => {
            let base = git.commit(top, base).await?;
            let parted = git.merge_base(top, &base, &git.head(top).await?).await?;
            (Git::tree_of(&parted), git.tree(top, scratch).await?)
        }
        Subject::Commit(commit) => {
            let commit = git.commit(top, commit).await?;
            std::fs::create_dir_all(scratch.join("objects")).map_err(GitError::File)?;
            (git.before(top, &commit).await?, Git::tree_of(&commit))
        }
        Subject::Run(id) => {
            let (folder, run) = runs.load(*id)?;
            return of_a_run(git, &folder, &run, scratch).await;
        }
    };
    Ok(git.difference(top, scratch, &before, &after).await?)
}

/// What a run changed: as its worktree shows it now, which may have been worked on since; else as it was kept.
async fn of_a_run(git: &Git, folder: &RunFolder, run: &RunRecord, scratch: &Path) -> Result<Vec<u8>, CommandError> {
    if run.ended.is_none() {
        return Err(Failure {
            what: format!("run {} has not ended", run.id),
            hint: Some("wait for its end, or stop it".to_owned()),
            exit: Exit::Held,
            source: None,
        }
        .into());
    }
    match &run.workplace {
        Workplace::Worktree { folder: worktree, commit, .. } if worktree.is_dir() => {
            let after = git.tree(worktree, scratch).await?;
            Ok(git.difference(worktree, scratch, &Git::tree_of(commit), &after).await?)
        }
        Workplace::Worktree { .. } | Workplace::Here { .. } => Ok(folder.read(PATCH).unwrap_or_default()),
    }
}
