//! An agent's record, and how present it is.

use serde::{Deserialize, Serialize};

use crate::names::AgentName;
use crate::ports::machine::Instant;
use crate::sessions::SessionRef;

/// What an agent says of itself. Every field is free text of at most 200 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// The harness that it runs in, as the adapter names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The program that talks to us, as it names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The model behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The folder it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What it is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The issue that it works on, in the tracker's own spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(alias = "bead")]
    pub issue: Option<String>,
    /// What it can do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

/// How an agent came to be, which decides what speaks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A harness's session registered it.
    Session,
    /// A connection of an MCP client whose harness names no session.
    Connection,
    /// A person or a script, on the command line.
    CommandLine,
}

/// An agent, as it is kept under `agents/NAME/meta`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its stable name.
    pub name: AgentName,
    /// What it says of itself.
    #[serde(default)]
    pub profile: Profile,
    /// How it came to be.
    pub origin: Origin,
    /// The session that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRef>,
    /// The machine where that session runs.
    #[serde(alias = "host")]
    pub machine: String,
    /// When the name was first registered.
    pub registered: Instant,
    /// When it was last registered, bound or rebound.
    pub bound: Instant,
    /// The machine that it was brought from, where nobody has registered as it here since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// SHA-256 of the explicit key that registration gave out, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_digest: Option<String>,
}

/// How present an agent is, judged by evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// Its session lives, and works.
    #[serde(alias = "live")]
    Busy,
    /// Its session waits for its user: a permission, a question.
    NeedsInput,
    /// Its session lives, and waits.
    Idle,
    /// Nothing speaks against it, and nothing was heard of it lately.
    Away,
    /// Its session ended or its process died.
    #[serde(alias = "gone")]
    Offline,
}

impl Presence {
    /// The word that people see.
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
    /// Its record. They come by the thousand, and go from hand to hand.
    pub agent: Box<Agent>,
    /// How present it is.
    pub presence: Presence,
    /// The sentence that says why we think so.
    pub evidence: String,
    /// When it was last heard of.
    pub last_heard: Option<Instant>,
    /// Messages that wait for it.
    pub waiting: usize,
}
