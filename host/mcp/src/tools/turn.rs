//! What the tools that talk with another agent share: waiting for a turn's end, and its result.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use super::{ToolCall, ToolOutput};
use crate::run_host::longest_hold;
use crate::thread_host::{ThreadCall, ThreadHost, TurnReport, TurnState};
use crate::tool_error::ToolError;

/// Interval of progress notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// How long the end of a turn that is stopped may take.
const STOPS: Duration = Duration::from_secs(20);
/// Clients that wait for as long as they hear of progress. Any other is given a handle before it gives up.
const PATIENT: [&str; 1] = ["claude-code"];

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TurnOutput {
    thread_id: String,
    content: String,
    /// unless the turn completed: running, waits, interrupted or timed-out
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

impl ToolCall {
    /// What talks with other agents.
    pub(super) fn threads(&self) -> Result<Arc<dyn ThreadHost>, ToolError> {
        self.threads.clone().ok_or_else(|| {
            ToolError::new("this server talks with no other agents", "Ask your user to start one that does.")
        })
    }

    fn turn_hold(&self) -> Option<Duration> {
        let hears = self.wait.progress.is_some();
        let is_patient = self.caller.session().is_some_and(|session| PATIENT.contains(&session.harness.as_str()));
        (!(hears && is_patient)).then(|| longest_hold(hears))
    }
}

/// Waits for the turn's end for as long as the client does. A client that cancels the call stops the turn.
pub(super) async fn answered(call: &ToolCall, begun: ThreadCall) -> Result<ToolOutput<TurnOutput>, ToolError> {
    let host = call.threads()?;
    let (began, hold) = (Instant::now(), call.turn_hold());
    let mut signs = tokio::time::interval_at(began + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    let finished = host.finish(&begun);
    tokio::pin!(finished);
    loop {
        tokio::select! {
            report = &mut finished => return Ok(told(report?)),
            () = call.wait.cancelled.cancelled() => {
                host.interrupt(&begun).await?;
                let stopped = tokio::time::timeout(STOPS, finished).await;
                return Ok(told(match stopped {
                    Ok(report) => report?,
                    Err(_) => host.look(&begun).await?,
                }));
            }
            () = call.wait.closing.cancelled() => return Ok(told(host.look(&begun).await?)),
            () = call.wait.reader_gone.cancelled() => return Ok(told(host.look(&begun).await?)),
            () = until(hold.map(|hold| began + hold)) => return Ok(told(host.look(&begun).await?)),
            _ = signs.tick() => call.wait.report_progress(began.elapsed(), None, "the agent works").await,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn told(report: TurnReport) -> ToolOutput<TurnOutput> {
    let TurnReport { thread, content, state } = report;
    let status = match state {
        TurnState::Completed => None,
        TurnState::Running => Some("running"),
        TurnState::Waits => Some("waits"),
        TurnState::Interrupted => Some("interrupted"),
        TurnState::TimedOut => Some("timed-out"),
    };
    let content = mesh::harmless(&content);
    ToolOutput::new(TurnOutput { thread_id: thread, content: content.clone(), status }, content)
}
