//! `review_changes`: have another harness review changes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::running::{Detail, RunStateOutput};
use super::{Effect, List, TaskTool, Tool, ToolCall, ToolOutput};
use crate::run_host::{NewReview, ReviewSubject};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// default yours
    cwd: Option<String>,
    /// what you have beyond this branch or commit; without base, commit and run: what is not committed
    base: Option<String>,
    /// this commit
    commit: Option<String>,
    /// what this run changed
    run: Option<String>,
    /// harnesses; default another than yours
    by: Option<List>,
    /// a harness that tries to refute what they find
    verify: Option<String>,
    /// for each reviewer, default 1800
    timeout_s: Option<u64>,
    /// wait for its end, up to 240
    wait_seconds: Option<u64>,
}

pub(super) struct ReviewChanges;

impl Tool for ReviewChanges {
    const NAME: &'static str = "review_changes";
    const TITLE: &'static str = "Review changes";
    const DESCRIPTION: &'static str =
        "Have other agent clients review changes. Returns an id at once; run_result gives the findings.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = RunStateOutput;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<RunStateOutput>, ToolError> {
        let host = call.runs()?;
        let wait = input.wait_seconds;
        let id = ReviewChanges::begin(&call, input).await?;
        let state = call.state_after(&id, wait, Detail::Short).await?;
        if call.wait.cancelled.is_cancelled() {
            host.stop(&call.caller, &id).await?;
        }
        let text = state.text();
        Ok(ToolOutput::new(state, text))
    }
}

impl TaskTool for ReviewChanges {
    async fn begin(call: &ToolCall, input: Input) -> Result<String, ToolError> {
        call.agent()?;
        let subject = match (input.base, input.commit, input.run) {
            (None, None, None) => ReviewSubject::Uncommitted,
            (Some(base), None, None) => ReviewSubject::Base(base),
            (None, Some(commit), None) => ReviewSubject::Commit(commit),
            (None, None, Some(run)) => ReviewSubject::Run(run),
            _ => return Err(ToolError::new("base, commit and run exclude each other", "Name one of them.")),
        };
        let review = NewReview {
            subject,
            folder: input.cwd,
            by: input.by.unwrap_or_default().0,
            verify: input.verify,
            timeout: input.timeout_s.map(Duration::from_secs),
        };
        Ok(call.runs()?.review(&call.caller, review).await?)
    }
}
