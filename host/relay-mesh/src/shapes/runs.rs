//! What is printed of runs.

use std::path::Path;

use mesh::DryRun;
use mesh::ports::runner::RunEvent;
use mesh::runs::{RunRecord, RunReport, RunStage, Workplace, agent_label};
use serde::Serialize;
use serde_json::Value;
use view::{Timestamp, dollars};

use super::cleanup::size;
use super::reviews::{PipelineLine, ReviewLine};
use super::{counted, span};
use crate::render::{Show, printable_line, table};
use crate::runs::retention::DeletedRuns;

/// One run in a list.
#[derive(Debug, Serialize)]
pub(crate) struct RunLine {
    run: String,
    agent: String,
    harness: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// running or ended
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    reach: &'static str,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// The first line of its task.
    about: String,
    started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_files: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

impl RunLine {
    pub(crate) fn of(record: &RunRecord, stage: RunStage) -> RunLine {
        let end = record.ended.as_ref();
        RunLine {
            run: record.id.to_string(),
            agent: agent_label(&record.harness).to_owned(),
            harness: record.harness.clone(),
            name: record.agent.as_ref().map(ToString::to_string),
            state: match stage {
                RunStage::Running => "running",
                RunStage::Ended => "ended",
                RunStage::Abandoned => "abandoned",
            },
            ended: end.map(|end| end.ending.as_str()),
            ok: end.map(|end| end.ok),
            why: end.and_then(|end| end.why.clone()),
            reach: record.task.reach.as_str(),
            cwd: record.task.folder.display().to_string(),
            branch: match &record.workplace {
                Workplace::Worktree { branch, .. } => Some(branch.clone()),
                Workplace::Here { .. } => None,
            },
            about: record.about.clone(),
            started_at: Timestamp(record.started),
            ended_at: end.map(|end| Timestamp(end.at)),
            changed_files: end.map(|end| end.changed),
            applied_at: record.applied.map(Timestamp),
            cost_usd: end.and_then(|end| end.cost).map(dollars),
            by: record.by.as_ref().map(ToString::to_string),
        }
    }

    fn row(&self) -> ListRow {
        ListRow {
            id: self.run.clone(),
            who: self.harness.clone(),
            state: self.ended.unwrap_or(self.state),
            started: self.started_at,
            ended: self.ended_at,
            files: self.changed_files.unwrap_or_default(),
            about: self.about.clone(),
        }
    }
}

impl Show for RunLine {
    fn text(&self) -> String {
        let mut text = table(&HEAD, &[self.row().cells()]);
        if let Some(why) = &self.why {
            text.push_str(&format!("\n{}", printable_line(why)));
        }
        text
    }
}

/// What a list shows of a run, a review or a pipeline.
pub(crate) struct ListRow {
    pub(crate) id: String,
    pub(crate) who: String,
    pub(crate) state: &'static str,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) files: usize,
    pub(crate) about: String,
}

const HEAD: [&str; 7] = ["ID", "HARNESS", "STATE", "TOOK", "FILES", "STARTED", "TASK"];

impl ListRow {
    fn cells(&self) -> Vec<String> {
        let took = self.ended.map_or_else(String::new, |at| span(at.0.since(self.started.0)));
        let files = if self.files > 0 { self.files.to_string() } else { String::new() };
        vec![
            self.id.clone(),
            printable_line(&self.who),
            self.state.to_owned(),
            took,
            files,
            self.started.to_string(),
            printable_line(&self.about.chars().take(60).collect::<String>()),
        ]
    }
}

/// `relay-mesh runs list`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RunsShape {
    pub(crate) runs: Vec<RunLine>,
    pub(crate) reviews: Vec<ReviewLine>,
    pub(crate) pipelines: Vec<PipelineLine>,
}

impl RunsShape {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.reviews.is_empty() && self.pipelines.is_empty()
    }
}

impl Show for RunsShape {
    fn text(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut rows: Vec<ListRow> = self.runs.iter().map(RunLine::row).collect();
        rows.extend(self.reviews.iter().map(ReviewLine::row));
        rows.extend(self.pipelines.iter().map(PipelineLine::row));
        // Ids sort by the time of their start.
        rows.sort_by(|one, other| other.id.cmp(&one.id));
        table(&HEAD, &rows.iter().map(ListRow::cells).collect::<Vec<_>>())
    }
}

/// A result as it was kept.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct ResultShape(pub(crate) Value);

impl ResultShape {
    fn word(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// What it used, as far as its harness said.
    fn usage(&self) -> Option<String> {
        let usage = &self.0["usage"];
        let tokens = |name: &str, what: &str| usage[name].as_u64().map(|tokens| format!("{tokens} {what} tokens"));
        let cached = tokens("cached_input_tokens", "cached");
        let cost = usage["cost_usd"].as_f64().map(|dollars| format!("{dollars} dollars"));
        let parts: Vec<String> = [tokens("input_tokens", "input"), cached, tokens("output_tokens", "output"), cost]
            .into_iter()
            .flatten()
            .collect();
        (!parts.is_empty()).then(|| format!("used: {}", parts.join(", ")))
    }

    /// How the run ended, in one line.
    pub(crate) fn end(&self) -> String {
        let why = self.word("why");
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        printable_line(&format!("run {} ended, {}{why}", self.word("run"), self.word("ended")))
    }
}

impl Show for ResultShape {
    fn text(&self) -> String {
        let mut lines = vec![self.end()];
        for (label, name) in [
            ("session", "session"),
            ("folder", "cwd"),
            ("branch", "branch"),
            ("started", "started_at"),
            ("ended", "ended_at"),
        ] {
            let value = self.word(name);
            if !value.is_empty() {
                lines.push(format!("{label}: {}", printable_line(value)));
            }
        }
        lines.extend(self.0["duration_ms"].as_u64().map(|took| format!("took: {}", span(took))));
        lines.extend(self.usage());
        for file in self.0["artifacts"]["files_written"].as_array().into_iter().flatten() {
            lines.push(format!("wrote: {}", printable_line(file.as_str().unwrap_or_default())));
        }
        if let Some(answer) = self.0["structured"]["response"].as_str() {
            lines.push(String::new());
            lines.push(crate::render::printable(answer));
        }
        lines.join("\n")
    }
}

/// An event of a run as one line; none if it says nothing to a user.
pub(crate) fn event_line(event: &RunEvent) -> Option<String> {
    let line = match event {
        RunEvent::Session { session } => format!("session {session}"),
        RunEvent::Said { text } => return Some(crate::render::printable(text)),
        RunEvent::Tool { name, about, succeeded: None, .. } => format!("· {name} {about}"),
        RunEvent::Tool { name, succeeded: Some(false), .. } => format!("· {name} failed"),
        RunEvent::Tool { succeeded: Some(true), .. } | RunEvent::Used { .. } | RunEvent::Turns { .. } => return None,
        RunEvent::Wrote { files } => format!("· wrote {}", files.join(", ")),
        RunEvent::Denied { tool, why } => format!("· {tool} was refused: {why}"),
        RunEvent::Retries { attempt, status, .. } => {
            let status = status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
            format!("· the model's server did not answer{status}, attempt {attempt}")
        }
        RunEvent::Note { text } => format!("· {text}"),
    };
    Some(printable_line(&line))
}

/// How a run ended and what to do next, in one line.
pub(crate) fn told(report: &RunReport) -> String {
    let RunReport { record, verdict, .. } = report;
    let took = span(report.ended.since(record.started));
    let mut line = format!("run {} ended after {took}: {}", record.id, verdict.ending.as_str());
    if let Some(why) = &verdict.why {
        line.push_str(&format!(", {why}"));
    }
    let written = report.written().len();
    if written > 0 {
        let next = match &record.workplace {
            Workplace::Worktree { .. } => format!("; `relay-mesh runs apply {}` brings it here", record.id),
            Workplace::Here { .. } => String::new(),
        };
        line.push_str(&format!("; it wrote {}{next}", counted(written, "file")));
    }
    printable_line(&line)
}

/// `relay-mesh runs apply`.
#[derive(Debug, Serialize)]
pub(crate) struct AppliedShape {
    run: String,
    folder: String,
    files: usize,
    worktree_removed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<String>,
}

impl AppliedShape {
    pub(crate) fn of(record: &RunRecord, top: &Path, removed: bool) -> AppliedShape {
        let worktree = match &record.workplace {
            Workplace::Worktree { folder, .. } if !removed => Some(folder.display().to_string()),
            Workplace::Worktree { .. } | Workplace::Here { .. } => None,
        };
        AppliedShape {
            run: record.id.to_string(),
            folder: top.display().to_string(),
            files: record.ended.as_ref().map_or(0, |end| end.changed),
            worktree_removed: removed,
            worktree,
        }
    }
}

impl Show for AppliedShape {
    fn text(&self) -> String {
        let applied = format!("applied {} to {}", counted(self.files, "file"), printable_line(&self.folder));
        match &self.worktree {
            Some(worktree) => format!("{applied}; the worktree {} stays", printable_line(worktree)),
            None => applied,
        }
    }
}

/// `relay-mesh runs gc`.
#[derive(Debug, Serialize)]
pub(crate) struct DeletedRunsShape {
    dry_run: bool,
    runs: usize,
    bytes: u64,
    /// Worktrees that hold work which was never applied.
    kept: Vec<String>,
}

impl DeletedRunsShape {
    pub(crate) fn of(deleted: &DeletedRuns, dry_run: DryRun) -> DeletedRunsShape {
        let dry_run = match dry_run {
            DryRun::Yes => true,
            DryRun::No => false,
        };
        let DeletedRuns { runs, kept } = deleted.clone();
        DeletedRunsShape { dry_run, runs: runs.count, bytes: runs.bytes, kept }
    }
}

impl Show for DeletedRunsShape {
    fn text(&self) -> String {
        let verb = if self.dry_run { "would remove" } else { "removed" };
        let mut lines = vec![match self.runs {
            0 => "no run is old enough to be deleted".to_owned(),
            runs => format!("{verb} {}, {}", counted(runs, "run"), size(self.bytes)),
        }];
        lines.extend(self.kept.iter().map(|kept| format!("{} holds work and stays", printable_line(kept))));
        lines.join("\n")
    }
}
