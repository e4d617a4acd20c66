//! Commands that agents ask one another to run.

use mesh::commands::{Command, CommandStage, CommandStatus};
use mesh::ports::machine::Instant;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use crate::Timestamp;

// A command.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CommandView {
    pub id: String,
    pub from: String,
    pub to: String,
    // With its slash.
    pub command: String,
    pub arguments: Vec<String>,
    /// pending, running, done, failed, expired or unknown
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// why its session does not run it by itself
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
}

impl CommandView {
    /// A command at a time.
    pub fn of(command: &Command, now: Instant) -> CommandView {
        CommandView {
            id: command.id.to_string(),
            from: command.from.to_string(),
            to: command.to.to_string(),
            command: command.command.to_string(),
            arguments: command.arguments.clone(),
            status: command.standing(now).as_str(),
            result: command.result(now).map(str::to_owned),
            waits: command.waits().map(str::to_owned),
        }
    }

    /// The command with its arguments, as it would be typed.
    pub fn line(&self) -> String {
        let words = std::iter::once(self.command.as_str()).chain(self.arguments.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" ")
    }
}

// A command with what scripts ask for.
#[derive(Clone, Debug, Serialize)]
pub struct CommandDetail {
    #[serde(flatten)]
    pub command: CommandView,
    // When it was asked for.
    pub created: Timestamp,
    // Until when it may be taken.
    pub expires: Timestamp,
    // When it was taken, or when it ended, by its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    // What in the session runs it or ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    // What proves that it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<serde_json::Value>,
    // The state, for a table's "12 s left" or "2 h ago".
    #[serde(skip)]
    pub standing: CommandStatus,
}

impl CommandDetail {
    /// A command at a time.
    pub fn of(command: &Command, now: Instant) -> CommandDetail {
        let since = match &command.stage {
            CommandStage::Pending { .. } => None,
            CommandStage::Running { at, .. } | CommandStage::Done { at, .. } => Some(Timestamp(*at)),
        };
        CommandDetail {
            command: CommandView::of(command, now),
            created: Timestamp(command.created),
            expires: Timestamp(command.expires),
            since,
            by: command.run().map(|run| run.by.clone()),
            evidence: command.run().and_then(|run| run.evidence.clone()),
            standing: command.standing(now),
        }
    }
}
