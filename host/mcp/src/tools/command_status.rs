//! `command_status`: the status of a command.

use schemars::JsonSchema;
use serde::Deserialize;
use view::CommandView;

use super::{Effect, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    id: String,
}

pub(super) struct CommandStatus;

impl Tool for CommandStatus {
    const NAME: &'static str = "command_status";
    const TITLE: &'static str = "Command status";
    const DESCRIPTION: &'static str = "The status of a command of yours, with its result.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = CommandView;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<CommandView>, ToolError> {
        let agent = call.agent()?;
        let id = call.id(&input.id).await?;
        let command = call.mesh.command(id).await.map_err(mesh::TakeError::from)?;
        let yours = command.filter(|command| command.from == agent || command.to == agent);
        let Some(command) = yours else {
            let what = format!("no command `{id}` was sent by you or to you");
            return Err(ToolError::new(what, "Use the id that send_command gave you."));
        };
        Ok(CommandView::of(&command, call.mesh.machine().now()).into())
    }
}
