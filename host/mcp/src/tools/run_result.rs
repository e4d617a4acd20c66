//! `run_result`: what came of a run or a review, or how it goes.

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
    /// wait for its end, up to 240
    wait_seconds: Option<u64>,
    /// also its raw output and every event
    whole: Option<bool>,
}

pub(super) struct RunResult;

impl Tool for RunResult {
    const NAME: &'static str = "run_result";
    const TITLE: &'static str = "Result of a run";
    const DESCRIPTION: &'static str = "Show what came of a run or review that you started, or how it goes.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = RunStateOutput;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<RunStateOutput>, ToolError> {
        let detail = if input.whole == Some(true) { Detail::Whole } else { Detail::Short };
        let state = call.state_after(&input.run, input.wait_seconds, detail).await?;
        let text = state.text();
        Ok(ToolOutput::new(state, text))
    }
}
