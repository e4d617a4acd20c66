//! Waking whoever listens outside of any harness: what they are told is worded here, and that they were told
//! stands in the event log. How it reaches them is the binary's business.

use crate::core::Core;
use crate::messages::envelope::{beside, who};
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::{Principal, Transport};

/// The longest text that goes with a wake, in bytes: it may become one argument of somebody's program.
pub const LONGEST_WAKE: usize = 2_048;

/// A wake, before it goes anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The message that it is about, where there is one; else an id of its own.
    pub id: MessageId,
    /// Who wakes.
    pub from: AgentName,
    /// Who is to be woken, where one agent is meant.
    pub to: Option<AgentName>,
    /// When.
    pub at: Instant,
    /// What was written, for programs.
    pub text: String,
    /// What a model may be shown: who wakes, and what they wrote inside an envelope.
    pub worded: String,
}

/// Why nobody was woken.
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
