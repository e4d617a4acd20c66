//! Commands: `cmd`, `cmd take`, `cmd done`, `cmd list`, and the table in `status`.

use std::path::Path;

use mesh::command::{Command, Stage, Standing};
use mesh::consent::Consent;
use mesh::machine::Instant;
use serde::Serialize;

use super::{ago, rfc3339, span};
use crate::render::{Show, printable, printable_line, table};

/// A command.
#[derive(Debug, Serialize)]
pub(crate) struct CommandShape {
    /// Its id.
    pub(crate) id: String,
    /// Who asks.
    pub(crate) from: String,
    /// Who is to run it.
    pub(crate) to: String,
    /// Its name with its slash.
    pub(crate) command: String,
    /// Its arguments.
    pub(crate) arguments: Vec<String>,
    /// `pending`, `expired`, `consumed`, `unknown`, `succeeded` or `failed`.
    pub(crate) state: &'static str,
    /// When it was asked for.
    pub(crate) created: String,
    /// Until when it may be taken.
    pub(crate) expires: String,
    /// When it was taken or ended, by its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<String>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    /// Why the session that it is for does not run it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits: Option<String>,
    /// By what that session runs it or ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    /// What shows that it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<serde_json::Value>,
    /// The whole of it, for people.
    #[serde(skip)]
    line: String,
    /// When, for people.
    #[serde(skip)]
    when: String,
}

impl CommandShape {
    pub(crate) fn of(command: &Command, now: Instant) -> CommandShape {
        let (since, result) = match &command.stage {
            Stage::Pending { .. } => (None, None),
            Stage::Consumed { at, .. } => (Some(*at), None),
            Stage::Done { at, result, .. } => (Some(*at), Some(result.clone())),
        };
        let standing = command.standing(now);
        let when = match (standing, since) {
            (Standing::Pending, _) => format!("{} left", span(command.expires.since(now))),
            (Standing::Expired, _) => ago(command.expires, now),
            (Standing::Consumed | Standing::Unknown | Standing::Succeeded | Standing::Failed, since) => {
                ago(since.unwrap_or(command.created), now)
            }
        };
        CommandShape {
            id: command.id.to_string(),
            from: command.from.to_string(),
            to: command.to.to_string(),
            command: command.command.to_string(),
            arguments: command.arguments.clone(),
            state: standing.as_str(),
            created: rfc3339(command.created),
            expires: rfc3339(command.expires),
            since: since.map(rfc3339),
            result,
            waits: command.waits().map(str::to_owned),
            by: command.run().map(|run| run.by.clone()),
            evidence: command.run().and_then(|run| run.evidence.clone()),
            line: command.line(),
            when,
        }
    }
}

impl Show for CommandShape {
    fn text(&self) -> String {
        let CommandShape { id, from, to, state, .. } = self;
        let by = self.by.as_ref().map(|by| format!(" by {}", printable_line(by))).unwrap_or_default();
        let mut text = format!("{id}  {from} → {to}  {state}{by}  {}", printable_line(&self.line));
        for line in printable(self.result.as_deref().unwrap_or_default()).lines() {
            text.push_str(&format!("\n  {line}"));
        }
        text
    }
}

/// `relay-mesh cmd list`.
#[derive(Debug, Serialize)]
pub(crate) struct CommandsShape {
    /// Oldest first.
    pub(crate) commands: Vec<CommandShape>,
}

impl CommandsShape {
    pub(crate) fn of(commands: &[Command], now: Instant) -> CommandsShape {
        CommandsShape { commands: commands.iter().map(|command| CommandShape::of(command, now)).collect() }
    }
}

impl Show for CommandsShape {
    fn text(&self) -> String {
        if self.commands.is_empty() {
            return String::new();
        }
        let waits = self.commands.iter().filter_map(|one| {
            let why = printable_line(one.waits.as_deref()?);
            Some(format!("\n{} waits: {why}", one.id))
        });
        std::iter::once(commands_table(&self.commands)).chain(waits).collect()
    }
}

/// The table that `cmd list` and `status` show.
pub(crate) fn commands_table(commands: &[CommandShape]) -> String {
    let rows: Vec<Vec<String>> = commands
        .iter()
        .map(|one| {
            let line = printable_line(&one.line);
            vec![one.id.clone(), one.from.clone(), one.to.clone(), one.state.to_owned(), one.when.clone(), line]
        })
        .collect();
    table(&["ID", "FROM", "FOR", "STATE", "WHEN", "COMMAND"], &rows)
}

/// What a person allowed.
#[derive(Debug, Serialize)]
pub(crate) struct ConsentShape {
    /// Whose commands.
    from: String,
    /// Which; every one where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// In whose session; everybody's where there is none.
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
    /// Where that is kept.
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
