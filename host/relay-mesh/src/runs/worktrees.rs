//! The worktree of a run, a pipeline or a driven agent, until it is worked in. It is [`planned`], then recorded, and
//! only then made: whenever a process is killed, the next one finds by the record what there is to remove.
//!
//! While git makes a worktree, a file beside it holds where it is and says that nobody has worked in it. So one that git
//! has not finished is told from one that holds work, although git finds changes in both. Of one that git has finished the
//! file proves nothing, because an earlier version works in a worktree and does not know the file: git is asked.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use mesh::runs::{RunId, Workplace};
use processes::git::{Git, GitError};
use store::Durability;

use super::agent::shown;
use super::changes::branch;
use crate::atomic_write;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::shapes::counted;

/// How the file ends that says that nobody has worked in a worktree.
const UNUSED: &str = "unused";

/// Decides on a worktree of the commit that is checked out. Returns the folder in it that was named, and what to tell.
pub(crate) async fn planned(
    git: &Git,
    asked: &Path,
    folder: &Path,
    id: RunId,
) -> Result<(Workplace, PathBuf, Vec<String>), CommandError> {
    let top = git.top(asked).await?;
    let commit = git.head(&top).await?;
    let status = git.status_by_settings(&top).await?;
    if status.changed > 0 {
        return Err(Failure {
            what: format!(
                "`{}` has {}, which a worktree of its commit does not have",
                shown(&top),
                counted(status.changed, "changed file")
            ),
            hint: Some("commit or stash them, or run it in that very folder by `--here`".to_owned()),
            exit: Exit::Held,
            source: None,
        }
        .into());
    }
    let mut notes = Vec::new();
    if status.untracked > 0 {
        notes.push(format!("{} files that git does not know are not in the run's worktree", status.untracked));
    }
    let (folder, branch) = (folder.to_owned(), branch(id));
    let cwd = folder.join(asked.strip_prefix(&top).unwrap_or(Path::new("")));
    Ok((Workplace::Worktree { top, folder, branch, commit }, cwd, notes))
}

/// Makes the worktree of a workplace that is one, in place of what a killed process had made of it. If it fails, nothing
/// of it is left. `cwd` is the folder in it that stands for the one that was named. The caller has recorded the
/// workplace, and calls [`open_for_work`] before anybody works there.
pub(crate) async fn make(git: &Git, workplace: &Workplace, (asked, cwd): (&Path, &Path)) -> Result<(), CommandError> {
    let Workplace::Worktree { folder, .. } = workplace else { return Ok(()) };
    let is_free = match noted(folder) {
        Some(earlier) => discard(git, &earlier).await?,
        None => !folder.exists(),
    };
    if !is_free {
        // It may hold work: git refuses, and it stays.
        return add(git, workplace, (asked, cwd)).await;
    }
    note(workplace, folder).map_err(GitError::File)?;
    let made = add(git, workplace, (asked, cwd)).await;
    if made.is_err()
        && let Err(error) = discard(git, workplace).await
    {
        tracing::warn!(%error, folder = %folder.display(), "what was made of a worktree stays until the next cleanup");
    }
    made
}

/// On disk before anything of the worktree is, so that no loss of power leaves a part of one that seems to hold work.
fn note(workplace: &Workplace, folder: &Path) -> io::Result<()> {
    let noted = serde_json::to_vec(workplace)?;
    atomic_write::replace(&note_of(folder), &noted, 0o600, Durability::Synced)?;
    sync_folder_of(folder)
}

async fn add(git: &Git, workplace: &Workplace, (asked, cwd): (&Path, &Path)) -> Result<(), CommandError> {
    let Workplace::Worktree { top, folder, branch, commit } = workplace else { return Ok(()) };
    git.add_worktree(top, folder, branch, commit).await?;
    if cwd.is_dir() {
        return Ok(());
    }
    Err(Failure {
        what: format!("`{}` is not in the commit that the worktree would have", shown(asked)),
        hint: Some("commit it first, or run it in that very folder by `--here`".to_owned()),
        exit: Exit::NotFound,
        source: None,
    }
    .into())
}

/// The workplace of a worktree as it was noted before git was called. None if it was opened for work since, or if there is
/// none.
pub(crate) fn noted(folder: &Path) -> Option<Workplace> {
    let noted = serde_json::from_slice::<Workplace>(&fs::read(note_of(folder)).ok()?).ok()?;
    // Whatever the file says, nothing else is removed by it.
    matches!(&noted, Workplace::Worktree { folder: of, .. } if of == folder).then_some(noted)
}

/// Whether git was stopped while it made a worktree, so that nobody can have worked there.
pub(crate) fn is_unfinished(folder: &Path) -> bool {
    noted(folder).is_some() && processes::git::is_unfinished(folder)
}

/// Says that a worktree is worked in from now on: it goes only if git finds nothing in it. Says nothing new of one
/// that is used.
pub(crate) fn open_for_work(workplace: &Workplace) -> Result<(), GitError> {
    let Workplace::Worktree { folder, .. } = workplace else { return Ok(()) };
    match fs::remove_file(note_of(folder)) {
        // On disk before any work is, so that no loss of power brings the file back beside work.
        Ok(()) => sync_folder_of(folder).map_err(GitError::File),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(GitError::File(error)),
    }
}

/// Removes what there is of a worktree that is noted. Returns false, and removes nothing, if it is whole and holds anything.
pub(crate) async fn discard(git: &Git, noted: &Workplace) -> Result<bool, GitError> {
    let Workplace::Worktree { top, folder, branch, commit } = noted else { return Ok(true) };
    if is_unfinished(folder) {
        git.discard_worktree(top, folder, branch, commit).await?;
    } else if !git.remove_worktree(top, folder, branch, commit).await? {
        return Ok(false);
    }
    // The last thing to go: without it nobody would look for the rest.
    open_for_work(noted)?;
    Ok(true)
}

fn sync_folder_of(folder: &Path) -> io::Result<()> {
    folder.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())
}

fn note_of(folder: &Path) -> PathBuf {
    folder.with_extension(UNUSED)
}
