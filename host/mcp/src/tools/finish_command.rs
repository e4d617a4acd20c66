//! `finish_command`: reports how a command that was taken ended.

use mesh::commands::Ended;
use schemars::JsonSchema;
use serde::Deserialize;
use view::CommandView;

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    id: String,
    result: Option<String>,
    failed: Option<bool>,
}

pub(super) struct FinishCommand;

impl Tool for FinishCommand {
    const NAME: &'static str = "finish_command";
    const TITLE: &'static str = "Finish a command";
    const DESCRIPTION: &'static str = "Report, once, how a command that you took ended.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = CommandView;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<CommandView>, ToolError> {
        let id = call.id(&input.id).await?;
        let ended = if input.failed == Some(true) { Ended::Failed } else { Ended::Done };
        let result = input.result.unwrap_or_default();
        let command = call.mesh.finish_command(&call.caller, id, ended, &result).await?;
        Ok(CommandView::of(&command, call.mesh.machine().now()).into())
    }
}
