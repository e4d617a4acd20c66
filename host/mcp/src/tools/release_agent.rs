//! `release_agent`: dismiss an agent that one has had started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::spawn_host::ReleaseAnswer;
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    agent: String,
    /// have it sum up first
    #[serde(default)]
    summary: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// ended or ending
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

pub(super) struct ReleaseAgent;

impl Tool for ReleaseAgent {
    const NAME: &'static str = "release_agent";
    const TITLE: &'static str = "Dismiss an agent";
    const DESCRIPTION: &'static str = "End an agent that you have had started, with everything that it started.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = Output;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<Output>, ToolError> {
        call.agent()?;
        let most = call.hold(Some(u64::MAX));
        let answer = call.spawns()?.release(&call.caller, &input.agent, input.summary, most).await?;
        Ok(match answer {
            ReleaseAnswer::Ended(summary) => {
                let text = summary.clone().unwrap_or_else(|| "it has ended".to_owned());
                ToolOutput::new(Output { state: "ended", summary }, text)
            }
            ReleaseAnswer::Ending => {
                let text = "it is ending; call again for its summary".to_owned();
                ToolOutput::new(Output { state: "ending", summary: None }, text)
            }
        })
    }
}
