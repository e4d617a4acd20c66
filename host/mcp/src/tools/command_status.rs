//! `command_status`: what became of a command.

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
}

/// The tool.
pub(super) struct CommandStatus;

impl Tool for CommandStatus {
    const NAME: &'static str = "command_status";
    const TITLE: &'static str = "What became of a command";
    const DESCRIPTION: &'static str = "Where a command of yours stands, with its result.";
    const EFFECT: Effect = Effect::Reads;
    type Input = Input;
    type Output = CommandTwin;

    async fn run(visit: Visit, input: Input) -> Result<Done<CommandTwin>, Refusal> {
        let agent = visit.agent()?;
        let Some(id) = message_id(Some(&input.id))? else { return Err(Refusal::not_registered()) };
        let command = visit.mesh.command(id).await.map_err(mesh::TakeError::from)?;
        let yours = command.filter(|command| command.from == agent || command.to == agent);
        let Some(command) = yours else {
            let what = format!("no command `{id}` was sent by you or to you");
            return Err(Refusal::new(what, "Use the id that send_command gave you."));
        };
        let twin = CommandTwin::of(&command, visit.mesh.machine().now());
        let text = twin.text();
        Ok(Done::new(twin, text))
    }
}
