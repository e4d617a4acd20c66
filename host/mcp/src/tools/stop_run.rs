//! `stop_run`: end a run or a review, with everything that it started.

use schemars::JsonSchema;
use serde::Deserialize;

use super::running::{Detail, RunStateOutput};
use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// the id
    run: String,
}

pub(super) struct StopRun;

impl Tool for StopRun {
    const NAME: &'static str = "stop_run";
    const TITLE: &'static str = "Stop a run";
    const DESCRIPTION: &'static str = "End a run or review that you started, with everything that it started.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = RunStateOutput;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<RunStateOutput>, ToolError> {
        call.runs()?.stop(&call.caller, &input.run).await?;
        let state = call.state_after(&input.run, Some(10), Detail::Short).await?;
        let text = state.text();
        Ok(ToolOutput::new(state, text))
    }
}
