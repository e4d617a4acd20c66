//! `send_command`: ask an agent to run a command.

use mesh::Order;
use mesh::commands::{CommandName, InvalidCommand};
use schemars::JsonSchema;
use serde::Deserialize;
use view::CommandView;

use super::{Effect, List, Tool, ToolCall, ToolOutput};
use crate::tool_error::ToolError;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// exact name
    to: String,
    /// as /review
    command: String,
    arguments: Option<List>,
    /// how long it may wait; default 60
    minutes: Option<u32>,
}

pub(super) struct SendCommand;

impl Tool for SendCommand {
    const NAME: &'static str = "send_command";
    const TITLE: &'static str = "Send a command";
    const DESCRIPTION: &'static str = "Ask an agent to run a command; it decides whether it does. See command_status.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = CommandView;

    async fn run(call: ToolCall, input: Input) -> Result<ToolOutput<CommandView>, ToolError> {
        let command: CommandName = input
            .command
            .parse()
            .map_err(|error: InvalidCommand| ToolError::new(error.to_string(), "Write it as `/review`."))?;
        let order = Order {
            to: input.to,
            command,
            arguments: input.arguments.unwrap_or_default().0,
            ttl: input.minutes.map(|minutes| u64::from(minutes) * 60_000),
        };
        call.has_read().await;
        let sent = call.mesh.order(&call.caller, order).await?;
        Ok(CommandView::of(&sent, call.mesh.machine().now()).into())
    }
}
