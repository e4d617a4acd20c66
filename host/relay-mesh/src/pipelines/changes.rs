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
    if record.applied.is_some() {
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
    let git = changes::git(context);
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
