//! What is asked of a driven agent beside mail: its first prompt, further ones, and what ends a turn or the agent. A
//! request is kept until it is done, so that it outlasts the process that was to do it.

use serde::{Deserialize, Serialize};

use crate::names::AgentName;
use crate::ports::machine::Instant;

/// The longest text of a request, in bytes.
pub const LONGEST_REQUEST: usize = 256 * 1024;
/// The most requests that wait for one agent.
pub const MOST_REQUESTS: usize = 32;
/// The most outcomes that are kept.
pub(super) const MOST_OUTCOMES: usize = 32;

/// Something that is asked of a driven agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// A UUID. A prompt has it as its id, whenever it is given.
    pub id: String,
    pub kind: RequestKind,
    /// The agent that asks; none if the user does.
    pub by: Option<AgentName>,
    /// When it was asked.
    pub at: Instant,
    /// How things stand, for its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Its text went out before, and nobody knows whether it was shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_repeat: bool,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum RequestKind {
    /// Begin a turn with this text.
    Prompt { text: String },
    /// Take this text in the turn that runs, or begin one with it.
    Steer { text: String },
    /// Stop the turn that runs.
    Interrupt,
    /// End the agent.
    Dismiss {
        /// It is asked for a summary first.
        summary: bool,
    },
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestOutcome {
    /// The request.
    pub id: String,
    /// Why it was not done; none if it was.
    pub failed: Option<String>,
    /// What is to be told beside that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Request {
    /// The text that it gives, with a word before it if it may have been shown.
    pub fn text(&self) -> Option<String> {
        let (RequestKind::Prompt { text } | RequestKind::Steer { text }) = &self.kind else { return None };
        Some(match self.may_repeat {
            true => format!("(relay-mesh: perhaps you have seen this before. If you have done it, say so.)\n\n{text}"),
            false => text.clone(),
        })
    }
}
