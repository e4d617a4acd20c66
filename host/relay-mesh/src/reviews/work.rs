//! Working on a review: the reviewers look, one after the other, then a further harness may try to refute what they
//! found. Whatever fails is told; what was found until then stays.

use std::collections::BTreeSet;

use mesh::messages::{Draft, Priority};
use mesh::names::MessageId;
use mesh::ports::machine::{Instant, Machine as _};
use mesh::ports::runner::{Extensions, Reach};
use mesh::reviews::{
    Diff, Finding, Review, ReviewEnd, ReviewRecord, Reviewed, ReviewerOutcome, Severity, counts_against, findings_in,
    findings_schema, merge, review_task, verdicts_in, verdicts_schema, verify_task,
};
use mesh::runs::{RunId, RunLimits, RunReport};
use mesh::sessions::Principal;
use serde_json::Value;
use view::ReviewView;

use super::begin::evidence_of;
use super::stop::Found;
use super::{ReviewFolder, subject};
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::runs::settle::Settler;
use crate::runs::supervise::{Unwatched, supervise};
use crate::runs::{RunRequest, Runs, WorkFolder, begin, changes, reports};
use crate::shapes::counted;
use crate::signals::Stop;

/// The longest difference that one run is given, in bytes: some 60,000 tokens.
const PORTION: usize = 256 * 1024;
/// Findings that one run tries to refute.
const AT_ONCE: usize = 40;

/// Who hears how a review goes.
pub(crate) trait ReviewAudience {
    fn says(&mut self, line: &str);
}

/// A review in work.
struct Work<'a> {
    context: &'a Context,
    open: &'a Open,
    folder: &'a ReviewFolder,
    record: &'a mut ReviewRecord,
    stop: &'a mut Stop,
    audience: &'a mut dyn ReviewAudience,
    runs: Runs,
}

/// Works on a begun review to its end, and keeps what came of it.
pub(crate) async fn work(
    context: &Context,
    open: &Open,
    folder: &ReviewFolder,
    stop: &mut Stop,
    audience: &mut dyn ReviewAudience,
) -> Result<Review, CommandError> {
    let _work = folder.work_on()?;
    let mut record = folder.record()?;
    record.supervisor = open.machine.this_process();
    folder.keep(&record)?;
    let (runs, git) = (Runs::of(&context.settings.dir.value), changes::git(context));
    let (diff, mut notes) = match subject::difference(&git, &runs, &record, folder).await {
        Ok(told) => told,
        Err(error) => {
            // Before any reviewer was asked.
            let found = Found::default();
            super::stop::ended_by(open, folder, record, &mesh::reasons(&error), found, Settler::Command).await?;
            return Err(error);
        }
    };
    let mut work = Work { context, open, folder, record: &mut record, stop, audience, runs };
    let mut reviewed = Reviewed::of(&diff);
    let (findings, reviewers, verify) = work.all(&diff, &mut reviewed).await?;
    if diff.files.is_empty() {
        notes.push("there is nothing to review".to_owned());
    }
    let ended = open.machine.now();
    let review = Review { record, ended, reviewed, findings, reviewers, verify, notes };
    conclude(open, folder, review, Settler::Command).await
}

/// Keeps what came of a review and tells those who were to hear of it. After this it has ended for everybody.
pub(super) async fn conclude(
    open: &Open,
    folder: &ReviewFolder,
    mut review: Review,
    by: Settler,
) -> Result<Review, CommandError> {
    folder.keep_findings(&review.findings)?;
    folder.keep_result(&ReviewView::from(&review))?;
    let failed = |one: &ReviewerOutcome| Some(failure(&one.harness, one.failed.as_ref()?));
    let failures: String = review.reviewers.iter().chain(&review.verify).filter_map(failed).collect();
    let end = (review.ended, review.is_ok());
    review.record = end_with(open, folder, review.record, end, (&review.findings, &failures), by).await?;
    Ok(review)
}

/// What a report says of a reviewer that failed.
pub(super) fn failure(harness: &str, why: &str) -> String {
    format!("; {harness} failed: {why}")
}

/// Ends a review whose result is kept. Those who were to hear of it hear of it before, and once: a process that is killed
/// in between leaves a review that the next command ends.
pub(super) async fn end_with(
    open: &Open,
    folder: &ReviewFolder,
    mut record: ReviewRecord,
    (at, ok): (Instant, bool),
    (findings, failures): (&[Finding], &str),
    by: Settler,
) -> Result<ReviewRecord, CommandError> {
    let standing = counts_against(findings, Severity::Low);
    let reported = report(open, &record, findings, standing, failures).await.unwrap_or_else(|error| {
        tracing::warn!(error = %store::reasons(&error), review = %record.id, "a review's findings could not be sent");
        None
    });
    record.ended = Some(ReviewEnd { at, ok, findings: standing });
    folder.keep(&record)?;
    if let Some((sender, sent)) = reported {
        reports::wake(open, &sender, &sent, by).await;
    }
    Ok(record)
}

impl Work<'_> {
    async fn all(
        &mut self,
        diff: &Diff,
        reviewed: &mut Reviewed,
    ) -> Result<(Vec<Finding>, Vec<ReviewerOutcome>, Option<ReviewerOutcome>), CommandError> {
        if diff.files.is_empty() {
            return Ok((Vec::new(), Vec::new(), None));
        }
        let portions = diff.portions(PORTION);
        let cut: BTreeSet<&String> = portions.iter().flat_map(|portion| &portion.cut).collect();
        reviewed.not_all_seen.extend(cut.into_iter().cloned());
        let (mut found, mut reviewers) = (Vec::new(), Vec::new());
        for harness in self.record.reviewers.clone() {
            let mut outcome = none_of(&harness);
            for (at, portion) in portions.iter().enumerate() {
                let about = self.record.subject.words();
                let task = review_task(&portion.text, &about, (at + 1, portions.len()));
                self.audience.says(&format!("{harness} reviews {} ({} of {})", about, at + 1, portions.len()));
                let given = self.ask(&harness, task, findings_schema(), &mut outcome).await;
                let given = given.and_then(|answer| {
                    findings_in(&answer, &harness)
                        .map_err(|error| format!("its answer is no list of findings: {error}"))
                });
                match given {
                    Ok(mut findings) => {
                        outcome.gave += findings.len();
                        findings.iter_mut().for_each(|finding| finding.place(diff, &self.record.top));
                        found.extend(findings);
                    }
                    Err(why) => {
                        outcome.failed = Some(part_of(why, at + 1, portions.len()));
                        break;
                    }
                }
            }
            self.audience.says(&said(&outcome, "findings"));
            reviewers.push(outcome);
        }
        found.sort_by_key(|finding: &Finding| {
            let place = diff.files.iter().position(|file| file.path == finding.file);
            (place.unwrap_or(usize::MAX), finding.start)
        });
        let mut findings = merge(found);
        let verify = match self.record.verify.clone() {
            Some(harness) if !findings.is_empty() => Some(self.verify(&harness, diff, &mut findings).await),
            Some(_) | None => None,
        };
        Ok((findings, reviewers, verify))
    }

    /// Lets a further harness try to refute the findings that lie in the difference.
    async fn verify(&mut self, harness: &str, diff: &Diff, findings: &mut [Finding]) -> ReviewerOutcome {
        let mut outcome = none_of(harness);
        let numbers: Vec<usize> = (0..findings.len()).filter(|at| findings[*at].anchor.is_in_diff()).collect();
        for some in numbers.chunks(AT_ONCE) {
            let asked: Vec<(usize, &Finding)> = some.iter().map(|at| (at + 1, &findings[*at])).collect();
            let paths: Vec<&str> = asked.iter().map(|(_, finding)| finding.file.as_str()).collect();
            let text = diff.of_files(&paths).portions(PORTION).into_iter().next().unwrap_or_default().text;
            let task = verify_task(&text, &asked);
            self.audience.says(&format!("{harness} tries to refute {}", counted(some.len(), "finding")));
            let given = self.ask(harness, task, verdicts_schema(), &mut outcome).await;
            let given = given.and_then(|answer| {
                verdicts_in(&answer).map_err(|error| format!("its answer is no list of verdicts: {error}"))
            });
            match given {
                Ok(verdicts) => {
                    for (number, verdict) in verdicts {
                        // It may speak of what it was asked about, and once of each.
                        let of_these = number.checked_sub(1).filter(|at| some.contains(at));
                        if let Some(finding) = of_these.and_then(|at| findings.get_mut(at))
                            && finding.verdict.is_none()
                        {
                            finding.verdict = Some(verdict);
                            outcome.gave += 1;
                        }
                    }
                }
                Err(why) => {
                    outcome.failed = Some(why);
                    break;
                }
            }
        }
        self.audience.says(&said(&outcome, "verdicts"));
        outcome
    }

    /// Gives a task to a harness that may only look. Returns its answer by the schema, or why there is none.
    async fn ask(
        &mut self,
        harness: &str,
        text: String,
        schema: Value,
        outcome: &mut ReviewerOutcome,
    ) -> Result<Value, String> {
        let (record, limits) = (&*self.record, RunLimits { time: self.record.time, ..RunLimits::default() });
        let request = RunRequest {
            harness: harness.to_owned(),
            text,
            folder: record.top.clone(),
            place: WorkFolder::Here,
            reach: Reach::Look,
            start: None,
            // Neither the user's servers nor the mesh: what is reviewed was written by others.
            extensions: Extensions::None,
            model: None,
            schema: Some(schema),
            turns: None,
            cost: None,
            below: None,
            limits,
            name: None,
            reserve: Vec::new(),
            report: Vec::new(),
        };
        let evidence = evidence_of(&self.runs, record);
        let report = self.run(&evidence, request, outcome).await.map_err(|error| {
            let hint = error.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
            format!("{}{hint}", mesh::reasons(&error))
        })?;
        match (report.verdict.ok, report.verdict.output) {
            (true, Some(output)) => Ok(output),
            (_, _) => {
                let ending = report.verdict.ending.as_str();
                let why = report.verdict.why.map_or_else(String::new, |why| format!(": {why}"));
                Err(format!("its run {} ended, {ending}{why}", report.record.id))
            }
        }
    }

    async fn run(
        &mut self,
        evidence: &crate::runs::permission::Evidence,
        request: RunRequest,
        outcome: &mut ReviewerOutcome,
    ) -> Result<RunReport, CommandError> {
        let begun = begin::begin_for(self.context, self.open, evidence, request).await?;
        let id: RunId = begun.record.id;
        outcome.runs.push(id);
        self.record.runs.push(id);
        self.folder.keep(self.record)?;
        supervise(self.context, self.open, begun, self.stop, &mut Unwatched).await
    }
}

fn none_of(harness: &str) -> ReviewerOutcome {
    ReviewerOutcome { harness: harness.to_owned(), runs: Vec::new(), gave: 0, failed: None }
}

fn part_of(why: String, part: usize, all: usize) -> String {
    if all == 1 { why } else { format!("part {part} of {all}: {why}") }
}

fn said(outcome: &ReviewerOutcome, what: &str) -> String {
    match &outcome.failed {
        None => format!("{} gave {} {what}", outcome.harness, outcome.gave),
        Some(why) => format!("{} failed: {why}", outcome.harness),
    }
}

/// Sends what came of a review to those who were to have it. Returns the sender, and what they have got.
async fn report(
    open: &Open,
    record: &ReviewRecord,
    findings: &[Finding],
    standing: usize,
    failures: &str,
) -> Result<Option<(Principal, Vec<MessageId>)>, CommandError> {
    if record.report.is_empty() {
        return Ok(None);
    }
    let mut body = format!(
        "Review {} of {} has ended: {} {}{failures}.\n`relay-mesh runs show {}` or the tool run_result has all of it.\n",
        record.id,
        record.subject.words(),
        counted(standing, "finding"),
        if standing == 1 { "stands" } else { "stand" },
        record.id
    );
    for (at, finding) in findings.iter().enumerate().filter(|(_, finding)| finding.stands()).take(20) {
        let Finding { severity, file, start, title, .. } = finding;
        body.push_str(&format!("\n{}. {severity} {file}:{start} {title}", at + 1));
    }
    let draft = Draft {
        body,
        subject: Some(format!("review {}: {}", record.id, counted(standing, "finding"))),
        priority: Priority::Normal,
        idempotency_key: Some(format!("review-{}", record.id)),
        ..Draft::default()
    };
    let call = mesh::sessions::Call {
        caller: mesh::sessions::Caller::of_command_line(Vec::new(), None),
        connection: None,
        ticket: None,
        key: None,
        claims_to_be: None,
    };
    let sender = open.mesh.identify(&call).await?;
    let (id, mut sent) = (record.id.to_string(), Vec::new());
    for to in &record.report {
        let one = std::slice::from_ref(to);
        let outcome = open.mesh.send_for_review(&id, record.by.as_ref(), one, draft.clone()).await;
        reports::note(outcome, (record.id, to), &mut sent);
    }
    Ok(Some((sender, sent)))
}
