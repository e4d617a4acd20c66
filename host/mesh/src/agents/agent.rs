//! An agent's record and its presence.

use serde::{Deserialize, Serialize};

use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::sessions::SessionRef;

/// An agent's description of itself. Every field is free text of at most 200 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// Its harness, by the adapter's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The client program, by its own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The language model it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The folder it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Its current task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The issue it works on, as the tracker spells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(alias = "bead")]
    pub issue: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

/// How an agent was registered, which decides what proves that a call is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// From a session of a harness.
    Session,
    /// From the connection of an MCP client whose harness names no session.
    Connection,
    /// From the command line, by the user or a script.
    CommandLine,
}

/// An agent's record, stored under `agents/NAME/meta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its stable name.
    pub name: AgentName,
    /// Its description of itself.
    #[serde(default)]
    pub profile: Profile,
    /// How it was registered.
    pub origin: Origin,
    /// The session that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRef>,
    /// The machine where that session runs.
    #[serde(alias = "host")]
    pub machine: String,
    /// When the name was first registered.
    pub registered: Instant,
    /// When it last registered, or was last bound to a session.
    pub bound: Instant,
    /// The machine that it was adopted from, this one if its session ended, until a caller registers as it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// SHA-256 of the key that registration issued, if it issued one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_digest: Option<String>,
}

/// An agent's presence, derived from evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// Its session is alive and working.
    #[serde(alias = "live")]
    Busy,
    /// Its session waits for its user, for example for a permission or an answer.
    NeedsInput,
    /// Its session is alive and waiting.
    Idle,
    /// It was silent lately, without evidence that it left.
    Away,
    /// Its session ended or its process died.
    #[serde(alias = "gone")]
    Offline,
}

impl Presence {
    /// The word in output and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Presence::Busy => "busy",
            Presence::NeedsInput => "needs-input",
            Presence::Idle => "idle",
            Presence::Away => "away",
            Presence::Offline => "offline",
        }
    }
}

/// An agent as others see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Its record. Boxed, since lists hold thousands of them and move them around.
    pub agent: Box<Agent>,
    pub presence: Presence,
    /// The evidence for that presence, as a sentence.
    pub evidence: String,
    /// When it last gave a sign of life.
    pub last_heard: Option<Instant>,
    /// How many messages wait for it.
    pub waiting: usize,
    /// Whether its user has paused it.
    #[serde(default)]
    pub paused: bool,
}
