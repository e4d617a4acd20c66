//! Ending a review from outside, and telling of one whose process was killed.

use std::time::Duration;

use mesh::ports::machine::Machine as _;
use mesh::reviews::{Review, ReviewRecord, Reviewed, ReviewerOutcome};

use super::{ReviewFolder, work};
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

/// Tells of a review whose process was killed: nobody has answered whose answer is not there.
pub(crate) async fn settle(context: &Context, open: &Open, folder: &ReviewFolder) -> Result<(), CommandError> {
    let record = folder.record()?;
    if !folder.is_abandoned(&record, open.machine.as_ref()) {
        return Ok(());
    }
    settle::settle(context, open, &Runs::of(&context.settings.dir.value)).await;
    // Its process had come to the end, and was killed before it could say so.
    if let (Ok(findings), Ok(result)) = (folder.findings(), folder.result()) {
        let end = (open.machine.now(), result["ok"] == true);
        return work::end_with(open, folder, record, end, &findings, "").await.map(drop);
    }
    ended_by(open, folder, record, "the process that worked on the review was killed").await
}

/// Ends a review in which no reviewer has answered.
pub(super) async fn ended_by(
    open: &Open,
    folder: &ReviewFolder,
    record: ReviewRecord,
    why: &str,
) -> Result<(), CommandError> {
    let failed = |harness: &String| ReviewerOutcome {
        harness: harness.clone(),
        runs: Vec::new(),
        gave: 0,
        failed: Some(why.to_owned()),
    };
    let reviewers = record.reviewers.iter().map(failed).collect();
    let ended = open.machine.now();
    let (reviewed, findings, notes) = (Reviewed::default(), Vec::new(), Vec::new());
    let review = Review { record, ended, reviewed, findings, reviewers, verify: None, notes };
    work::conclude(open, folder, review).await.map(drop)
}
