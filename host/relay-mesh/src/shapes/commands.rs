//! Commands: `cmd`, `cmd take`, `cmd done`, `cmd list`, and the table in `status`.

use std::path::Path;

use mesh::commands::{Command, CommandStatus};
use mesh::ports::consent::Consent;
use mesh::ports::machine::Instant;
use serde::Serialize;

pub(crate) use view::CommandDetail as CommandShape;

use super::{ago, span};
use crate::render::{Show, printable, printable_line, table};

impl Show for CommandShape {
    fn text(&self) -> String {
        let command = &self.command;
        let by = self.by.as_ref().map(|by| format!(" by {}", printable_line(by))).unwrap_or_default();
        let mut text = format!(
            "{}  {} → {}  {}{by}  {}",
            command.id,
            command.from,
            command.to,
            command.status,
            printable_line(&command.line())
        );
        for line in printable(command.result.as_deref().unwrap_or_default()).lines() {
            text.push_str(&format!("\n  {line}"));
        }
        text
    }
}

/// What the WHEN column shows: the time that is left, or the time since the last change.
fn when(command: &CommandShape, now: Instant) -> String {
    match command.standing {
        CommandStatus::Pending => format!("{} left", span(command.expires.0.since(now))),
        CommandStatus::Expired => ago(command.expires.0, now),
        CommandStatus::Running | CommandStatus::Unknown | CommandStatus::Done | CommandStatus::Failed => {
            ago(command.since.unwrap_or(command.created).0, now)
        }
    }
}

/// `relay-mesh cmd list`.
#[derive(Debug, Serialize)]
pub(crate) struct CommandsShape {
    /// Oldest first.
    pub(crate) commands: Vec<CommandShape>,
    /// The current time, for "2 h ago".
    #[serde(skip)]
    now: Instant,
}

impl CommandsShape {
    pub(crate) fn of(commands: &[Command], now: Instant) -> CommandsShape {
        CommandsShape { commands: commands.iter().map(|command| CommandShape::of(command, now)).collect(), now }
    }
}

impl Show for CommandsShape {
    fn text(&self) -> String {
        if self.commands.is_empty() {
            return String::new();
        }
        let waits = self.commands.iter().filter_map(|one| {
            let why = printable_line(one.command.waits.as_deref()?);
            Some(format!("\n{} waits: {why}", one.command.id))
        });
        std::iter::once(commands_table(&self.commands, self.now)).chain(waits).collect()
    }
}

/// The table that `cmd list` and `status` show.
pub(crate) fn commands_table(commands: &[CommandShape], now: Instant) -> String {
    let row = |one: &CommandShape| {
        let command = &one.command;
        let (id, from, to) = (command.id.clone(), command.from.clone(), command.to.clone());
        vec![id, from, to, command.status.to_owned(), when(one, now), printable_line(&command.line())]
    };
    table(&["ID", "FROM", "FOR", "STATE", "WHEN", "COMMAND"], &commands.iter().map(row).collect::<Vec<_>>())
}

/// A permission that the user gave.
#[derive(Debug, Serialize)]
pub(crate) struct ConsentShape {
    /// The agent whose commands are allowed.
    from: String,
    /// The command; every command if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The agent in whose session they run; every agent of the user if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
}

impl ConsentShape {
    pub(crate) fn of(consent: &Consent) -> ConsentShape {
        let Consent { from, command, to } = consent;
        ConsentShape {
            from: from.to_string(),
            command: command.as_ref().map(ToString::to_string),
            to: to.as_ref().map(ToString::to_string),
        }
    }
}

impl Show for ConsentShape {
    fn text(&self) -> String {
        let command = self.command.as_deref().unwrap_or("every command");
        let to = self.to.as_deref().unwrap_or("every agent here");
        format!("{} may run {command} in the session of {to}", self.from)
    }
}

/// `relay-mesh cmd allowed`.
#[derive(Debug, Serialize)]
pub(crate) struct AllowedShape {
    /// Oldest first.
    allowed: Vec<ConsentShape>,
    /// The file that keeps the permissions.
    file: String,
}

impl AllowedShape {
    pub(crate) fn of(consents: &[Consent], file: &Path) -> AllowedShape {
        AllowedShape { allowed: consents.iter().map(ConsentShape::of).collect(), file: file.display().to_string() }
    }
}

impl Show for AllowedShape {
    fn text(&self) -> String {
        self.allowed.iter().map(Show::text).collect::<Vec<_>>().join("\n")
    }
}

/// `relay-mesh cmd disallow`.
#[derive(Debug, Serialize)]
pub(crate) struct DisallowedShape {
    /// What was taken back, oldest first.
    disallowed: Vec<ConsentShape>,
    /// The file that kept the permissions.
    file: String,
}

impl DisallowedShape {
    pub(crate) fn of(gone: &[Consent], file: &Path) -> DisallowedShape {
        DisallowedShape { disallowed: gone.iter().map(ConsentShape::of).collect(), file: file.display().to_string() }
    }
}

impl Show for DisallowedShape {
    fn text(&self) -> String {
        let one = |gone: &ConsentShape| {
            let command = gone.command.as_deref().unwrap_or("any command");
            let to = gone.to.as_deref().unwrap_or("any agent here");
            format!("{} may no longer run {command} in the session of {to}", gone.from)
        };
        self.disallowed.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}
