//! Changing something about runs: stop, diff, apply, gc.

use mesh::DryRun;
use mesh::ports::machine::{Instant, Machine as _};
use mesh::ports::runner::Reach;
use mesh::runs::{RunStage, Workplace};

use super::kept::{self, Kept};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::pipelines;
use crate::reviews;
use crate::runs::changes;
use crate::runs::{self, Runs, applying, retention, settle};
use crate::shapes::counted;
use crate::shapes::reviews::{AppliedPipeline, AppliedSuggestion, PipelineLine, ReviewLine};
use crate::shapes::runs::{AppliedShape, DeletedRunsShape, RunLine};

/// Ends a run, a review or a pipeline, and returns once its result is there.
pub(super) async fn stop(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let data = &context.settings.dir.value;
    match kept::find(data, id)? {
        Kept::Review(folder, _) => {
            let record = reviews::stop::stop(context, &open, &folder).await?;
            context.printer.show(&ReviewLine::of(&record))?;
        }
        Kept::Pipeline(folder, _) => {
            let record = pipelines::stop::stop(context, &open, &folder).await?;
            context.printer.show(&PipelineLine::of(&record, false, context.named_folder()))?;
        }
        Kept::Run(folder, record) => {
            let had_ended = folder.stage(&record, open.machine.as_ref()) == RunStage::Ended;
            if had_ended {
                context.printer.say("it had ended");
            }
            let record = runs::stop::stop(context, &open, &Runs::of(data), &folder).await?;
            context.printer.show(&RunLine::of(&record, RunStage::Ended))?;
        }
    }
    Ok(Exit::Success)
}

/// Prints the patch of a run: as it was kept, or of now while it runs. Of a pipeline, that of now.
pub(super) async fn diff(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let data = &context.settings.dir.value;
    let runs = Runs::of(data);
    settle::settle(context, &open, &runs).await;
    if let Kept::Pipeline(folder, record) = kept::find(data, id)? {
        let changes = pipelines::until_now(&changes::git(context), &folder, &record).await?;
        for note in changes::of_left_out(&changes.left_out) {
            context.printer.say(&note);
        }
        if changes.patch.is_empty() {
            context.printer.say("it changed nothing that git could show");
        }
        context.printer.bytes(&changes.patch)?;
        return Ok(Exit::Success);
    }
    let (folder, record) = runs.find(id)?;
    if record.ended.is_some() {
        let patch = changes::kept_patch(&record, &folder).ok_or_else(|| changes::untold(&record))?;
        if patch.is_empty() {
            context.printer.say("it changed nothing that git could show");
        }
        context.printer.bytes(&patch)?;
        return Ok(Exit::Success);
    }
    let mut notes = Vec::new();
    let changes = changes::now(&changes::git(context), &record, &folder, &mut notes).await?;
    for note in notes {
        context.printer.say(&note);
    }
    context.printer.bytes(&changes)?;
    Ok(Exit::Success)
}

/// Applies what a run changed to the working copy that it was started for. All of it or nothing.
pub(super) async fn apply(id: &str, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let data = &context.settings.dir.value;
    let runs = Runs::of(data);
    settle::settle(context, &open, &runs).await;
    let refused = |what: String, hint: &str, exit| -> CommandError {
        Failure { what, hint: Some(hint.to_owned()), exit, source: None }.into()
    };
    match kept::find(data, id)? {
        Kept::Pipeline(..) => return apply_pipeline(context, &open, id).await,
        Kept::Review(_, record) => {
            let what = format!("{} is a review, which changed nothing", record.id);
            return Err(refused(what, "name one of its findings: `relay-mesh runs apply REVIEW FINDING`", Exit::Usage));
        }
        Kept::Run(..) => {}
    }
    // Two that apply one run are told apart here.
    let _alone = runs.alone().await?;
    let (folder, mut record) = runs.find(id)?;
    if record.ended.is_none() {
        return Err(refused(format!("run {} has not ended", record.id), "wait for its end, or stop it", Exit::Held));
    }
    let git = changes::git(context);
    if let Some(at) = record.applied {
        // The process that had applied it may have been killed before it removed the worktree.
        changes::remove_if_applied(&git, &record, &folder).await;
        let what = format!("run {} was applied at {}", record.id, crate::shapes::rfc3339(at));
        return Err(refused(what, "its changes are in the folder already", Exit::Held));
    }
    if record.task.reach == Reach::Look {
        let what = format!("run {} was to look only", record.id);
        return Err(refused(what, "it changed nothing, so there is nothing to apply", Exit::NotFound));
    }
    let Workplace::Worktree { top, .. } = record.workplace.clone() else {
        let what = format!("run {} worked in the folder itself", record.id);
        return Err(refused(what, "its changes are there already: `git diff` shows them", Exit::Usage));
    };
    let patch = changes::kept_patch(&record, &folder).ok_or_else(|| changes::untold(&record))?;
    if patch.is_empty() {
        return Err(refused(format!("run {} changed nothing", record.id), "there is nothing to apply", Exit::NotFound));
    }
    if let Err(error) = git.fits(&top, &patch).await {
        return Err(CommandError::caused_by(
            &format!("the changes of run {} do not fit `{}`, and nothing was applied", record.id, top.display()),
            Some(changes::by_hand(record.id)),
            Exit::Held,
            error,
        ));
    }
    let applied = applying::apply(&git, data, record.id, &top, &patch).await?;
    record.applied = Some(open.machine.now());
    folder.keep(&record)?;
    applied.was_noted();
    // All that the worktree held beyond its commit is in the folder now, unless somebody worked on in it.
    let mut removed = changes::is_as_it_ended(&git, &record, &folder, &patch).await;
    if removed && let Some(stays) = changes::remove_applied(&git, &record.workplace).await {
        context.printer.say(&stays);
        removed = false;
    }
    context.printer.show(&AppliedShape::of(&record, &top, removed))?;
    Ok(Exit::Success)
}

/// Applies what a pipeline changed.
pub(crate) async fn apply_pipeline(context: &Context, open: &Open, id: &str) -> Result<Exit, CommandError> {
    let (record, top) = pipelines::apply(context, open, id).await?;
    context.printer.show(&AppliedPipeline { pipeline: record.id.to_string(), folder: top.display().to_string() })?;
    Ok(Exit::Success)
}

/// Applies what a finding of a review suggests.
pub(super) fn apply_finding(review: &str, finding: &str, context: &Context) -> Result<Exit, CommandError> {
    let file = reviews::apply::apply(context, review, finding)?.display().to_string();
    let (review, finding) = (review.to_owned(), finding.to_owned());
    context.printer.show(&AppliedSuggestion { review, finding, file })?;
    Ok(Exit::Success)
}

/// Deletes the runs that ended before the time for which everything settled is kept.
pub(super) async fn gc(dry_run: bool, context: &Context) -> Result<Exit, CommandError> {
    let open = context.open()?;
    let runs = Runs::of(&context.settings.dir.value);
    settle::settle(context, &open, &runs).await;
    let now = open.machine.now();
    let before = Instant(now.0.saturating_sub(context.settings.keep.value));
    let dry_run = if dry_run { DryRun::Yes } else { DryRun::No };
    let git = changes::git(context);
    let deleted = retention::delete_old(&runs, &git, (before, now), dry_run).await?;
    context.printer.show(&DeletedRunsShape::of(&deleted, dry_run))?;
    if dry_run == DryRun::No {
        let removed = pipelines::Pipelines::of(&context.settings.dir.value).remove_empty_worktrees(&git).await;
        if removed > 0 {
            context.printer.say(&format!("removed {} of pipelines, which held nothing", counted(removed, "worktree")));
        }
    }
    Ok(Exit::Success)
}
