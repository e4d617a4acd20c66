//! What a hook does within the mesh: a message, or a notice to the user.

use serde::{Deserialize, Serialize};

use super::Occurrence;
use crate::messages::Draft;
use crate::names::AgentName;
use crate::sessions::Principal;
use crate::{Mesh, SendError, Sent};

/// Why an event hook sends a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookCause {
    /// The hook.
    pub(crate) hook: String,
    /// Whose chain of messages it goes on with.
    pub(crate) agent: Option<AgentName>,
}

impl Mesh {
    /// Sends what a hook tells, from the user's own command line. It goes on with the chain of messages that the event's
    /// agent works on, so that the loop guard ends hooks that keep agents waking each other.
    pub async fn send_for_hook(
        &self,
        hook: &str,
        event: &Occurrence,
        to: &str,
        draft: Draft,
    ) -> Result<Sent, SendError> {
        let cause = HookCause { hook: hook.to_owned(), agent: event.cause() };
        self.send_as_caused(&Principal::of_user(), AgentName::shell(), &[to.to_owned()], draft, Some(cause)).await
    }

    /// Sends what a review came to, from the user's own command line. If an agent asked for it, the message goes on with the
    /// chain that the agent works on: else an agent could have itself woken for ever.
    pub async fn send_for_review(
        &self,
        review: &str,
        asked_by: Option<&AgentName>,
        to: &[String],
        draft: Draft,
    ) -> Result<Sent, SendError> {
        let cause = asked_by.map(|agent| HookCause { hook: format!("review {review}"), agent: Some(agent.clone()) });
        self.send_as_caused(&Principal::of_user(), AgentName::shell(), to, draft, cause).await
    }

    /// Shows a notice on the user's desktop, if there is one.
    pub async fn show_notice(&self, title: &str, body: &str) {
        self.core.desktop.notice(title, body).await;
    }
}
