//! The audit of tools: one event for each prompt that is forwarded to an agent, and for each call about mail of the tools
//! beside it. It holds the beginning of the text, and no secret.

mod secrets;

use serde_json::json;

pub use secrets::struck;

use crate::Mesh;
use crate::names::AgentName;
use crate::turns::short;

/// One audited call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    pub tool: String,
    /// Who called it.
    pub by: Option<AgentName>,
    /// The agent to which it was forwarded.
    pub agent: Option<AgentName>,
    /// The thread of that agent, once it has one.
    pub thread: Option<String>,
    /// The same in everything that is told of this call.
    pub correlation: String,
    /// Who gets the mail.
    pub to: Vec<String>,
    /// What it says.
    pub text: String,
}

impl Mesh {
    /// Adds a call to the audit.
    pub async fn audit(&self, call: &Audited) {
        let Audited { tool, by, agent, thread, correlation, to, text } = call;
        let details = json!({
            "tool": tool,
            "by": by,
            "agent": agent,
            "thread": thread,
            "correlation": correlation,
            "to": if to.is_empty() { None } else { Some(to) },
            "text": short(&struck(text)),
        });
        self.core.event_log.note("audit", details).await;
    }
}
