//! Runs: one result, the same for the command line, for MCP and on disk.

use mesh::ports::runner::{Denial, Usage};
use mesh::runs::{RunReport, UsageScope, Workplace, agent_label};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{MessageView, Timestamp};

// The whole result of a run. The first fields are those of the specification that runners are held against.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RunView {
    /// claude, codex, gemini, or the harness's name
    pub agent: String,
    pub mode: &'static str,
    /// where it worked
    pub cwd: String,
    pub ok: bool,
    pub exit_code: Option<i32>,
    /// the signal that ended its process
    pub signal: Option<i32>,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub duration_ms: u64,
    pub stdout: String,
    pub stderr: String,
    pub structured: StructuredView,
    pub artifacts: ArtifactsView,
    pub usage: UsageView,
    /// answered, turns, cost, shape, login, limited, provider, denied, stopped, time or broke-off
    pub ended: &'static str,
    /// one sentence about an end that is no answer
    pub why: Option<String>,
    pub session: Option<String>,
    /// the answer by the schema
    pub output: Option<Value>,
    pub turns: Option<u32>,
    pub denials: Vec<DenialView>,
    /// seconds until a retry could succeed
    pub retry_after: Option<u64>,
    pub run: String,
    pub harness: String,
    /// its name in the mesh
    pub name: Option<String>,
    /// the agent that started it
    pub by: Option<String>,
    pub reach: &'static str,
    /// the folder that was named, if it worked in a worktree
    pub folder: Option<String>,
    pub branch: Option<String>,
    /// what the harness could not keep
    pub without: Vec<String>,
    /// what was left out, and what else to know
    pub notes: Vec<String>,
    /// mail that it never read
    pub mail: Vec<MessageView>,
}

// What it said.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StructuredView {
    /// what the model said last
    pub response: Option<String>,
    pub events: Vec<Value>,
}

// What it left.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ArtifactsView {
    pub files_written: Vec<String>,
    pub files_deleted: Vec<String>,
    /// none outside of a repository
    pub git_diff: Option<String>,
}

// What it used.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct UsageView {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cached_input_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    /// run or session
    pub scope: Option<&'static str>,
}

// A tool call that was refused.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DenialView {
    pub tool: String,
    pub why: String,
}

impl From<&Denial> for DenialView {
    fn from(denial: &Denial) -> DenialView {
        DenialView { tool: denial.tool.clone(), why: denial.why.clone() }
    }
}

impl UsageView {
    /// The figures of a usage, and what they cover.
    pub fn of((usage, scope): &(Option<Usage>, UsageScope)) -> UsageView {
        let Some(usage) = usage else { return UsageView::default() };
        UsageView {
            input_tokens: Some(usage.input),
            output_tokens: Some(usage.output),
            cached_input_tokens: Some(usage.cached_input),
            reasoning_tokens: usage.reasoning,
            cost_usd: usage.cost.map(dollars),
            scope: Some(match scope {
                UsageScope::Run => "run",
                UsageScope::Session => "session",
            }),
        }
    }
}

/// Millionths of a dollar as dollars.
#[expect(clippy::cast_precision_loss, reason = "no run costs so much that a millionth of it is lost")]
pub fn dollars(millionths: u64) -> f64 {
    millionths as f64 / 1_000_000.0
}

impl From<&RunReport> for RunView {
    fn from(report: &RunReport) -> RunView {
        let RunReport { record, outcome, exit, verdict, .. } = report;
        let (folder, branch) = match &record.workplace {
            Workplace::Here { .. } => (None, None),
            Workplace::Worktree { branch, .. } => {
                (Some(record.asked_folder.display().to_string()), Some(branch.clone()))
            }
        };
        let changes = report.changes.as_ref();
        RunView {
            agent: agent_label(&record.harness).to_owned(),
            mode: "headless",
            cwd: record.task.folder.display().to_string(),
            ok: verdict.ok,
            exit_code: exit.code,
            signal: exit.signal,
            started_at: Timestamp(record.started),
            ended_at: Timestamp(report.ended),
            duration_ms: report.ended.since(record.started),
            stdout: report.stdout.clone(),
            stderr: exit.stderr_end.clone(),
            structured: StructuredView {
                response: outcome.answer.clone(),
                events: report.events.iter().filter_map(|event| serde_json::to_value(event).ok()).collect(),
            },
            artifacts: ArtifactsView {
                files_written: report.written(),
                files_deleted: changes.map(|changes| changes.deleted.clone()).unwrap_or_default(),
                git_diff: changes.map(|changes| changes.diff.clone()),
            },
            usage: UsageView::of(&report.usage),
            ended: verdict.ending.as_str(),
            why: verdict.why.clone(),
            session: outcome.session.clone(),
            output: verdict.output.clone(),
            turns: outcome.turns,
            denials: outcome.denials.iter().map(DenialView::from).collect(),
            retry_after: outcome.retry_after.map(|span| span.as_secs()),
            run: record.id.to_string(),
            harness: record.harness.clone(),
            name: record.agent.as_ref().map(ToString::to_string),
            by: record.by.as_ref().map(ToString::to_string),
            reach: record.task.reach.as_str(),
            folder,
            branch,
            without: record.launch.as_ref().map(|launch| launch.without.clone()).unwrap_or_default(),
            notes: report.notes.clone(),
            mail: report.mail.iter().map(MessageView::from).collect(),
        }
    }
}
