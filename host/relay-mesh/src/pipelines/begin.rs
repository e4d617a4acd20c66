//! Beginning a pipeline, or going on with one: everything that can be refused is refused here, before anything is started.

use std::fs::File;
use std::path::PathBuf;

use mesh::ports::machine::Machine as _;
use mesh::ports::runner::Reach;
use mesh::reviews::{PipelineRecord, Severity, StepKind};
use mesh::runs::Workplace;
use processes::git::Git;

use super::{PipelineFolder, Pipelines};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::runs::permission::Evidence;
use crate::runs::{Runs, begin, changes, worktrees};

/// Where the harnesses of a pipeline work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PipelinePlace {
    Worktree,
    /// In the folder itself.
    Here,
}

/// A pipeline as it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct PipelineRequest {
    pub(crate) prompt: String,
    /// Absolute, without symlinks.
    pub(crate) folder: PathBuf,
    pub(crate) place: PipelinePlace,
    /// Harnesses, by their names as typed.
    pub(crate) implement: String,
    pub(crate) review: Vec<String>,
    pub(crate) verify: Option<String>,
    pub(crate) rounds: u32,
    pub(crate) least: Severity,
    /// The most time of each run, in milliseconds.
    pub(crate) time: u64,
}

/// A pipeline that can be worked on.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) folder: PipelineFolder,
    pub(crate) record: PipelineRecord,
    /// What its user should know.
    pub(crate) notes: Vec<String>,
    /// Locks out every other process that would work on it, until it is dropped.
    pub(crate) alone: File,
}

/// Begins a pipeline for a caller. If it is refused, nothing of it is left.
pub(crate) async fn begin(
    context: &Context,
    open: &Open,
    evidence: &Evidence,
    request: PipelineRequest,
) -> Result<Begun, CommandError> {
    let (data, git) = (&context.settings.dir.value, changes::git(context));
    let implement = begin::harness(open, &request.implement).await?;
    begin::permitted(context, open, &Runs::of(data), evidence, (&implement, Reach::Edit))?;
    let typed = request.review.iter().chain(&request.verify);
    let mut review = reviewers(context, open, evidence, typed).await?;
    let verify = request.verify.as_ref().and_then(|_| review.pop());
    let top = git.top(&request.folder).await?;
    let commit = git.head(&top).await?;
    let id = open.mesh.new_run_id();
    let folder = Pipelines::of(data).folder(id);
    let (workplace, cwd, notes) = match request.place {
        PipelinePlace::Here => (Workplace::Here { top: Some(top) }, request.folder.clone(), Vec::new()),
        PipelinePlace::Worktree => worktrees::planned(&git, &request.folder, &folder.worktree(), id).await?,
    };
    let record = PipelineRecord {
        id,
        by: None,
        prompt: request.prompt,
        asked_folder: request.folder,
        folder: cwd,
        workplace,
        commit,
        implement: implement.about().harness.clone(),
        review,
        verify,
        rounds: request.rounds,
        least: request.least,
        time: request.time,
        supervisor: open.machine.this_process(),
        started: open.machine.now(),
        steps: Vec::new(),
        ended: None,
        applied: None,
    };
    folder.files.create()?;
    let alone = folder.alone()?;
    if let Err(error) = record_and_make(&git, &folder, &record).await {
        // A worktree that stays keeps its record.
        if changes::remove_if_clean(&git, &record.workplace).await
            && let Err(error) = std::fs::remove_dir_all(&folder.files.root)
        {
            tracing::warn!(%error, pipeline = %id, "the folder of a pipeline that was refused stays");
        }
        return Err(error);
    }
    Ok(Begun { folder, record, notes, alone })
}

/// Goes on with a pipeline that has not ended. Its worktree is made if there is none: that of one which had changed nothing
/// went with its end, and that of one which was killed at its beginning may be unfinished.
pub(crate) async fn resume(
    context: &Context,
    open: &Open,
    folder: PipelineFolder,
    mut record: PipelineRecord,
) -> Result<Begun, CommandError> {
    let alone = folder.alone()?;
    if !has_no_worktree(&record) {
        // The process that made it may have been killed before it could say so.
        worktrees::open_for_work(&record.workplace)?;
        return Ok(Begun { folder, record, notes: Vec::new(), alone });
    }
    let git = changes::git(context);
    let earlier = folder.record()?;
    // A branch may be left, which begins at the commit of then.
    changes::remove_if_clean(&git, &earlier.workplace).await;
    let (workplace, cwd, notes) = worktrees::planned(&git, &record.asked_folder, &folder.worktree(), record.id).await?;
    if let Workplace::Worktree { commit, .. } = &workplace {
        record.commit.clone_from(commit);
    }
    (record.workplace, record.folder, record.supervisor) = (workplace, cwd, open.machine.this_process());
    if let Err(error) = record_and_make(&git, &folder, &record).await {
        // What had ended has ended still.
        if !worktrees::is_unfinished(&folder.worktree()) {
            folder.keep(&earlier)?;
        }
        return Err(error);
    }
    Ok(Begun { folder, record, notes, alone })
}

/// The harnesses of these names, each of which may review.
pub(crate) async fn reviewers(
    context: &Context,
    open: &Open,
    evidence: &Evidence,
    typed: impl Iterator<Item = &String>,
) -> Result<Vec<String>, CommandError> {
    let runs = Runs::of(&context.settings.dir.value);
    let mut names = Vec::new();
    for typed in typed {
        let harness = begin::harness(open, typed).await?;
        begin::permitted(context, open, &runs, evidence, (&harness, Reach::Look))?;
        names.push(harness.about().harness.clone());
    }
    Ok(names)
}

/// Whether a pipeline lacks its worktree, and has done nothing that would be missing in another.
fn has_no_worktree(record: &PipelineRecord) -> bool {
    let Workplace::Worktree { folder, .. } = &record.workplace else { return false };
    let is_missing = !folder.is_dir() || worktrees::is_unfinished(folder);
    is_missing && record.steps.iter().all(|step| step.kind == StepKind::Implement)
}

/// The record comes first: by it the next command finds the worktree of a process that was killed.
async fn record_and_make(git: &Git, folder: &PipelineFolder, record: &PipelineRecord) -> Result<(), CommandError> {
    folder.keep(record)?;
    worktrees::make(git, &record.workplace, (record.asked_folder.as_path(), record.folder.as_path())).await?;
    Ok(worktrees::open_for_work(&record.workplace)?)
}
