//! What is printed of reviews and pipelines.

use mesh::reviews::ReviewRecord;
use serde::Serialize;
use serde_json::Value;

use crate::render::{Show, printable, printable_line};

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
        let mut last =
            format!("review {} of {}: {standing} findings stand", word(result, "review"), word(result, "subject"));
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
pub(crate) struct ReviewBegun {
    review: String,
    /// running or ended
    state: &'static str,
    reviewers: Vec<String>,
}

impl ReviewBegun {
    pub(crate) fn of(record: &ReviewRecord) -> ReviewBegun {
        ReviewBegun {
            review: record.id.to_string(),
            state: if record.ended.is_some() { "ended" } else { "running" },
            reviewers: record.reviewers.clone(),
        }
    }
}

impl Show for ReviewBegun {
    fn text(&self) -> String {
        format!("review {} is {}: {}", self.review, self.state, printable_line(&self.reviewers.join(", ")))
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

/// The result of a pipeline.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct PipelineShape(pub(crate) Value);

impl Show for PipelineShape {
    fn text(&self) -> String {
        let result = &self.0;
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
        if result["branch"].is_string()
            && list(result, "files_written").chain(list(result, "files_deleted")).count() > 0
        {
            lines.push(format!("`relay-mesh pipeline apply {id}` brings it here"));
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
