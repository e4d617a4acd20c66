//! The record of a review, and everything that came of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::diff::{Diff, FileChange};
use super::finding::{Finding, Severity};
use crate::names::AgentName;
use crate::ports::machine::{Instant, Process};
use crate::runs::RunId;

/// What is reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub enum Subject {
    /// What is not committed, new files included.
    Uncommitted,
    /// What the working copy has beyond the point where it left a base.
    Base(String),
    Commit(String),
    /// What a run changed.
    Run(RunId),
}

impl Subject {
    /// The same in words.
    pub fn words(&self) -> String {
        match self {
            Subject::Uncommitted => "what is not committed".to_owned(),
            Subject::Base(base) => format!("what the working copy has beyond {base}"),
            Subject::Commit(commit) => format!("the commit {commit}"),
            Subject::Run(run) => format!("what run {run} changed"),
        }
    }
}

/// How a review ended, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewEnd {
    pub at: Instant,
    /// Whether every reviewer has answered.
    pub ok: bool,
    /// How many findings stand.
    pub findings: usize,
}

/// A review, as it is kept in its folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRecord {
    /// Its id, of the same kind as those of runs.
    pub id: RunId,
    /// The agent that asked for it; none if the user did.
    pub by: Option<AgentName>,
    /// The harness of the session that asked for it.
    pub asked_from: Option<String>,
    /// The run that it was asked for from within.
    pub parent: Option<RunId>,
    /// The top of the working copy in which the reviewers look.
    pub top: PathBuf,
    /// What is reviewed.
    pub subject: Subject,
    /// Who reviews, by their adapters' names.
    pub reviewers: Vec<String>,
    /// Who tries to refute what they find.
    pub verify: Option<String>,
    /// The most time of each of its runs, in milliseconds.
    pub time: u64,
    /// Who is told when it has ended.
    pub report: Vec<String>,
    /// The process that works on it.
    pub supervisor: Process,
    /// When it was asked for.
    pub started: Instant,
    /// Its runs until now.
    pub runs: Vec<RunId>,
    /// How it ended.
    pub ended: Option<ReviewEnd>,
}

/// A file of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewedFile {
    /// Its path now.
    pub path: String,
    /// The path that it had.
    pub old_path: Option<String>,
    /// What became of it.
    pub change: FileChange,
    /// Its contents are not in the difference.
    pub binary: bool,
}

/// What came of one reviewer, or of the second look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewerOutcome {
    pub harness: String,
    pub runs: Vec<RunId>,
    /// How many findings or verdicts it gave.
    pub gave: usize,
    /// Why it failed, if it did: then what it gave is not all that there is.
    pub failed: Option<String>,
}

/// What a review looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reviewed {
    /// The files of the change.
    pub files: Vec<ReviewedFile>,
    /// Files of which a reviewer could not see everything: they are not text, or one change in them is too long.
    pub not_all_seen: Vec<String>,
}

impl Reviewed {
    /// The files of a difference.
    pub fn of(diff: &Diff) -> Reviewed {
        let file = |file: &super::diff::FileDiff| ReviewedFile {
            path: file.path.clone(),
            old_path: file.old_path.clone(),
            change: file.change,
            binary: file.binary,
        };
        let files: Vec<ReviewedFile> = diff.files.iter().map(file).collect();
        let not_all_seen = files.iter().filter(|file| file.binary).map(|file| file.path.clone()).collect();
        Reviewed { files, not_all_seen }
    }
}

/// Everything that came of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// What it was.
    pub record: ReviewRecord,
    /// When it ended.
    pub ended: Instant,
    /// What it looked at.
    pub reviewed: Reviewed,
    /// What was found, in the order of the files.
    pub findings: Vec<Finding>,
    /// Each reviewer.
    pub reviewers: Vec<ReviewerOutcome>,
    /// The second look.
    pub verify: Option<ReviewerOutcome>,
    /// What else to know.
    pub notes: Vec<String>,
}

impl Review {
    /// Whether everybody who was asked has answered. A reviewer that failed has not found nothing.
    pub fn is_ok(&self) -> bool {
        self.reviewers.iter().chain(&self.verify).all(|one| one.failed.is_none())
    }
}

/// How many findings stand and are at least so bad.
pub fn counts_against(findings: &[Finding], least: Severity) -> usize {
    findings.iter().filter(|finding| finding.stands() && finding.severity >= least).count()
}
