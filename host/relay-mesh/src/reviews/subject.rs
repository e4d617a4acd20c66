//! The difference that is reviewed.

use std::path::{Path, PathBuf};

use mesh::reviews::{Diff, ReviewRecord, Subject};
use mesh::runs::{RunRecord, Workplace};
use processes::git::{Git, GitError};

use super::ReviewFolder;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::changes::{kept_patch, of_left_out, untold};
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

/// The difference, as git tells it, and what to tell of what it lacks.
pub(super) async fn difference(
    git: &Git,
    runs: &Runs,
    record: &ReviewRecord,
    folder: &ReviewFolder,
) -> Result<(Diff, Vec<String>), CommandError> {
    let bytes = bytes(git, runs, record, &folder.scratch()).await;
    if let Err(error) = std::fs::remove_dir_all(folder.scratch())
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "the scratch folder of a review stays until it is deleted");
    }
    let (bytes, left_out) = bytes?;
    if bytes.len() > LONGEST {
        return Err(Failure {
            what: format!("the change has {} MB, and {} MB are reviewed at most", bytes.len() >> 20, LONGEST >> 20),
            hint: Some("review it commit by commit: `--commit C`".to_owned()),
            exit: Exit::Usage,
            source: None,
        }
        .into());
    }
    Ok((Diff::parse(&String::from_utf8_lossy(&bytes)), of_left_out(&left_out)))
}

/// The same as bytes, with the paths that git could not add.
async fn bytes(
    git: &Git,
    runs: &Runs,
    record: &ReviewRecord,
    scratch: &Path,
) -> Result<(Vec<u8>, Vec<String>), CommandError> {
    let top = &record.top;
    let (before, (after, left_out)) = match &record.subject {
        Subject::Uncommitted => (Git::tree_of(&git.head(top).await?), git.tree_and_left_out(top, scratch).await?),
        Subject::Base(base) => {
            let base = git.commit(top, base).await?;
            let parted = git.merge_base(top, &base, &git.head(top).await?).await?;
            (Git::tree_of(&parted), git.tree_and_left_out(top, scratch).await?)
        }
        Subject::Commit(commit) => {
            let commit = git.commit(top, commit).await?;
            std::fs::create_dir_all(scratch.join("objects")).map_err(GitError::File)?;
            (git.before(top, &commit).await?, (Git::tree_of(&commit), Vec::new()))
        }
        Subject::Run(id) => {
            let (folder, run) = runs.load(*id)?;
            return of_a_run(git, &folder, &run, scratch).await;
        }
    };
    Ok((git.difference(top, scratch, &before, &after).await?, left_out))
}

/// What a run changed: as its worktree shows it now, which may have been worked on since; else as it was kept.
async fn of_a_run(
    git: &Git,
    folder: &RunFolder,
    run: &RunRecord,
    scratch: &Path,
) -> Result<(Vec<u8>, Vec<String>), CommandError> {
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
            let (after, left_out) = git.tree_and_left_out(worktree, scratch).await?;
            Ok((git.difference(worktree, scratch, &Git::tree_of(commit), &after).await?, left_out))
        }
        Workplace::Worktree { .. } | Workplace::Here { .. } => {
            Ok((kept_patch(run, folder).ok_or_else(|| untold(run))?, Vec::new()))
        }
    }
}
