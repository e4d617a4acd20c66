//! `relay-mesh invite`: ask a session that has not joined to do so, by waking it.

use std::time::Duration;

use mesh::{Answer, Invited, LONGEST_INVITATION};
use serde::Serialize;

use crate::cli::Outcome;
use crate::commands::input;
use crate::compose::Open;
use crate::context::Context;
use crate::error::CommandError;
use crate::render::{Show, printable_line};

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

/// Does it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Outcome, CommandError> {
    let text = match args.text.as_str() {
        "-" => input::text(LONGEST_INVITATION + 1)?,
        _ => args.text,
    };
    let open = context.open()?;
    let caller = context.caller(&open, args.from).await?;
    let invited = open.mesh.invite(&caller, &args.session, args.harness.as_deref(), &text).await?;
    let mut answer = wait_for_answer(&open, &invited).await?;
    if answer == Answer::Open {
        open.mesh.remind(&invited).await?;
        answer = wait_for_answer(&open, &invited).await?;
    }
    context.printer.show(&InvitedShape::of(&invited, &answer))?;
    Ok(Outcome::DONE)
}

/// Where the invitation stands, as soon as anybody has seen it or patience is at an end.
async fn wait_for_answer(open: &Open, invited: &Invited) -> Result<Answer, CommandError> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answer = open.mesh.invitation(&invited.session).await?.unwrap_or(Answer::Open);
        if answer != Answer::Open || tokio::time::Instant::now() >= deadline {
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
    /// The route that took it.
    route: String,
    /// How far it got, as far as anybody can prove: `offered`, `accepted`, `shown`.
    rung: &'static str,
    /// The agent, where the session has joined already.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
}

impl InvitedShape {
    fn of(invited: &Invited, answer: &Answer) -> InvitedShape {
        let rung = match answer {
            // A route that carries the text settles the invitation, and says itself how far it got.
            Answer::Shown if invited.route == "bell" => mesh::receipt::Rung::Shown.as_str(),
            Answer::Open | Answer::Shown | Answer::Joined(_) => invited.rung.as_str(),
        };
        InvitedShape {
            harness: invited.session.harness.clone(),
            session: invited.session.id.clone(),
            from: invited.from.to_string(),
            route: invited.route.clone(),
            rung,
            agent: match answer {
                Answer::Joined(agent) => Some(agent.to_string()),
                Answer::Open | Answer::Shown => None,
            },
        }
    }
}

impl Show for InvitedShape {
    fn text(&self) -> String {
        let who = format!("{} session {}", printable_line(&self.harness), printable_line(&self.session));
        match &self.agent {
            Some(agent) => format!("{who} has joined as {agent}"),
            None => format!("{who}: invitation {} by {}", self.rung, printable_line(&self.route)),
        }
    }
}

#[cfg(test)]
mod tests {
    use mesh::receipt::Rung;
    use mesh::session::SessionRef;

    use super::*;

    fn check(route: &str, rung: Rung, answer: &Answer, expected: &str) {
        let session = SessionRef { harness: "codex".to_owned(), id: "s1".to_owned() };
        let from = "alice".parse().expect("a name");
        let invited = Invited { session, from, route: route.to_owned(), rung };
        assert_eq!(InvitedShape::of(&invited, answer).text(), expected);
    }

    #[test]
    fn no_more_is_claimed_than_was_proven() {
        check("bell", Rung::Offered, &Answer::Open, "codex session s1: invitation offered by bell");
        check("bell", Rung::Offered, &Answer::Shown, "codex session s1: invitation shown by bell");
        check("app-server", Rung::Accepted, &Answer::Shown, "codex session s1: invitation accepted by app-server");
        let joined = Answer::Joined("bob".parse().expect("a name"));
        check("queue", Rung::Offered, &joined, "codex session s1 has joined as bob");
    }
}
