//! `relay-mesh invite`: ask a session that has not joined to do so, by waking it.

use std::time::Duration;

use mesh::messages::receipt::DeliveryStatus;
use mesh::{InvitationAnswer, Invited, LONGEST_INVITATION};
use serde::Serialize;

use crate::command::CommandSpec;
use crate::commands::input;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line};
use crate::shapes::rfc3339;

/// How long to wait for an answer, before the reminder and again after it: a harness that watches a file lets it
/// settle first.
const PATIENCE: Duration = Duration::from_secs(3);
/// Poll interval for the answer.
const LOOK: Duration = Duration::from_millis(50);

/// Ask a session to join
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    relay-mesh discover\n  \
    relay-mesh invite 5d20e1e5-4937-4c69-a085-49c47ebb9562\n  \
    relay-mesh invite ses_1a2b --harness opencode 'I could use your help with the tests'\n\n\
    The session is told who invites it, what you write, and how to join. It may decline by doing nothing.")]
pub(crate) struct Args {
    /// The session's id, as `relay-mesh discover` shows it
    #[arg(value_name = "SESSION")]
    session: String,
    /// What to say to it; `-` takes the text from standard input
    #[arg(value_name = "TEXT", default_value = "", hide_default_value = true)]
    text: String,
    /// Its harness, if several have a session with that id
    #[arg(long, value_name = "HARNESS")]
    harness: Option<String>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session, else `shell`]
    #[arg(long, visible_alias = "agent", value_name = "AGENT")]
    from: Option<mesh::names::AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let text = match self.text.as_str() {
            "-" => input::text(LONGEST_INVITATION + 1)?,
            _ => self.text,
        };
        let open = context.open()?;
        let caller = context.principal(&open, self.from).await?;
        let mut invited = open.mesh.invite(&caller, &self.session, self.harness.as_deref(), &text).await?;
        let mut answer = wait_for_answer(&open, &invited).await?;
        match answer {
            InvitationAnswer::Brought(_) | InvitationAnswer::Joined(_) => {}
            InvitationAnswer::Open(_) | InvitationAnswer::Refused | InvitationAnswer::Ended => {
                invited = open.mesh.remind(invited).await?;
                answer = wait_for_answer(&open, &invited).await?;
            }
        }
        context.printer.show(&InvitedShape::of(&invited, &answer))?;
        Ok(Exit::Success)
    }
}

/// The answer to the invitation, as soon as it is certain or `PATIENCE` is over.
async fn wait_for_answer(open: &Open, invited: &Invited) -> Result<InvitationAnswer, CommandError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answer = open.mesh.invitation(&invited.session).await?.unwrap_or(InvitationAnswer::Open(invited.status));
        let is_certain = match &answer {
            InvitationAnswer::Open(_) => false,
            InvitationAnswer::Brought(_)
            | InvitationAnswer::Refused
            | InvitationAnswer::Ended
            | InvitationAnswer::Joined(_) => true,
        };
        if is_certain || tokio::time::Instant::now() >= deadline {
            return Ok(answer);
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[derive(Debug, Serialize)]
struct InvitedShape {
    harness: String,
    session: String,
    from: String,
    /// The route that took it: one of the adapter's, or `listen`.
    route: String,
    /// The highest status that is proven: `stored`, `notified`, `accepted`, `shown`; or `refused`.
    status: &'static str,
    /// When it lapses, if it is still to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    lapses: Option<String>,
    /// The session's agent, if it has joined already.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

impl InvitedShape {
    fn of(invited: &Invited, answer: &InvitationAnswer) -> InvitedShape {
        let (status, is_open) = match answer {
            InvitationAnswer::Open(status) => (status.as_str(), true),
            InvitationAnswer::Brought(status) => (status.as_str(), false),
            // A hook or the next listener may still show it.
            InvitationAnswer::Refused => ("refused", true),
            InvitationAnswer::Ended | InvitationAnswer::Joined(_) => (invited.status.as_str(), false),
        };
        InvitedShape {
            harness: invited.session.harness.clone(),
            session: invited.session.id.clone(),
            from: invited.from.to_string(),
            route: invited.route.clone(),
            status,
            lapses: is_open.then(|| rfc3339(invited.until)),
            agent: match answer {
                InvitationAnswer::Joined(agent) => Some(agent.to_string()),
                InvitationAnswer::Open(_)
                | InvitationAnswer::Brought(_)
                | InvitationAnswer::Refused
                | InvitationAnswer::Ended => None,
            },
        }
    }
}

impl Show for InvitedShape {
    fn text(&self) -> String {
        let who = format!("{} session {}", printable_line(&self.harness), printable_line(&self.session));
        let mut text = match &self.agent {
            Some(agent) => format!("{who} has joined as {agent}"),
            None if self.status == DeliveryStatus::Stored.as_str() => {
                format!("{who}: invitation stored; it comes when the session is idle or uses a tool")
            }
            None => format!("{who}: invitation {} by {}", self.status, printable_line(&self.route)),
        };
        if let Some(lapses) = &self.lapses {
            text.push_str(&format!(" (lapses {lapses})"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use mesh::ports::machine::Instant;
    use mesh::sessions::SessionRef;

    use super::*;

    fn check(route: &str, status: DeliveryStatus, answer: &InvitationAnswer, expected: &str) {
        let session = SessionRef { harness: "codex".to_owned(), id: "s1".to_owned() };
        let from = "alice".parse().expect("a name");
        let invited = Invited { session, from, route: route.to_owned(), status, until: Instant(3_600_000) };
        assert_eq!(InvitedShape::of(&invited, answer).text(), expected);
    }

    #[test]
    fn no_more_is_claimed_than_was_proven() {
        let open = |status: DeliveryStatus| InvitationAnswer::Open(status);
        check(
            "wake-file",
            DeliveryStatus::Notified,
            &open(DeliveryStatus::Notified),
            "codex session s1: invitation notified by wake-file (lapses 1970-01-01T01:00:00.000Z)",
        );
        check(
            "wake-file",
            DeliveryStatus::Notified,
            &InvitationAnswer::Brought(DeliveryStatus::Shown),
            "codex session s1: invitation shown by wake-file",
        );
        let carried = InvitationAnswer::Brought(DeliveryStatus::Accepted);
        check("app-server", DeliveryStatus::Accepted, &carried, "codex session s1: invitation accepted by app-server");
        check(
            "listen",
            DeliveryStatus::Stored,
            &open(DeliveryStatus::Stored),
            "codex session s1: invitation stored; it comes when the session is idle or uses a tool \
             (lapses 1970-01-01T01:00:00.000Z)",
        );
        check(
            "listen",
            DeliveryStatus::Stored,
            &InvitationAnswer::Refused,
            "codex session s1: invitation refused by listen (lapses 1970-01-01T01:00:00.000Z)",
        );
        let joined = InvitationAnswer::Joined("bob".parse().expect("a name"));
        check("queue", DeliveryStatus::Notified, &joined, "codex session s1 has joined as bob");
    }
}
