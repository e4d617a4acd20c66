//! Reviews: one result, the same for the command line, for MCP and on disk.

use mesh::reviews::{FileChange, Finding, Review, ReviewedFile, ReviewerOutcome, Verdict};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use crate::Timestamp;

// Everything that came of a review.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReviewView {
    pub review: String,
    /// everybody who was asked has answered
    pub ok: bool,
    /// why not
    pub why: Option<String>,
    pub subject: String,
    /// the top of the repository
    pub cwd: String,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub duration_ms: u64,
    pub files: Vec<ReviewedFileView>,
    pub findings: Vec<FindingView>,
    pub reviewers: Vec<ReviewerView>,
    pub verify: Option<ReviewerView>,
    /// files of which not everything could be shown
    pub not_all_seen: Vec<String>,
    pub notes: Vec<String>,
}

// A file of the change.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReviewedFileView {
    pub path: String,
    pub old_path: Option<String>,
    /// added, deleted, renamed or modified
    pub change: &'static str,
    pub binary: bool,
}

// A finding.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FindingView {
    /// its number in this review
    pub finding: usize,
    pub rule: String,
    /// critical, high, medium or low
    pub severity: &'static str,
    pub title: String,
    pub body: String,
    pub failure: String,
    pub file: String,
    pub start: u32,
    pub end: u32,
    pub suggestion: Option<String>,
    /// who found it
    pub by: Vec<String>,
    /// changed, near, outside or elsewhere
    pub anchor: &'static str,
    /// whether it is in the change and was not refuted
    pub stands: bool,
    /// confirmed, refuted or unsure
    pub verdict: Option<&'static str>,
    pub reason: Option<String>,
    pub fingerprint: String,
}

// What came of a reviewer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ReviewerView {
    pub harness: String,
    pub ok: bool,
    pub why: Option<String>,
    /// findings, or verdicts
    pub gave: usize,
    pub runs: Vec<String>,
}

impl FindingView {
    /// A finding and its number.
    pub fn of(number: usize, finding: &Finding) -> FindingView {
        let (verdict, reason) = match &finding.verdict {
            None => (None, None),
            Some(Verdict::Confirmed { reason }) => (Some("confirmed"), Some(reason.clone())),
            Some(Verdict::Refuted { reason }) => (Some("refuted"), Some(reason.clone())),
            Some(Verdict::Unsure { reason }) => (Some("unsure"), Some(reason.clone())),
        };
        FindingView {
            finding: number,
            rule: finding.rule.clone(),
            severity: finding.severity.as_str(),
            title: finding.title.clone(),
            body: finding.body.clone(),
            failure: finding.failure.clone(),
            file: finding.file.clone(),
            start: finding.start,
            end: finding.end,
            suggestion: finding.suggestion.clone(),
            by: finding.by.clone(),
            anchor: finding.anchor.as_str(),
            stands: finding.stands(),
            verdict,
            reason,
            fingerprint: finding.fingerprint.clone(),
        }
    }
}

impl From<&ReviewerOutcome> for ReviewerView {
    fn from(outcome: &ReviewerOutcome) -> ReviewerView {
        ReviewerView {
            harness: outcome.harness.clone(),
            ok: outcome.failed.is_none(),
            why: outcome.failed.clone(),
            gave: outcome.gave,
            runs: outcome.runs.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<&ReviewedFile> for ReviewedFileView {
    fn from(file: &ReviewedFile) -> ReviewedFileView {
        ReviewedFileView {
            path: file.path.clone(),
            old_path: file.old_path.clone(),
            change: match file.change {
                FileChange::Added => "added",
                FileChange::Deleted => "deleted",
                FileChange::Renamed => "renamed",
                FileChange::Modified => "modified",
            },
            binary: file.binary,
        }
    }
}

impl From<&Review> for ReviewView {
    fn from(review: &Review) -> ReviewView {
        let Review { record, reviewed, findings, reviewers, verify, notes, ended } = review;
        let failed = reviewers.iter().chain(verify).filter_map(|one| Some((&one.harness, one.failed.as_ref()?)));
        let why: Vec<String> = failed.map(|(harness, why)| format!("{harness}: {why}")).collect();
        ReviewView {
            review: record.id.to_string(),
            ok: review.is_ok(),
            why: (!why.is_empty()).then(|| why.join("; ")),
            subject: record.subject.words(),
            cwd: record.top.display().to_string(),
            started_at: Timestamp(record.started),
            ended_at: Timestamp(*ended),
            duration_ms: ended.since(record.started),
            files: reviewed.files.iter().map(ReviewedFileView::from).collect(),
            findings: findings.iter().enumerate().map(|(at, finding)| FindingView::of(at + 1, finding)).collect(),
            reviewers: reviewers.iter().map(ReviewerView::from).collect(),
            verify: verify.as_ref().map(ReviewerView::from),
            not_all_seen: reviewed.not_all_seen.clone(),
            notes: notes.clone(),
        }
    }
}
