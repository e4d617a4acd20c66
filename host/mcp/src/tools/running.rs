//! What the tools about runs and reviews share: waiting for an end, with progress for the client, and short results.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::ToolCall;
use crate::run_host::{RunHost, RunKind, RunProgress, RunRefusal, longest_hold};
use crate::tool_error::ToolError;

/// Interval of progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// How often to look whether it has ended.
const LOOK: Duration = Duration::from_millis(100);
/// The longest difference in a short result, in bytes.
const LONGEST_DIFF: usize = 16 * 1024;

/// How waiting for a run ended.
pub(super) enum Waited {
    /// It has ended, with this result.
    Ended(Value),
    /// The time is up, and it goes on.
    StillRuns(RunProgress),
    /// The client cancelled the call or has left.
    Left,
}

// How a run or a review stands, for tools that give a handle.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RunStateOutput {
    /// its id
    run: String,
    /// running or ended
    state: &'static str,
    events: u64,
    /// what it does now
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<String>,
    /// once it has ended
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

impl ToolCall {
    /// What starts runs.
    pub(crate) fn runs(&self) -> Result<Arc<dyn RunHost>, ToolError> {
        self.runs.clone().ok_or_else(|| ToolError::new("this server starts no runs", "Ask your user to start another."))
    }

    /// Waits for the end of a run or a review, at most this long, and tells the client every 10 s what it does.
    pub(super) async fn wait_for_end(&self, id: &str, most: Duration) -> Result<Waited, ToolError> {
        let host = self.runs()?;
        let began = Instant::now();
        let mut signs = tokio::time::interval_at(began + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
        loop {
            let progress = host.look(&self.caller, id).await?;
            if let Some(result) = progress.result {
                return Ok(Waited::Ended(result));
            }
            if began.elapsed() >= most {
                return Ok(Waited::StillRuns(progress));
            }
            let pause = LOOK.min(most.saturating_sub(began.elapsed()));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.wait.cancelled.cancelled() => return Ok(Waited::Left),
                () = self.wait.closing.cancelled() => return Ok(Waited::Left),
                () = self.wait.reader_gone.cancelled() => return Ok(Waited::Left),
                _ = signs.tick() => self.wait.report_progress(began.elapsed(), None, &doing(&progress)).await,
            }
        }
    }

    /// How long this call may be held for a client that wants to wait this many seconds.
    pub(super) fn hold(&self, seconds: Option<u64>) -> Duration {
        Duration::from_secs(seconds.unwrap_or(0)).min(longest_hold(self.wait.progress.is_some()))
    }

    /// How a run stands after waiting for it.
    pub(super) async fn state_after(
        &self,
        id: &str,
        seconds: Option<u64>,
        detail: Detail,
    ) -> Result<RunStateOutput, ToolError> {
        let (progress, result) = match self.wait_for_end(id, self.hold(seconds)).await? {
            Waited::Ended(result) => (None, Some(result)),
            Waited::StillRuns(progress) => (Some(progress), None),
            Waited::Left => (Some(self.runs()?.look(&self.caller, id).await?), None),
        };
        let events = progress.as_ref().map_or(0, |progress| progress.events);
        let reported = result.as_ref().and_then(|result| result.pointer("/structured/events")?.as_array());
        Ok(RunStateOutput {
            run: id.to_owned(),
            state: if result.is_some() { "ended" } else { "running" },
            events: reported.map_or(events, |events| events.len() as u64),
            doing: progress.map(|progress| progress.doing),
            result: result.map(|result| match detail {
                Detail::Whole => result,
                Detail::Short => short(&result),
            }),
        })
    }
}

/// How much of a result is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    Short,
    Whole,
}

impl RunStateOutput {
    /// The same for a model that sees only text.
    pub(super) fn text(&self) -> String {
        match &self.result {
            Some(result) => format!("{} has ended\n{result}", self.run),
            None => format!(
                "{} runs ({} events; {}); run_result waits for it, and its result comes by mail",
                self.run,
                self.events,
                self.doing.as_deref().unwrap_or("nothing is reported yet")
            ),
        }
    }
}

/// What a run does, in one line.
fn doing(progress: &RunProgress) -> String {
    let what = match progress.kind {
        RunKind::Run => "run",
        RunKind::Review => "review",
    };
    format!("{what} {}: {} events, {}", progress.id, progress.events, progress.doing)
}

/// A result without what costs context and tells a model little: raw output, and each single event.
pub(super) fn short(result: &Value) -> Value {
    const KEPT: [&str; 17] = [
        "run",
        "harness",
        "ok",
        "ended",
        "why",
        "output",
        "session",
        "reach",
        "cwd",
        "folder",
        "branch",
        "usage",
        "denials",
        "without",
        "notes",
        "retry_after",
        "duration_ms",
    ];
    if result.get("findings").is_some() {
        return result.clone();
    }
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let mut kept: Map<String, Value> = Map::new();
    for (name, value) in result.as_object().into_iter().flatten() {
        if KEPT.contains(&name.as_str()) && !empty(value) {
            kept.insert(name.clone(), value.clone());
        }
    }
    for (name, pointer) in [
        ("response", "/structured/response"),
        ("files_written", "/artifacts/files_written"),
        ("files_deleted", "/artifacts/files_deleted"),
    ] {
        if let Some(value) = result.pointer(pointer).filter(|value| !empty(value)) {
            kept.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(diff) = result.pointer("/artifacts/git_diff").and_then(Value::as_str).filter(|diff| !diff.is_empty()) {
        let end = (0..=LONGEST_DIFF.min(diff.len())).rev().find(|end| diff.is_char_boundary(*end)).unwrap_or(0);
        let cut = if end < diff.len() { "\n[cut; ask with whole for all of it]" } else { "" };
        kept.insert("git_diff".to_owned(), format!("{}{cut}", &diff[..end]).into());
    }
    Value::Object(kept)
}

impl From<RunRefusal> for ToolError {
    fn from(refusal: RunRefusal) -> ToolError {
        let sentence = |text: String| {
            let mut letters = text.chars();
            let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
            format!("{first}{}.", letters.as_str())
        };
        ToolError::new(refusal.what, refusal.next.map_or_else(|| "Tell your user.".to_owned(), sentence))
    }
}
