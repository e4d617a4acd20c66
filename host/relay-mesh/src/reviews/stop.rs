//! Ending a review from outside, and telling of one whose process was killed.

use std::collections::BTreeSet;
use std::fs::File;
use std::time::Duration;

use mesh::ports::machine::Machine as _;
use mesh::reviews::{Finding, Review, ReviewRecord, Reviewed, ReviewerOutcome};
use mesh::runs::RunId;
use serde_json::Value;

use super::{ReviewFolder, Reviews, work};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::settle::{self, Settler, is_certain};
use crate::runs::{Runs, RunsError, stop as runs};

/// How long to wait for the review's process to write what came of it.
const RESULT: Duration = Duration::from_secs(30);
/// How often to look.
const LOOK: Duration = Duration::from_millis(20);

/// Ends a review with its runs, and returns once what came of it is there. One that had ended stays as it is.
pub(crate) async fn stop(context: &Context, open: &Open, folder: &ReviewFolder) -> Result<ReviewRecord, CommandError> {
    let mut record = folder.record()?;
    let all = Runs::of(&context.settings.dir.value);
    let deadline = tokio::time::Instant::now() + RESULT;
    while record.ended.is_none() {
        if tokio::time::Instant::now() > deadline {
            return Err(Failure {
                what: format!("review {} has not ended within {} s", record.id, RESULT.as_secs()),
                hint: Some("try again; what cannot be killed waits for a disk or a device".to_owned()),
                exit: Exit::TimedOut,
                source: None,
            }
            .into());
        }
        // A reviewer whose run is stopped has failed, and the review goes on to its end.
        for id in &record.runs {
            let (run, _) = all.load(*id)?;
            runs::stop(context, open, &all, &run).await?;
        }
        settle(context, open, folder, Settler::Command).await?;
        tokio::time::sleep(LOOK).await;
        record = folder.record()?;
    }
    Ok(record)
}

/// What is known of a review that did not come to its own end.
#[derive(Default)]
pub(super) struct Found {
    pub(super) findings: Vec<Finding>,
    pub(super) notes: Vec<String>,
}

/// Tells of every review whose process was killed. Errors are only logged: the next look tries again. A process that looks
/// again and again keeps in `ended` of which ones there is no more to tell, and reads the records of the others alone.
pub(crate) async fn settle_all(context: &Context, open: &Open, ended: &mut BTreeSet<RunId>, by: Settler) {
    let reviews = Reviews::of(&context.settings.dir.value);
    let all: BTreeSet<RunId> = reviews.ids().into_iter().collect();
    ended.retain(|id| all.contains(id));
    for id in all {
        if ended.contains(&id) {
            continue;
        }
        let folder = reviews.folder(id);
        let has_ended = || folder.record().is_ok_and(|record| record.ended.is_some());
        let is_over = has_ended() || {
            if let Err(error) = settle(context, open, &folder, by).await {
                let error = store::reasons(&error);
                tracing::debug!(%error, review = %id, "what came of a review could not be told");
            }
            has_ended()
        };
        if is_over {
            ended.insert(id);
        }
    }
}

/// Tells of a review whose process was killed: nobody has answered whose answer is not there.
pub(crate) async fn settle(
    context: &Context,
    open: &Open,
    folder: &ReviewFolder,
    by: Settler,
) -> Result<(), CommandError> {
    let machine = open.machine.as_ref();
    let is_abandoned =
        |record: &ReviewRecord| is_certain(machine, record.supervisor, by) && folder.is_abandoned(record, machine);
    if !is_abandoned(&folder.record()?) {
        return Ok(());
    }
    let Ok(lock) = File::open(&folder.files.root) else { return Ok(()) };
    if lock.try_lock().is_err() {
        // Another process tells of it.
        tokio::time::sleep(LOOK).await;
        return Ok(());
    }
    let record = folder.record()?;
    // Since it was looked at, another process may have ended it.
    if !is_abandoned(&record) {
        return Ok(());
    }
    if by == Settler::Command {
        // The others have just done that.
        settle::settle_runs(context, open, &Runs::of(&context.settings.dir.value), by).await;
    }
    let why = "the process that worked on the review was killed";
    match (kept(folder.findings())?, kept(folder.result())?) {
        // It had come to the end, and was killed before it could say so.
        (Some(findings), Some(result)) => {
            let end = (open.machine.now(), result["ok"] == true);
            work::end_with(open, folder, record, end, (&findings, &failures_in(&result)), by).await.map(drop)
        }
        (Some(findings), None) => {
            let note = "all that was found is here; whether each reviewer had answered is not known";
            ended_by(open, folder, record, why, Found { findings, notes: vec![note.to_owned()] }, by).await
        }
        (None, _) => ended_by(open, folder, record, why, Found::default(), by).await,
    }
}

/// What a file holds; none if there is no whole one. What cannot be read now may be there.
fn kept<T>(read: Result<T, RunsError>) -> Result<Option<T>, RunsError> {
    use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    match read {
        Ok(kept) => Ok(Some(kept)),
        Err(RunsError::Unreadable { source, .. })
            if matches!(source.kind(), NotFound | InvalidData | UnexpectedEof) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What the report of a review says of those that failed, by its result.
fn failures_in(result: &Value) -> String {
    let asked = result["reviewers"].as_array().into_iter().flatten().chain([&result["verify"]]);
    asked.filter_map(|one| Some(work::failure(one["harness"].as_str()?, one["why"].as_str()?))).collect()
}

/// Ends a review in which, as far as is known, no reviewer has answered.
pub(super) async fn ended_by(
    open: &Open,
    folder: &ReviewFolder,
    record: ReviewRecord,
    why: &str,
    Found { findings, notes }: Found,
    by: Settler,
) -> Result<(), CommandError> {
    let failed = |harness: &String| ReviewerOutcome {
        harness: harness.clone(),
        runs: Vec::new(),
        gave: 0,
        failed: Some(why.to_owned()),
    };
    let reviewers = record.reviewers.iter().map(failed).collect();
    let ended = open.machine.now();
    let reviewed = Reviewed::default();
    let review = Review { record, ended, reviewed, findings, reviewers, verify: None, notes };
    work::conclude(open, folder, review, by).await.map(drop)
}
