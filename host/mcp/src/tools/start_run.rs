//! `start_run`: give a task to another harness.

use std::time::Duration;

use mesh::ports::runner::{InvalidReach, Reach};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::running::{Detail, RunStateOutput};
use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::run_host::{NewRun, Tie};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// claude, codex, gemini, opencode
    harness: String,
    task: String,
    /// default yours
    cwd: Option<String>,
    /// look (default), edit, work or unguarded; from edit on it works in a worktree
    reach: Option<String>,
    /// a JSON schema of its answer
    schema: Option<serde_json::Map<String, Value>>,
    /// a session of that harness to continue
    resume: Option<String>,
    model: Option<String>,
    /// default 1800
    timeout_s: Option<u64>,
    max_turns: Option<u32>,
    /// wait for its end, up to 240
    wait_seconds: Option<u64>,
}

pub(super) struct StartRun;

impl Tool for StartRun {
    const NAME: &'static str = "start_run";
    const TITLE: &'static str = "Start a run";
    const DESCRIPTION: &'static str = "Give a task to another agent client. Returns an id at once; the result comes to \
                                       you by mail, or by run_result.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = RunStateOutput;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<RunStateOutput>, ToolError> {
        call.agent()?;
        let reach = input.reach.as_deref().map(str::parse::<Reach>).transpose();
        let reach = reach.map_err(|error: InvalidReach| ToolError::new(error.to_string(), "Leave it out to look."))?;
        let run = NewRun {
            harness: input.harness,
            task: input.task,
            folder: input.cwd,
            reach: reach.unwrap_or_default(),
            resume: input.resume,
            model: input.model,
            schema: input.schema.map(Value::Object),
            timeout: input.timeout_s.map(Duration::from_secs),
            turns: input.max_turns,
            tie: Tie::Free,
            ..NewRun::default()
        };
        let host = call.runs()?;
        let id = host.start(&call.caller, run).await?;
        let state = call.state_after(&id, input.wait_seconds, Detail::Short).await?;
        if call.wait.cancelled.is_cancelled() {
            host.stop(&call.caller, &id).await?;
        }
        let text = state.text();
        Ok(ToolOutput::new(state, text))
    }
}
