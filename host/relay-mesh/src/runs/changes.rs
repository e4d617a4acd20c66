//! Where a run works, and what it changed there.

use std::path::{Path, PathBuf};

use mesh::ports::runner::Reach;
use mesh::runs::{RunChanges, RunId, RunRecord, Workplace};
use processes::git::{Changes, Git, GitError, Tree};

use super::agent::shown;
use super::{RunFolder, WorkFolder, worktrees};
use crate::context::Context;
use crate::errors::{CommandError, Explain, Failure};
use crate::exit::Exit;

/// The difference that a run made, as `git apply` takes it.
pub(crate) const PATCH: &str = "changes.patch";

/// Git, with this process's own variables.
pub(crate) fn git(context: &Context) -> Git {
    Git::new(context.environment.pairs())
}

impl Explain for GitError {
    fn exit(&self) -> Exit {
        match self {
            GitError::NoRepository(_) | GitError::NoCommit(_) | GitError::NoRevision(_) => Exit::NotFound,
            GitError::Absent(_) | GitError::Failed { .. } | GitError::Slow(_) | GitError::File(_) => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            GitError::Absent(_) => "install git, or put it on the path",
            GitError::NoRepository(_) => {
                "name a repository by `--cwd DIR`, or make one by `git init`; only `relay-mesh run` works without one, by `--here`"
            }
            GitError::NoCommit(_) => {
                "commit something first; only `relay-mesh run` works without a commit, by `--here`"
            }
            GitError::NoRevision(_) => {
                "`git log --oneline --all` shows which commits there are; a shallow clone lacks most"
            }
            GitError::Failed { .. } | GitError::Slow(_) => "try the same with git by hand",
            GitError::File(_) => "see whether the disk is full and the data folder is yours",
        };
        Some(hint.to_owned())
    }
}

/// Decides where a run works. Returns the folder in it, and what to tell. [`worktrees::make`] makes its worktree, if it
/// gets one.
pub(super) async fn workplace(
    git: &Git,
    (place, reach): (WorkFolder, Reach),
    asked: &Path,
    run: &RunFolder,
) -> Result<(Workplace, PathBuf, Vec<String>), CommandError> {
    let wants_worktree = match place {
        WorkFolder::Worktree => true,
        WorkFolder::Here | WorkFolder::Given => false,
        WorkFolder::Usual => reach >= Reach::Edit,
    };
    if !wants_worktree {
        // A run that may change nothing is not asked what it changed.
        let top = if reach >= Reach::Edit { git.top(asked).await.ok() } else { None };
        return Ok((Workplace::Here { top }, asked.to_owned(), Vec::new()));
    }
    worktrees::planned(git, asked, &run.worktree(), run.id).await
}

/// The branch of a run's worktree.
pub(crate) fn branch(id: RunId) -> String {
    format!("relay/{id}")
}

/// How what does not fit is brought into the folder all the same.
pub(crate) fn by_hand(id: RunId) -> String {
    format!("`relay-mesh runs diff {id} | git apply --3way` applies it and marks what conflicts, for you to settle")
}

/// The contents of a run's working copy now; none if it has none, or may change nothing.
pub(crate) async fn tree(git: &Git, record: &RunRecord, run: &RunFolder) -> Result<Option<Tree>, GitError> {
    match record.workplace.changed_top() {
        Some(top) if record.task.reach >= Reach::Edit => git.tree(top, &run.scratch()).await.map(Some),
        Some(_) | None => Ok(None),
    }
}

/// What a run has changed until now. The patch is kept in the run's folder as bytes; a result shows it as text.
pub(crate) async fn changes(
    git: &Git,
    record: &RunRecord,
    run: &RunFolder,
    notes: &mut Vec<String>,
) -> Option<RunChanges> {
    let top = record.workplace.changed_top()?;
    let before = Tree(record.before.clone()?);
    let outcome = async {
        let (after, left_out) = git.tree_and_left_out(top, &run.scratch()).await?;
        Ok::<_, GitError>(Changes { left_out, ..git.changes(top, &run.scratch(), &before, &after).await? })
    };
    let changes = match outcome.await {
        Ok(changes) => changes,
        Err(error) => {
            notes.push(format!("what it changed could not be told: {error}"));
            return None;
        }
    };
    notes.extend(of_left_out(&changes.left_out));
    if let Err(error) = run.write(PATCH, &changes.patch) {
        notes.push(format!("the patch of its changes could not be kept: {error}"));
    }
    let diff = String::from_utf8(changes.patch).unwrap_or_else(|error| {
        notes.push(format!("the difference is not all text; {} has its bytes", run.root.join(PATCH).display()));
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    Some(RunChanges { written: changes.written, deleted: changes.deleted, diff })
}

/// Whether a run worked in a repository, so that it can be told what it changed.
pub(crate) fn can_be_told(record: &RunRecord) -> bool {
    record.workplace.changed_top().is_some() && record.before.is_some()
}

/// The patch of a run that has ended, which is empty if it changed nothing; none if what it changed could not be told.
pub(crate) fn kept_patch(record: &RunRecord, run: &RunFolder) -> Option<Vec<u8>> {
    match run.read(PATCH) {
        Ok(patch) => Some(patch),
        Err(_) if can_be_told(record) => None,
        // It works outside of a repository, or was to look only.
        Err(_) => Some(Vec::new()),
    }
}

/// Git failed when a run ended, so that [`kept_patch`] has none.
pub(crate) fn untold(record: &RunRecord) -> CommandError {
    let hint = match &record.workplace {
        Workplace::Worktree { folder, .. } if folder.exists() => format!("look into its worktree {}", folder.display()),
        Workplace::Worktree { .. } | Workplace::Here { .. } => {
            format!("`relay-mesh runs show {}` has a note that says why", record.id)
        }
    };
    let what = format!("what run {} changed could not be told when it ended", record.id);
    Failure { what, hint: Some(hint), exit: Exit::Failure, source: None }.into()
}

/// What to say of what git could not add.
pub(crate) fn of_left_out(left_out: &[String]) -> Vec<String> {
    left_out.iter().map(|path| format!("git could not add `{path}`, so the difference does not have it")).collect()
}

/// What a run has changed until now, as bytes. It is told with a scratch folder of this process alone, because the run's
/// own is in use.
pub(crate) async fn now(
    git: &Git,
    record: &RunRecord,
    run: &RunFolder,
    notes: &mut Vec<String>,
) -> Result<Vec<u8>, GitError> {
    let (Some(top), Some(before)) = (record.workplace.changed_top(), record.before.clone()) else {
        notes.push("it changes nothing that git could show".to_owned());
        return Ok(Vec::new());
    };
    let changes = difference(git, top, &run.scratch(), &Tree(before)).await?;
    notes.extend(of_left_out(&changes.left_out));
    Ok(changes.patch)
}

/// Whether a worktree holds exactly what its run had changed when it ended, and git could add all of it.
pub(crate) async fn is_as_it_ended(git: &Git, record: &RunRecord, run: &RunFolder, patch: &[u8]) -> bool {
    let (Some(top), Workplace::Worktree { commit, .. }) = (record.workplace.changed_top(), &record.workplace) else {
        return false;
    };
    let tree = Tree(format!("{commit}^{{tree}}"));
    difference(git, top, &run.scratch(), &tree).await.is_ok_and(|now| now.left_out.is_empty() && now.patch == patch)
}

/// Whether all that the worktree of a run holds was applied: a process that is killed after that leaves it.
pub(crate) async fn holds_what_was_applied(git: &Git, record: &RunRecord, run: &RunFolder) -> bool {
    let Some(patch) = record.applied.and_then(|_| kept_patch(record, run)) else { return false };
    is_as_it_ended(git, record, run, &patch).await && nested_within(git, &record.workplace).await.is_none()
}

/// Removes the worktree of a run that was applied, if it holds nothing else. Returns whether it is gone.
pub(crate) async fn remove_if_applied(git: &Git, record: &RunRecord, run: &RunFolder) -> bool {
    holds_what_was_applied(git, record, run).await && remove_applied(git, &record.workplace).await.is_none()
}

/// The difference between a tree and the working copy of now. The tree from before a run lies among the run's own
/// objects.
async fn difference(git: &Git, top: &Path, own: &Path, before: &Tree) -> Result<Changes, GitError> {
    let scratch = tempfile::tempdir().map_err(GitError::File)?;
    let info = scratch.path().join("objects/info");
    let alternates = || {
        std::fs::create_dir_all(&info)?;
        std::fs::write(info.join("alternates"), format!("{}\n", own.join("objects").display()))
    };
    alternates().map_err(GitError::File)?;
    let (after, left_out) = git.tree_and_left_out(top, scratch.path()).await?;
    Ok(Changes { left_out, ..git.changes(top, scratch.path(), before, &after).await? })
}

/// Why a worktree stays although its changes may be elsewhere: a repository within it, of which no patch carries the
/// contents. None if it has none.
pub(crate) async fn nested_within(git: &Git, workplace: &Workplace) -> Option<String> {
    let Workplace::Worktree { folder, .. } = workplace else { return None };
    if !folder.exists() || worktrees::is_unfinished(folder) {
        return None;
    }
    let of = match git.nested(folder).await {
        Ok(nested) if nested.is_empty() => return None,
        Ok(nested) => format!("it holds {}, whose contents no patch carries", named(&nested)),
        Err(error) => format!("what it holds could not be told: {error}"),
    };
    Some(format!("the worktree {} stays: {of}", shown(folder)))
}

fn named(nested: &[String]) -> String {
    let names: Vec<String> = nested.iter().map(|path| format!("`{path}`")).collect();
    let repositories = if nested.len() == 1 { "the repository" } else { "the repositories" };
    format!("{repositories} {}", names.join(", "))
}

/// Removes a worktree whose whole difference was applied. Returns why it stays, if it does.
pub(crate) async fn remove_applied(git: &Git, workplace: &Workplace) -> Option<String> {
    let Workplace::Worktree { top, folder, branch, commit } = workplace else { return None };
    if let Some(stays) = nested_within(git, workplace).await {
        return Some(stays);
    }
    let dropped = git.drop_worktree(top, folder, branch, commit).await;
    dropped.err().map(|error| format!("the worktree {} stays: {error}", shown(folder)))
}

/// Removes a run's worktree if it holds nothing, or was never finished. What cannot be removed now stays for `runs gc`.
pub(crate) async fn remove_if_clean(git: &Git, workplace: &Workplace) -> bool {
    let Workplace::Worktree { top, folder, branch, commit } = workplace else { return true };
    if !folder.exists() && !top.exists() {
        return true;
    }
    let outcome = match worktrees::noted(folder) {
        Some(noted) => worktrees::discard(git, &noted).await,
        None => git.remove_worktree(top, folder, branch, commit).await,
    };
    match outcome {
        Ok(removed) => {
            if !removed {
                tracing::info!(%branch, "a worktree stays: it holds work, or a repository");
            }
            removed
        }
        Err(error) => {
            // Without its repository nobody can tell what it holds.
            tracing::warn!(%error, %branch, "a worktree stays");
            false
        }
    }
}
