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
use crate::runs::{Runs, settle, stop as runs};

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
        settle(context, open, folder).await?;
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
pub(crate) async fn settle_all(context: &Context, open: &Open, ended: &mut BTreeSet<RunId>) {
    let reviews = Reviews::of(&context.settings.dir.value);
    let all: BTreeSet<RunId> = reviews.ids().into_iter().collect();
    ended.retain(|id| all.contains(id));
    for id in all {
        if ended.contains(&id) {
            continue;
        }
        let folder = reviews.folder(id);
        if let Err(error) = settle(context, open, &folder).await {
            tracing::debug!(error = %store::reasons(&error), review = %id, "what came of a review could not be told");
        }
        if folder.record().is_ok_and(|record| record.ended.is_some()) {
            ended.insert(id);
        }
    }
}

/// Tells of a review whose process was killed: nobody has answered whose answer is not there.
pub(crate) async fn settle(context: &Context, open: &Open, folder: &ReviewFolder) -> Result<(), CommandError> {
    if !folder.is_abandoned(&folder.record()?, open.machine.as_ref()) {
        return Ok(());
    }
    let Ok(lock) = File::open(&folder.files.root) else { return Ok(()) };
    if lock.try_lock().is_err() {
        // Another process tells of it.
        tokio::time::sleep(LOOK).await;
        return Ok(());
    }
    let record = folder.record()?;
    if record.ended.is_some() {
        return Ok(());
    }
    settle::settle_runs(context, open, &Runs::of(&context.settings.dir.value)).await;
    let why = "the process that worked on the review was killed";
    match (folder.findings(), folder.result()) {
        // It had come to the end, and was killed before it could say so.
        (Ok(findings), Ok(result)) => {
            let end = (open.machine.now(), result["ok"] == true);
            work::end_with(open, folder, record, end, &findings, &failures_in(&result)).await.map(drop)
        }
        (Ok(findings), Err(_)) => {
            let note = "all that was found is here; whether each reviewer had answered is not known";
            ended_by(open, folder, record, why, Found { findings, notes: vec![note.to_owned()] }).await
        }
        (Err(_), _) => ended_by(open, folder, record, why, Found::default()).await,
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
    work::conclude(open, folder, review).await.map(drop)
}
