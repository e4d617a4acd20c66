//! A command: what one agent asks another to run, and what came of it. Kept as a file of its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::messages::Trace;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// The longest name of a command, in bytes.
pub const LONGEST_COMMAND: usize = 64;
/// The most that a command's arguments may have together, in bytes.
pub const LONGEST_ARGUMENTS: usize = 8 * 1024;
/// The longest result, in bytes.
pub const LONGEST_RESULT: usize = 64 * 1024;
/// For how long a command waits to be taken, where nobody says otherwise, in milliseconds: an hour.
pub const COMMAND_TTL: u64 = 3_600_000;

/// A command's name with its slash: `/review`, `/deploy:staging`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandName(String);

/// Why text is not a command's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a command: it is a `/` and then letters, digits, `-`, `_`, `.` and `:`, 64 at most")]
pub struct InvalidCommand(pub String);

impl CommandName {
    /// With its slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Without its slash.
    pub fn bare(&self) -> &str {
        self.0.trim_start_matches('/')
    }
}

impl FromStr for CommandName {
    type Err = InvalidCommand;

    fn from_str(text: &str) -> Result<CommandName, InvalidCommand> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
        match text.strip_prefix('/') {
            Some(name) if !name.is_empty() && text.len() <= LONGEST_COMMAND && name.bytes().all(plain) => {
                Ok(CommandName(text.to_owned()))
            }
            Some(_) | None => Err(InvalidCommand(text.chars().take(80).collect())),
        }
    }
}

impl TryFrom<String> for CommandName {
    type Error = InvalidCommand;

    fn try_from(text: String) -> Result<CommandName, InvalidCommand> {
        text.parse()
    }
}

impl From<CommandName> for String {
    fn from(name: CommandName) -> String {
        name.0
    }
}

impl fmt::Display for CommandName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CommandName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Whether a command did what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It did.
    #[serde(alias = "succeeded")]
    Done,
    /// It did not.
    Failed,
}

/// How far a command is. Each goes on to the next, and none back, but for what a harness had no time to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum CommandStage {
    /// Nobody has taken it.
    Pending {
        /// Why it is not run by the session itself, as the machine of whom it is for sees it. Written by
        /// whoever would run it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<String>,
    },
    /// One has. Written by the one taker.
    #[serde(alias = "consumed")]
    Running {
        /// When.
        at: Instant,
        /// How the harness itself runs it; none where an agent or a script has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Run>,
    },
    /// It has ended. Written by whom it was for.
    Done {
        /// When.
        at: Instant,
        /// How.
        ended: Ended,
        /// What it says.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        result: String,
        /// How the harness itself ran it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Run>,
    },
}

/// How a harness runs a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// By what.
    pub by: String,
    /// Until when whoever runs it is sure to be heard of again. Written on and on while it runs: past that time
    /// nobody knows what became of it, and nobody runs it again.
    pub until: Instant,
    /// What shows it: a turn id, a message id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<serde_json::Value>,
}

/// A command, as it is kept under `commands/ULID`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its id: commands are taken in the order of their ids.
    pub id: MessageId,
    /// Who asks, as worked out by the host.
    pub from: AgentName,
    /// Who is to run it.
    pub to: AgentName,
    /// What.
    pub command: CommandName,
    /// With what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The chain of messages that it belongs to, for the loop guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// When it was asked for.
    pub created: Instant,
    /// Until when somebody may take it.
    pub expires: Instant,
    /// How far it is.
    pub stage: CommandStage,
}

/// Where a command stands at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// Nobody has taken it.
    Pending,
    /// Nobody has taken it, and nobody may any more.
    Expired,
    /// Somebody works on it.
    Running,
    /// Its harness ran it, and whoever knew how it ended is not heard of any more.
    Unknown,
    /// It did what it was asked.
    Done,
    /// It did not.
    Failed,
}

impl CommandStatus {
    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            CommandStatus::Pending => "pending",
            CommandStatus::Expired => "expired",
            CommandStatus::Running => "running",
            CommandStatus::Unknown => "unknown",
            CommandStatus::Done => "done",
            CommandStatus::Failed => "failed",
        }
    }

    /// Whether nothing will become of it any more.
    pub fn is_final(self) -> bool {
        match self {
            CommandStatus::Pending | CommandStatus::Running => false,
            CommandStatus::Expired | CommandStatus::Unknown | CommandStatus::Done | CommandStatus::Failed => true,
        }
    }
}

impl Command {
    /// Where it stands.
    pub fn standing(&self, now: Instant) -> CommandStatus {
        match &self.stage {
            CommandStage::Pending { .. } if now >= self.expires => CommandStatus::Expired,
            CommandStage::Pending { .. } => CommandStatus::Pending,
            CommandStage::Running { run: Some(run), .. } if now >= run.until => CommandStatus::Unknown,
            CommandStage::Running { .. } => CommandStatus::Running,
            CommandStage::Done { ended: Ended::Done, .. } => CommandStatus::Done,
            CommandStage::Done { ended: Ended::Failed, .. } => CommandStatus::Failed,
        }
    }

    /// Why the session that it is for does not run it by itself.
    pub fn waits(&self) -> Option<&str> {
        match &self.stage {
            CommandStage::Pending { waits } => waits.as_deref(),
            CommandStage::Running { .. } | CommandStage::Done { .. } => None,
        }
    }

    /// When nothing will become of it any more, unless something changes before.
    pub(crate) fn ends_by(&self) -> Option<Instant> {
        match &self.stage {
            CommandStage::Pending { .. } => Some(self.expires),
            CommandStage::Running { run, .. } => run.as_ref().map(|run| run.until),
            CommandStage::Done { .. } => None,
        }
    }

    /// How its harness runs it or ran it.
    pub fn run(&self) -> Option<&Run> {
        match &self.stage {
            CommandStage::Pending { .. } => None,
            CommandStage::Running { run, .. } | CommandStage::Done { run, .. } => run.as_ref(),
        }
    }

    /// The whole of it, as it would be typed.
    pub fn line(&self) -> String {
        std::iter::once(self.command.as_str())
            .chain(self.arguments.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}
