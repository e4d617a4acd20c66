//! What a pipeline changed, and bringing it into the user's folder.

use std::path::PathBuf;

use mesh::ports::machine::Machine as _;
use mesh::reviews::PipelineRecord;
use mesh::runs::Workplace;
use processes::git::{Changes, Git, GitError};

use super::{PipelineFolder, Pipelines};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::{Runs, applying, changes, settle};

/// What it has changed until now, commits included, and what git could not add.
pub(crate) async fn until_now(
    git: &Git,
    folder: &PipelineFolder,
    record: &PipelineRecord,
) -> Result<Changes, GitError> {
    let top = match record.workplace.changed_top() {
        Some(top) => top.to_owned(),
        None => git.top(&record.folder).await?,
    };
    let scratch = folder.scratch();
    let (after, left_out) = git.tree_and_left_out(&top, &scratch).await?;
    let changes = git.changes(&top, &scratch, &Git::tree_of(&record.commit), &after).await;
    if let Err(error) = std::fs::remove_dir_all(&scratch) {
        tracing::debug!(%error, "the scratch folder of a pipeline stays until it is deleted");
    }
    Ok(Changes { left_out, ..changes? })
}

/// Whether all that the worktree of a pipeline holds was applied: a process that is killed after that leaves it.
pub(super) async fn holds_what_was_applied(git: &Git, folder: &PipelineFolder, record: &PipelineRecord) -> bool {
    let (Some(_), Ok(patch)) = (record.applied, folder.applied()) else { return false };
    let is_it = |now: Changes| now.left_out.is_empty() && now.patch == patch;
    until_now(git, folder, record).await.is_ok_and(is_it)
        && changes::nested_within(git, &record.workplace).await.is_none()
}

/// Removes the worktree of a pipeline that was applied, if it holds nothing else. Returns whether it is gone.
pub(super) async fn remove_if_applied(git: &Git, folder: &PipelineFolder, record: &PipelineRecord) -> bool {
    holds_what_was_applied(git, folder, record).await && changes::remove_applied(git, &record.workplace).await.is_none()
}

fn refused(what: String, hint: &str, exit: Exit) -> CommandError {
    Failure { what, hint: Some(hint.to_owned()), exit, source: None }.into()
}

/// Applies what a pipeline changed to the user's folder: all of it, or nothing. Returns that folder.
pub(crate) async fn apply(context: &Context, open: &Open, id: &str) -> Result<(PipelineRecord, PathBuf), CommandError> {
    let data = &context.settings.dir.value;
    settle::settle_applying(context, &Runs::of(data)).await;
    let (folder, mut record) = Pipelines::of(data).find(id)?;
    let _alone = folder.alone()?;
    let Workplace::Worktree { top, folder: worktree, .. } = record.workplace.clone() else {
        let what = format!("pipeline {} worked in the folder itself", record.id);
        return Err(refused(what, "its changes are there already: `git diff` shows them", Exit::Usage));
    };
    if record.ended.is_none() {
        let what = format!("pipeline {} has not ended", record.id);
        let hint = format!("`relay-mesh pipeline resume {}` goes on with it", record.id);
        return Err(refused(what, &hint, Exit::Held));
    }
    let git = changes::git(context);
    if record.applied.is_some() {
        // The process that had applied it may have been killed before it removed the worktree.
        remove_if_applied(&git, &folder, &record).await;
        let what = format!("pipeline {} was applied", record.id);
        return Err(refused(what, "its changes are in the folder already", Exit::Held));
    }
    let nothing = || {
        let what = format!("pipeline {} changed nothing", record.id);
        refused(what, "there is nothing to apply", Exit::NotFound)
    };
    if !worktree.exists() {
        return Err(nothing());
    }
    let Changes { patch, left_out, .. } = until_now(&git, &folder, &record).await?;
    for note in changes::of_left_out(&left_out) {
        context.printer.say(&note);
    }
    if patch.is_empty() {
        return Err(nothing());
    }
    if let Err(error) = git.fits(&top, &patch).await {
        let what =
            format!("the changes of pipeline {} do not fit `{}`, and nothing was applied", record.id, top.display());
        return Err(CommandError::caused_by(&what, Some(changes::by_hand(record.id)), Exit::Held, error));
    }
    // By it the next command knows a worktree of which all was applied.
    folder.keep_applied(&patch)?;
    let applied = applying::apply(&git, data, record.id, &top, &patch).await?;
    record.applied = Some(open.machine.now());
    folder.keep(&record)?;
    applied.was_noted();
    // All that it held beyond its commit is in the folder now, but for what git could not add.
    let stays = if left_out.is_empty() {
        changes::remove_applied(&git, &record.workplace).await
    } else {
        Some(format!("the worktree {} stays", worktree.display()))
    };
    if let Some(stays) = stays {
        context.printer.say(&stays);
    }
    Ok((record, top))
}
