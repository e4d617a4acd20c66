//! `finish_command`: say how a command that was taken ended.

use mesh::command::Ended;
use schemars::JsonSchema;
use serde::Deserialize;

use super::commands::CommandTwin;
use super::send_message::message_id;
use super::{Done, Effect, Tool, Visit};
use crate::refusal::Refusal;

/// What it takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    id: String,
    result: Option<String>,
    failed: Option<bool>,
}

/// The tool.
pub(super) struct FinishCommand;

impl Tool for FinishCommand {
    const NAME: &'static str = "finish_command";
    const TITLE: &'static str = "Finish a command";
    const DESCRIPTION: &'static str = "Say how a command that you took ended, once.";
    const EFFECT: Effect = Effect::Settles;
    type Input = Input;
    type Output = CommandTwin;

    async fn run(visit: Visit, input: Input) -> Result<Done<CommandTwin>, Refusal> {
        let Some(id) = message_id(Some(&input.id))? else { return Err(Refusal::not_registered()) };
        let ended = if input.failed == Some(true) { Ended::Failed } else { Ended::Succeeded };
        let result = input.result.unwrap_or_default();
        let command = visit.mesh.finish_command(&visit.caller, id, ended, &result).await?;
        let twin = CommandTwin::of(&command, visit.mesh.machine().now());
        let text = twin.text();
        Ok(Done::new(twin, text))
    }
}
