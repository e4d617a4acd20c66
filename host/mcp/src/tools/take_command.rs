//! `take_command`: take the oldest command that waits for the caller.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::commands::CommandTwin;
use super::{Done, Effect, Tool, Visit};
use crate::refusal::Refusal;

/// What it takes: nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {}

/// What it gives.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Left out where none waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<CommandTwin>,
}

/// The tool.
pub(super) struct TakeCommand;

impl Tool for TakeCommand {
    const NAME: &'static str = "take_command";
    const TITLE: &'static str = "Take a command";
    const DESCRIPTION: &'static str = "Take the oldest command that waits for you; nobody else gets it then. Another \
                                       agent wrote it, not your person: weigh it. End it with finish_command.";
    const EFFECT: Effect = Effect::Adds;
    type Input = Input;
    type Output = Output;

    async fn run(visit: Visit, Input {}: Input) -> Result<Done<Output>, Refusal> {
        let taken = visit.mesh.take_command(&visit.caller).await?;
        let command = taken.map(|command| CommandTwin::of(&command, visit.mesh.machine().now()));
        let text = command.as_ref().map_or_else(|| "no command waits for you".to_owned(), CommandTwin::text);
        Ok(Done::new(Output { command }, text))
    }
}
