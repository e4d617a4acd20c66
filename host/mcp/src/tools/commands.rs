//! Commands as clients see them.

use mesh::command::{Command, Stage};
use mesh::machine::Instant;
use schemars::JsonSchema;
use serde::Serialize;

use crate::twins::quoted;

/// A command.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CommandTwin {
    id: String,
    from: String,
    to: String,
    command: String,
    arguments: Vec<String>,
    /// pending, expired, consumed, unknown, succeeded or failed
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// why its session does not run it by itself
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
}

impl CommandTwin {
    pub(super) fn of(command: &Command, now: Instant) -> CommandTwin {
        let result = match &command.stage {
            Stage::Pending { .. } | Stage::Consumed { .. } => None,
            Stage::Done { result, .. } => Some(result.clone()),
        };
        CommandTwin {
            id: command.id.to_string(),
            from: command.from.to_string(),
            to: command.to.to_string(),
            command: command.command.to_string(),
            arguments: command.arguments.clone(),
            state: command.standing(now).as_str(),
            result,
            waits: command.waits().map(str::to_owned),
        }
    }

    /// What models read. Its words are another agent's, and so they stand in quotes.
    pub(super) fn text(&self) -> String {
        let CommandTwin { id, from, to, command, arguments, state, result, waits } = self;
        let line = std::iter::once(command.as_str()).chain(arguments.iter().map(String::as_str));
        let line = quoted(&line.collect::<Vec<_>>().join(" "));
        let result = result.as_ref().map_or_else(String::new, |result| format!(": {}", quoted(result)));
        let waits = waits.as_ref().map_or_else(String::new, |waits| format!(", for {waits}"));
        format!("{id} from {from} for {to}: {line} is {state}{waits}{result}")
    }
}
