//! The record of a command: what one agent asks another to run, and its result. Each is stored under a key of its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::messages::Trace;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// Longest name of a command, in bytes.
pub const LONGEST_COMMAND: usize = 64;
/// Longest arguments of a command, all together, in bytes.
pub const LONGEST_ARGUMENTS: usize = 8 * 1024;
/// Longest result, in bytes.
pub const LONGEST_RESULT: usize = 64 * 1024;
/// By default, how long a command waits to be taken, in milliseconds: an hour.
pub const COMMAND_TTL: u64 = 3_600_000;

/// How long a command that was taken may take to reach its taker, in milliseconds.
pub(crate) const HANDED_OVER_WITHIN: u64 = 60_000;
/// The result of a command that was taken and never reached its taker.
const LOST_BY_TAKER: &str =
    "the process that took it ended before it could hand it over; it was not begun by relay-mesh";

/// A command's name with its slash: `/review`, `/deploy:staging`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandName(String);

/// Why text is not a command's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a command: it is a `/` and then letters, digits, `-`, `_`, `.` and `:`, 64 at most")]
pub struct InvalidCommand(pub String);

impl CommandName {
    /// The name with its slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without its slash.
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

/// Whether a command succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It succeeded.
    #[serde(alias = "succeeded")]
    Done,
    /// It failed.
    Failed,
}

/// A command's progress. It only moves forward, except that a command which a busy harness did not begin becomes
/// pending again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum CommandStage {
    /// No agent has taken it.
    Pending {
        /// Why the recipient's session does not run it by itself. Written by the runner on the recipient's machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<String>,
    },
    /// Taken. Written by the one taker.
    #[serde(alias = "consumed")]
    Running {
        /// When it was taken.
        at: Instant,
        /// How the harness runs it; `None` if an agent or a script took it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Run>,
        /// Until when its taker must have got it. Removed once the taker has; if it passes, the process that took it was
        /// killed in between, and the command has failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handed_over_by: Option<Instant>,
    },
    /// It has ended. Written by the recipient or its runner.
    Done {
        /// When it ended.
        at: Instant,
        /// Whether it succeeded.
        ended: Ended,
        /// Its output.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        result: String,
        /// How the harness ran it; `None` if an agent or a script did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<Run>,
    },
}

/// How a harness runs a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The means, by the adapter's name for it.
    pub by: String,
    /// The runner renews this time while the command runs. If it passes, the result is unknown, and the command is
    /// never run again.
    pub until: Instant,
    /// The harness's evidence: a turn id, a message id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<serde_json::Value>,
}

/// A command, stored under `commands/ULID`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its id: commands are taken in the order of their ids.
    pub id: MessageId,
    /// The sender, as relay-mesh identified it.
    pub from: AgentName,
    /// The agent that shall run it.
    pub to: AgentName,
    /// The command's name.
    pub command: CommandName,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The chain of messages that it belongs to, for the loop guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// When it was requested.
    pub created: Instant,
    /// Until when it may be taken.
    pub expires: Instant,
    /// Its progress.
    pub stage: CommandStage,
}

/// A command's status at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandStatus {
    /// No agent has taken it.
    Pending,
    /// No agent took it in time.
    Expired,
    /// An agent, a script or the harness runs it.
    Running,
    /// Its runner stopped reporting; the result will never be known.
    Unknown,
    /// It succeeded.
    Done,
    /// It failed.
    Failed,
}

impl CommandStatus {
    /// The word in output and JSON.
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

    /// Whether the status will not change any more.
    pub fn is_final(self) -> bool {
        match self {
            CommandStatus::Pending | CommandStatus::Running => false,
            CommandStatus::Expired | CommandStatus::Unknown | CommandStatus::Done | CommandStatus::Failed => true,
        }
    }
}

impl Command {
    /// Its status at a time.
    pub fn standing(&self, now: Instant) -> CommandStatus {
        match &self.stage {
            CommandStage::Pending { .. } if now >= self.expires => CommandStatus::Expired,
            CommandStage::Pending { .. } => CommandStatus::Pending,
            CommandStage::Running { run: Some(run), .. } if now >= run.until => CommandStatus::Unknown,
            CommandStage::Running { handed_over_by: Some(by), .. } if now >= *by => CommandStatus::Failed,
            CommandStage::Running { .. } => CommandStatus::Running,
            CommandStage::Done { ended: Ended::Done, .. } => CommandStatus::Done,
            CommandStage::Done { ended: Ended::Failed, .. } => CommandStatus::Failed,
        }
    }

    /// Why the recipient's session does not run it by itself.
    pub fn waits(&self) -> Option<&str> {
        match &self.stage {
            CommandStage::Pending { waits } => waits.as_deref(),
            CommandStage::Running { .. } | CommandStage::Done { .. } => None,
        }
    }

    /// What is known of its result at a time.
    pub fn result(&self, now: Instant) -> Option<&str> {
        match &self.stage {
            CommandStage::Done { result, .. } => Some(result),
            CommandStage::Running { handed_over_by: Some(by), .. } if now >= *by => Some(LOST_BY_TAKER),
            CommandStage::Pending { .. } | CommandStage::Running { .. } => None,
        }
    }

    /// When it becomes expired, unknown or failed, unless it changes before.
    pub(crate) fn ends_by(&self) -> Option<Instant> {
        match &self.stage {
            CommandStage::Pending { .. } => Some(self.expires),
            CommandStage::Running { run, handed_over_by, .. } => run.as_ref().map(|run| run.until).or(*handed_over_by),
            CommandStage::Done { .. } => None,
        }
    }

    /// How its harness runs or ran it.
    pub fn run(&self) -> Option<&Run> {
        match &self.stage {
            CommandStage::Pending { .. } => None,
            CommandStage::Running { run, .. } | CommandStage::Done { run, .. } => run.as_ref(),
        }
    }

    /// The command line, as a user would type it.
    pub fn line(&self) -> String {
        std::iter::once(self.command.as_str())
            .chain(self.arguments.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}
