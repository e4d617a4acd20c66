//! Waking listeners outside any harness: this file words the wake and records it in the event log. The binary
//! delivers it.

use crate::core::Core;
use crate::messages::envelope::{beside, who};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::{Principal, Transport};

/// The longest text of a wake, in bytes: it may become one argument of a user's program.
pub const LONGEST_WAKE: usize = 2_048;

/// A wake, before it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The message that it is about, or a fresh id.
    pub id: MessageId,
    /// The agent that wakes.
    pub from: AgentName,
    /// The agent to wake, if one is meant.
    pub to: Option<AgentName>,
    /// When it was made.
    pub at: Instant,
    /// The sender's text, for programs.
    pub text: String,
    /// The text for a model: the sender, and what it wrote, inside an envelope.
    pub worded: String,
}

/// Why a wake was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WakeError {
    /// The caller is not registered.
    #[error("you have not registered")]
    NotRegistered,
    /// The text is too long.
    #[error("the text of a wake has {0} bytes and may have {LONGEST_WAKE}")]
    TooLong(usize),
}

pub(crate) fn wake(
    core: &Core,
    caller: &Principal,
    to: Option<&AgentName>,
    about: Option<MessageId>,
    text: &str,
) -> Result<Wake, WakeError> {
    let from = match (caller.agent(), caller.transport) {
        (Some(agent), _) => agent.clone(),
        (None, Transport::CommandLine) => AgentName::shell(),
        (None, Transport::Stdio | Transport::Http) => return Err(WakeError::NotRegistered),
    };
    if text.len() > LONGEST_WAKE {
        return Err(WakeError::TooLong(text.len()));
    }
    let at = core.machine.now();
    let id = about.unwrap_or_else(|| core.new_id(at));
    let worded = worded(id, at, &from, to, text);
    Ok(Wake { id, from, to: to.cloned(), at, text: text.to_owned(), worded })
}

pub(crate) async fn note_wake(core: &Core, wake: &Wake, method: Option<&str>) {
    let mut details = serde_json::json!({ "id": wake.id, "from": wake.from });
    if let Some(fields) = details.as_object_mut() {
        fields.extend(wake.to.iter().map(|to| ("to".to_owned(), to.as_str().into())));
        fields.extend(method.map(|method| ("method".to_owned(), method.into())));
    }
    core.event_log.note(if method.is_some() { "woke" } else { "wake-failed" }, details).await;
}

fn worded(id: MessageId, at: Instant, from: &AgentName, to: Option<&AgentName>, text: &str) -> String {
    let whom = to.map_or_else(String::new, |to| format!(" `{to}`"));
    let news = format!("{} wakes you{whom} by relay-mesh.", who(from));
    beside(&news, id, at, from, to.unwrap_or(from), text)
}
