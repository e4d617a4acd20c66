//! What the end of a turn leaves to be done. It is in the agent's record until it is done, so that it outlasts the
//! process that was to do it.

use serde::{Deserialize, Serialize};
use store::Position;

use super::record::DrivenId;
use crate::names::{AgentName, MessageId};

/// The final words of a turn, for those who wait for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedWords {
    /// The prompt that began the turn; another id if none of ours did.
    pub turn: String,
    /// The words.
    pub words: String,
    /// Whether they are the agent's own, which may want something done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_direct: bool,
    /// Who gets them as a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<OwedReply>,
    /// How many of the directives in them need nothing more.
    #[serde(default)]
    pub carried_out: usize,
    /// Why some of those are not done, as the agent is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<String>,
    /// The id of the agent that the next directive begins, noted before it is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins: Option<DrivenId>,
}

/// A reply that an agent waits for, unless the other has written to it in the turn itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedReply {
    pub to: AgentName,
    /// The message that it replies to.
    pub message: MessageId,
    /// Where the recipient's inbox ended when the turn began, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_end: Option<Position>,
}
