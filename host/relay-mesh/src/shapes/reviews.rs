//! What is printed of reviews and pipelines.

use std::path::{Path, PathBuf};

use mesh::reviews::{PipelineRecord, ReviewRecord, StepKind};
use mesh::runs::Workplace;
use serde::Serialize;
use serde_json::Value;
use view::Timestamp;

use super::counted;
use super::runs::ListRow;
use crate::errors::in_folder;
use crate::render::{Show, printable, printable_line};

/// The longest first line of a pipeline's task, in characters.
const ABOUT: usize = 200;

/// The result of a review, as it was kept.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct ReviewShape(pub(crate) Value);

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// A finding with everything that a user needs to judge it.
fn finding(finding: &Value) -> String {
    let by: Vec<&str> = list(finding, "by").filter_map(Value::as_str).collect();
    let place = match (finding["start"].as_u64(), finding["end"].as_u64()) {
        (Some(start), Some(end)) if start != end => format!("{}:{start}-{end}", word(finding, "file")),
        (Some(start), _) => format!("{}:{start}", word(finding, "file")),
        (None, _) => word(finding, "file").to_owned(),
    };
    let mark = match (word(finding, "verdict"), word(finding, "anchor")) {
        ("refuted", _) => " (refuted)",
        (_, "outside") => " (outside of the change)",
        (_, "elsewhere") => " (not in the change)",
        _ => "",
    };
    let head =
        format!("{}. {} {place}{mark}: {}", finding["finding"], word(finding, "severity"), word(finding, "title"));
    let mut lines = vec![printable_line(&head)];
    let indented = |text: &str| text.lines().map(|line| format!("   {line}")).collect::<Vec<_>>().join("\n");
    for name in ["body", "failure"] {
        if !word(finding, name).is_empty() {
            lines.push(indented(&printable(word(finding, name))));
        }
    }
    if word(finding, "verdict") == "refuted" {
        lines.push(indented(&printable(&format!("refuted: {}", word(finding, "reason")))));
    }
    let suggests = if finding["suggestion"].is_string() { "; it suggests a change" } else { "" };
    lines.push(printable_line(&format!("   {} by {}{suggests}", word(finding, "rule"), by.join(", "))));
    lines.join("\n")
}

impl Show for ReviewShape {
    fn text(&self) -> String {
        let result = &self.0;
        let mut lines: Vec<String> = list(result, "findings").map(finding).collect();
        let standing = list(result, "findings").filter(|finding| finding["stands"] == true).count();
        let stand = if standing == 1 { "finding stands" } else { "findings stand" };
        let mut last = format!("review {} of {}: {standing} {stand}", word(result, "review"), word(result, "subject"));
        if result["ok"] == false {
            last.push_str(&format!("; it is not whole: {}", word(result, "why")));
        }
        lines.push(printable_line(&last));
        lines.extend(
            list(result, "not_all_seen")
                .filter_map(Value::as_str)
                .map(|file| printable_line(&format!("not all of `{file}` could be shown to the reviewers"))),
        );
        lines.extend(list(result, "notes").filter_map(Value::as_str).map(printable_line));
        lines.join("\n")
    }
}

/// A review in short.
#[derive(Debug, Serialize)]
pub(crate) struct ReviewLine {
    review: String,
    /// running or ended
    state: &'static str,
    /// Whether every reviewer has answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    /// How many findings stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<usize>,
    subject: String,
    reviewers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verify: Option<String>,
    cwd: String,
    runs: Vec<String>,
    started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl ReviewLine {
    pub(crate) fn of(record: &ReviewRecord) -> ReviewLine {
        let end = record.ended.as_ref();
        ReviewLine {
            review: record.id.to_string(),
            state: if end.is_some() { "ended" } else { "running" },
            ok: end.map(|end| end.ok),
            findings: end.map(|end| end.findings),
            subject: record.subject.words(),
            reviewers: record.reviewers.clone(),
            verify: record.verify.clone(),
            cwd: record.top.display().to_string(),
            runs: record.runs.iter().map(ToString::to_string).collect(),
            started_at: Timestamp(record.started),
            ended_at: end.map(|end| Timestamp(end.at)),
            by: record.by.as_ref().map(ToString::to_string),
        }
    }

    /// Its row in `relay-mesh runs list`.
    pub(crate) fn row(&self) -> ListRow {
        // What a reviewer that failed has not found is not known.
        let found = self.findings.filter(|count| *count > 0 || self.ok == Some(true));
        let found = found.map_or_else(String::new, |count| format!(": {}", counted(count, "finding")));
        ListRow {
            id: self.review.clone(),
            who: self.reviewers.join(", "),
            state: state_of(self.state, self.ok),
            started: self.started_at,
            ended: self.ended_at,
            files: 0,
            about: format!("review of {}{found}", self.subject),
        }
    }
}

impl Show for ReviewLine {
    fn text(&self) -> String {
        format!("review {} is {}: {}", self.review, self.state, printable_line(&self.reviewers.join(", ")))
    }
}

/// A pipeline in short.
#[derive(Debug, Serialize)]
pub(crate) struct PipelineLine {
    pipeline: String,
    /// running, interrupted or ended
    state: &'static str,
    /// Whether every step did its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// The first line of its task.
    about: String,
    implement: String,
    review: Vec<String>,
    rounds: u32,
    /// What it does now, or did last.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied_at: Option<Timestamp>,
    /// What makes it go on, in words.
    #[serde(skip)]
    next: Option<String>,
}

/// What makes a pipeline go on that nobody works on, with the command line as it is to be typed: `named` is the data
/// folder, if a flag named it. None if nothing does.
pub(crate) fn next_of(record: &PipelineRecord, named: Option<&Path>) -> Option<String> {
    let resume = format!("`relay-mesh pipeline resume {}`", record.id);
    let next = match record.ended {
        None => format!("{resume} goes on with it"),
        // What was applied is not done again.
        Some(_) if record.failure().is_none() || record.applied.is_some() => return None,
        Some(_) => match record.steps.last().map(|step| step.kind) {
            Some(StepKind::Review) => {
                format!("{resume} does the failed step again; with `--review HARNESS` another reviews")
            }
            Some(StepKind::Implement | StepKind::Fix) | None => format!("{resume} does the failed step again"),
        },
    };
    Some(match named {
        Some(dir) => in_folder(&next, dir),
        None => next,
    })
}

impl PipelineLine {
    /// `is_worked_on`: its process lives. `named` is the data folder, if a flag named it.
    pub(crate) fn of(record: &PipelineRecord, is_worked_on: bool, named: Option<&Path>) -> PipelineLine {
        PipelineLine {
            next: if is_worked_on { None } else { next_of(record, named) },
            pipeline: record.id.to_string(),
            state: match (record.ended.is_some(), is_worked_on) {
                (true, _) => "ended",
                (false, true) => "running",
                (false, false) => "interrupted",
            },
            ok: record.ended.map(|_| record.failure().is_none()),
            why: record.failure(),
            about: record.prompt.lines().next().unwrap_or_default().chars().take(ABOUT).collect(),
            implement: record.implement.clone(),
            review: record.review.clone(),
            rounds: record.rounds,
            step: record.steps.last().map(|step| step.kind.as_str()),
            cwd: record.asked_folder.display().to_string(),
            branch: match &record.workplace {
                Workplace::Worktree { branch, .. } => Some(branch.clone()),
                Workplace::Here { .. } => None,
            },
            started_at: Timestamp(record.started),
            ended_at: record.ended.map(Timestamp),
            applied_at: record.applied.map(Timestamp),
        }
    }

    /// Its row in `relay-mesh runs list`.
    pub(crate) fn row(&self) -> ListRow {
        ListRow {
            id: self.pipeline.clone(),
            who: format!("{}, {}", self.implement, self.review.join(", ")),
            state: state_of(self.state, self.ok),
            started: self.started_at,
            ended: self.ended_at,
            files: 0,
            about: format!("pipeline: {}", self.about),
        }
    }
}

impl Show for PipelineLine {
    fn text(&self) -> String {
        let step = self.step.map_or_else(String::new, |step| format!(", at the step `{step}`"));
        let why = self.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let next = self.next.as_ref().map_or_else(String::new, |next| format!("; {next}"));
        printable_line(&format!("pipeline {} is {}{step}{why}{next}", self.pipeline, self.state))
    }
}

/// The word for a state in a list.
fn state_of(state: &'static str, ok: Option<bool>) -> &'static str {
    match ok {
        Some(true) => "done",
        Some(false) => "failed",
        None => state,
    }
}

/// `relay-mesh runs apply REVIEW FINDING`.
#[derive(Debug, Serialize)]
pub(crate) struct AppliedSuggestion {
    pub(crate) review: String,
    pub(crate) finding: String,
    pub(crate) file: String,
}

impl Show for AppliedSuggestion {
    fn text(&self) -> String {
        printable_line(&format!("applied finding {} to {}", self.finding, self.file))
    }
}

/// The result of a pipeline, and its data folder, if a flag named it.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct PipelineShape {
    result: Value,
    #[serde(skip)]
    named: Option<PathBuf>,
}

impl PipelineShape {
    pub(crate) fn of(result: Value, named: Option<&Path>) -> PipelineShape {
        PipelineShape { result, named: named.map(Path::to_owned) }
    }
}

impl Show for PipelineShape {
    fn text(&self) -> String {
        let result = &self.result;
        let step = |step: &Value| {
            let how = if step["ok"] == true { "done".to_owned() } else { format!("failed: {}", word(step, "why")) };
            let agents: Vec<&str> = list(step, "agents").filter_map(Value::as_str).collect();
            printable_line(&format!("{} {} by {}: {how}", word(step, "step"), step["round"], agents.join(", ")))
        };
        let mut lines: Vec<String> = list(result, "steps").map(step).collect();
        lines.extend(list(result, "issues").map(finding));
        let count = list(result, "issues").count();
        let id = word(result, "pipeline");
        lines.push(if result["reviewed"] == true {
            format!("pipeline {id}: {count} issues stand")
        } else {
            format!("pipeline {id}: it is not reviewed as it is now")
        });
        lines.extend(list(result, "notes").filter_map(Value::as_str).map(printable_line));
        if result["branch"].is_string()
            && list(result, "files_written").chain(list(result, "files_deleted")).count() > 0
        {
            let apply = format!("`relay-mesh pipeline apply {id}` brings it here");
            lines.push(self.named.as_deref().map_or(apply.clone(), |dir| in_folder(&apply, dir)));
        }
        lines.join("\n")
    }
}

/// `relay-mesh pipeline apply`.
#[derive(Debug, Serialize)]
pub(crate) struct AppliedPipeline {
    pub(crate) pipeline: String,
    pub(crate) folder: String,
}

impl Show for AppliedPipeline {
    fn text(&self) -> String {
        printable_line(&format!("applied pipeline {} to {}", self.pipeline, self.folder))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use mesh::ports::machine::{Instant, Process};
    use mesh::reviews::{Severity, Step, StepState};

    use super::*;

    fn record(kind: StepKind, state: StepState, ended: Option<u64>, applied: Option<u64>) -> PipelineRecord {
        let folder = PathBuf::from("/p");
        let (harnesses, work, session) = (Vec::new(), None, None);
        PipelineRecord {
            id: "01JD8Z3K5V0000000000000000".parse().expect("an id"),
            by: None,
            prompt: "write f".to_owned(),
            asked_folder: folder.clone(),
            folder,
            workplace: Workplace::Here { top: None },
            commit: String::new(),
            implement: "codex".to_owned(),
            review: vec!["claude-code".to_owned()],
            verify: None,
            rounds: 1,
            least: Severity::Low,
            time: 0,
            supervisor: Process { pid: 1, start: 0, space: None },
            started: Instant(0),
            steps: vec![Step { kind, round: 1, harnesses, work, session, state }],
            ended: ended.map(Instant),
            applied: applied.map(Instant),
        }
    }

    #[test]
    fn the_command_that_makes_a_pipeline_go_on_is_told_where_there_is_one() {
        use StepKind::{Fix, Implement, Review};
        let failed = || StepState::Failed { why: "stopped".to_owned() };
        let on = "`relay-mesh pipeline resume ID` goes on with it";
        let again = "`relay-mesh pipeline resume ID` does the failed step again";
        let by_another = format!("{again}; with `--review HARNESS` another reviews");
        for (record, expected) in [
            (record(Implement, StepState::Running, None, None), Some(on)),
            (record(Implement, failed(), Some(1), None), Some(again)),
            (record(Fix, failed(), Some(1), None), Some(again)),
            (record(Review, failed(), Some(1), None), Some(by_another.as_str())),
            (record(Review, failed(), Some(1), Some(2)), None),
            (record(Review, StepState::Done { open: 1 }, Some(1), None), None),
        ] {
            let expected = expected.map(|text| text.replace("ID", &record.id.to_string()));
            assert_eq!(next_of(&record, None), expected, "{record:?}");
            let there = expected.map(|text| text.replace("relay-mesh ", "relay-mesh --dir '/a b' "));
            assert_eq!(next_of(&record, Some(Path::new("/a b"))), there, "{record:?}");
            let told = PipelineLine::of(&record, false, None).text();
            assert_eq!(told.contains("pipeline resume"), there.is_some(), "{told}");
            assert!(!PipelineLine::of(&record, true, None).text().contains("resume"), "a process works on it");
        }
    }

    #[test]
    fn a_result_says_how_it_is_applied_in_the_folder_that_was_named() {
        let result =
            serde_json::json!({"pipeline": "ID", "reviewed": true, "branch": "relay/ID", "files_written": ["f"]});
        for (named, expected) in [(None, ""), (Some(Path::new("/a b")), "--dir '/a b' ")] {
            let told = PipelineShape::of(result.clone(), named).text();
            assert!(told.contains(&format!("`relay-mesh {expected}pipeline apply ID`")), "{told}");
        }
    }
}
