//! `relay-mesh invite`: ask a session that has not joined to do so, by waking it.

use std::time::Duration;

use mesh::receipt::Rung;
use mesh::{Answer, Invited, LONGEST_INVITATION};
use serde::Serialize;

use crate::command::CommandSpec;
use crate::commands::input;
use crate::compose::Open;
use crate::context::Context;
use crate::errors::CommandError;
use crate::exit::Exit;
use crate::render::{Show, printable_line};
use crate::shapes::rfc3339;

/// How long the answer is waited for, twice: a harness that watches a file lets it settle first.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often it is looked for.
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
    /// Its harness, where several have a session of that id
    #[arg(long, value_name = "HARNESS")]
    harness: Option<String>,
    /// Speak for this agent [$RELAY_AGENT, else this shell's session, else `shell`]
    #[arg(long, value_name = "AGENT")]
    from: Option<mesh::names::AgentName>,
}

impl CommandSpec for Args {
    async fn run(self, context: &Context) -> Result<Exit, CommandError> {
        let text = match self.text.as_str() {
            "-" => input::text(LONGEST_INVITATION + 1)?,
            _ => self.text,
        };
        let open = context.open()?;
        let caller = context.caller(&open, self.from).await?;
        let mut invited = open.mesh.invite(&caller, &self.session, self.harness.as_deref(), &text).await?;
        let mut answer = wait_for_answer(&open, &invited).await?;
        match answer {
            Answer::Brought(_) | Answer::Joined(_) => {}
            Answer::Open(_) | Answer::Refused | Answer::Ended => {
                invited = open.mesh.remind(invited).await?;
                answer = wait_for_answer(&open, &invited).await?;
            }
        }
        context.printer.show(&InvitedShape::of(&invited, &answer))?;
        Ok(Exit::Success)
    }
}

/// Where the invitation stands, as soon as anything is certain or patience is at an end.
async fn wait_for_answer(open: &Open, invited: &Invited) -> Result<Answer, CommandError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answer = open.mesh.invitation(&invited.session).await?.unwrap_or(Answer::Open(invited.rung));
        let is_certain = match &answer {
            Answer::Open(_) => false,
            Answer::Brought(_) | Answer::Refused | Answer::Ended | Answer::Joined(_) => true,
        };
        if is_certain || tokio::time::Instant::now() >= deadline {
            return Ok(answer);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How an invitation went.
#[derive(Debug, Serialize)]
struct InvitedShape {
    /// The harness.
    harness: String,
    /// The session.
    session: String,
    /// Who invites.
    from: String,
    /// The route that took it: one of its adapter's, or `listen`.
    route: String,
    /// How far it got, as far as anybody can prove: `stored`, `offered`, `accepted`, `shown`; or `refused`.
    rung: &'static str,
    /// When it lapses, where it is still to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    lapses: Option<String>,
    /// The agent, where the session has joined already.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

impl InvitedShape {
    fn of(invited: &Invited, answer: &Answer) -> InvitedShape {
        let (rung, is_open) = match answer {
            Answer::Open(rung) => (rung.as_str(), true),
            Answer::Brought(rung) => (rung.as_str(), false),
            // A hook may still show it, or whoever listens next.
            Answer::Refused => ("refused", true),
            Answer::Ended | Answer::Joined(_) => (invited.rung.as_str(), false),
        };
        InvitedShape {
            harness: invited.session.harness.clone(),
            session: invited.session.id.clone(),
            from: invited.from.to_string(),
            route: invited.route.clone(),
            rung,
            lapses: is_open.then(|| rfc3339(invited.until)),
            agent: match answer {
                Answer::Joined(agent) => Some(agent.to_string()),
                Answer::Open(_) | Answer::Brought(_) | Answer::Refused | Answer::Ended => None,
            },
        }
    }
}

impl Show for InvitedShape {
    fn text(&self) -> String {
        let who = format!("{} session {}", printable_line(&self.harness), printable_line(&self.session));
        let mut text = match &self.agent {
            Some(agent) => format!("{who} has joined as {agent}"),
            None if self.rung == Rung::Stored.as_str() => {
                format!("{who}: invitation stored; it comes when the session is idle or uses a tool")
            }
            None => format!("{who}: invitation {} by {}", self.rung, printable_line(&self.route)),
        };
        if let Some(lapses) = &self.lapses {
            text.push_str(&format!(" (lapses {lapses})"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use mesh::machine::Instant;
    use mesh::session::SessionRef;

    use super::*;

    fn check(route: &str, rung: Rung, answer: &Answer, expected: &str) {
        let session = SessionRef { harness: "codex".to_owned(), id: "s1".to_owned() };
        let from = "alice".parse().expect("a name");
        let invited = Invited { session, from, route: route.to_owned(), rung, until: Instant(3_600_000) };
        assert_eq!(InvitedShape::of(&invited, answer).text(), expected);
    }

    #[test]
    fn no_more_is_claimed_than_was_proven() {
        let open = |rung: Rung| Answer::Open(rung);
        check(
            "bell",
            Rung::Offered,
            &open(Rung::Offered),
            "codex session s1: invitation offered by bell (lapses 1970-01-01T01:00:00.000Z)",
        );
        check("bell", Rung::Offered, &Answer::Brought(Rung::Shown), "codex session s1: invitation shown by bell");
        let carried = Answer::Brought(Rung::Accepted);
        check("app-server", Rung::Accepted, &carried, "codex session s1: invitation accepted by app-server");
        check(
            "listen",
            Rung::Stored,
            &open(Rung::Stored),
            "codex session s1: invitation stored; it comes when the session is idle or uses a tool \
             (lapses 1970-01-01T01:00:00.000Z)",
        );
        check(
            "listen",
            Rung::Stored,
            &Answer::Refused,
            "codex session s1: invitation refused by listen (lapses 1970-01-01T01:00:00.000Z)",
        );
        let joined = Answer::Joined("bob".parse().expect("a name"));
        check("queue", Rung::Offered, &joined, "codex session s1 has joined as bob");
    }
}
