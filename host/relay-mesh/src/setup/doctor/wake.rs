//! Follows one message and reports each delivery status.

use std::collections::BTreeSet;
use std::time::Duration;

use mesh::MessageStatus;
use mesh::messages::Draft;
use mesh::messages::receipt::{Awaits, DeliveryStatus, RecipientStatus};
use mesh::names::AgentName;
use mesh::ports::harness::{Finding, Severity};

use super::{broken, fine, shown};
use crate::compose::Open;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

/// Poll interval. Each status is reported with its own time, not the poll's.
pub(crate) const EVERY: Duration = Duration::from_millis(50);

pub(crate) async fn agent_of(open: &Open, session: &str) -> Result<AgentName, CommandError> {
    let sessions = open.mesh.sessions().await?;
    if let Some(view) = sessions.into_iter().find(|view| view.record.session.id == session) {
        return view.record.agent.ok_or_else(|| absent(format!("no agent is registered in session `{session}`")));
    }
    match session.parse::<AgentName>() {
        Ok(name) if open.mesh.agent(&name).await?.is_some() => Ok(name),
        Ok(_) | Err(_) => Err(absent(format!("no session and no agent is called `{session}`"))),
    }
}

fn absent(what: String) -> CommandError {
    let hint = Some("run `relay-mesh agents` to see who is here, and in which session".to_owned());
    CommandError::from(Failure { what, hint, exit: Exit::NotFound, source: None })
}

/// Whether an agent has a session. One of the command line alone reads its mail itself.
pub(crate) async fn has_session(open: &Open, agent: &AgentName) -> Result<bool, CommandError> {
    Ok(open.mesh.agent(agent).await?.is_some_and(|found| found.agent.session.is_some()))
}

/// The finding about an agent that nothing can wake. It is sent no message.
pub(crate) fn without_session(agent: &AgentName) -> Finding {
    broken(
        format!("{agent} has no session that could be woken, so no test message was sent"),
        format!("mail to it waits until it reads: `relay-mesh read --agent {agent}`, or fetch_messages"),
    )
}

/// What becomes of a test message that nobody has read.
pub(crate) fn left_unread(id: &str, status: &RecipientStatus) -> Option<String> {
    let to = &status.to;
    let told = format!(
        "the test message stays unread in the inbox of {to} until {to} acknowledges it; `relay-mesh ack {id} --agent {to}` \
         does so"
    );
    (status.history.status() < DeliveryStatus::Read).then_some(told)
}

/// The test message. It says that it is a test, so that no model acts on it.
pub(crate) fn message(nonce: &str) -> Draft {
    Draft {
        subject: Some(format!("relay-mesh doctor {nonce}")),
        body: format!(
            "This is a test by `relay-mesh doctor`: it checks that messages reach this session ({nonce}). \
             Acknowledge it; there is nothing else to do."
        ),
        tags: vec!["doctor".to_owned()],
        ..Draft::default()
    }
}

/// The status of the test message, which has one recipient.
pub(crate) fn only_recipient(status: MessageStatus) -> Result<RecipientStatus, CommandError> {
    status.recipients.into_iter().next().ok_or_else(|| absent("the test message is in no inbox".to_owned()))
}

/// What has been reported of a message so far.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    told: BTreeSet<DeliveryStatus>,
    refused: usize,
    held: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A higher status may follow.
    Longer,
    Over,
}

impl Follower {
    /// The lines that have not been reported yet.
    pub(crate) fn news(&mut self, status: &RecipientStatus) -> Vec<String> {
        let mut lines = Vec::new();
        if self.told.insert(DeliveryStatus::Stored) {
            lines.push(format!("stored in the inbox of {}", status.to));
        }
        for (reached, proof) in &status.history.reached {
            if self.told.insert(*reached) {
                let after = shown(Duration::from_millis(proof.at.since(status.stored)));
                lines.push(format!("{} after {after} by {}", reached.as_str(), proof.route));
            }
        }
        for (route, reason, at) in status.history.refused.iter().skip(self.refused) {
            let after = shown(Duration::from_millis(at.since(status.stored)));
            lines.push(format!("refused by {route} after {after}: {reason}"));
        }
        self.refused = status.history.refused.len();
        if let Some(hold) = status.history.hold.as_ref().filter(|_| !self.held) {
            self.held = true;
            lines.push(format!("held: {}", hold.reason));
        }
        lines
    }
}

/// Whether to poll again. A shown message proves the wake; an acknowledgement is up to the agent.
pub(crate) fn wait(status: &RecipientStatus) -> Wait {
    let ended = status.history.is_settled() || status.history.undeliverable.is_some();
    if ended { Wait::Over } else { Wait::Longer }
}

/// The final finding.
pub(crate) fn verdict(status: &RecipientStatus, timeout: Duration) -> Finding {
    let (history, stored, awaits) = (&status.history, status.stored, status.awaits);
    let status = history.status();
    let within = shown(timeout);
    if status.settles() {
        let reached = history.reached.get(&status).map_or(stored, |step| step.at);
        let after = shown(Duration::from_millis(reached.since(stored)));
        fine(format!("the message was {} after {after}", status.as_str()))
    } else if let Some(reason) = &history.undeliverable {
        broken(
            format!("the message cannot be delivered: {reason}"),
            "start the session again and let its agent register",
        )
    } else if let Some(hold) = &history.hold {
        let what = format!("waking is stopped: {}", hold.reason);
        Finding {
            severity: Severity::Warning,
            what,
            fix: Some("type something in that session, then try again".to_owned()),
        }
    } else {
        let fix = match awaits {
            Some(Awaits::Resume) => "its user has paused that agent: `relay-mesh resume NAME` lets it go on",
            Some(Awaits::Fetch) => {
                "that agent has no session that could be woken: it reads with `relay-mesh read` or fetch_messages"
            }
            Some(Awaits::Return) => "that agent is offline: open its session again",
            Some(Awaits::NextPrompt) => "nothing wakes that session: type something there",
            None => "see whether the session is open and idle, and run `relay-mesh doctor HARNESS` for its hooks",
        };
        broken(format!("the message was {} and not shown within {within}", status.as_str()), fix)
    }
}

#[cfg(test)]
mod tests {
    use mesh::messages::Hold;
    use mesh::messages::receipt::{DeliveryHistory, Event};
    use mesh::ports::machine::Instant;

    use super::*;

    fn status(events: &[(u64, Event)]) -> RecipientStatus {
        let mut history = DeliveryHistory::default();
        for (at, event) in events {
            history.take(Instant(1000 + at), event.clone());
        }
        RecipientStatus { to: "alice".parse().expect("a name"), stored: Instant(1000), history, awaits: None }
    }

    fn reached(status: DeliveryStatus, route: &str) -> Event {
        Event::Status { status, route: route.to_owned(), evidence: None }
    }

    #[test]
    fn each_status_is_told_once_with_its_own_time() {
        let mut follower = Follower::default();
        let notified = (3, reached(DeliveryStatus::Notified, "wake-file"));
        assert_eq!(follower.news(&status(&[])), ["stored in the inbox of alice"]);
        assert_eq!(follower.news(&status(std::slice::from_ref(&notified))), ["notified after 3.0 ms by wake-file"]);
        let refused = (9, Event::Refused { route: "notification".to_owned(), reason: "no desktop".to_owned() });
        let news = follower.news(&status(&[notified.clone(), refused.clone()]));
        assert_eq!(news, ["refused by notification after 9.0 ms: no desktop"]);
        let shown = (640, reached(DeliveryStatus::Shown, "hook:FileChanged"));
        assert_eq!(follower.news(&status(&[notified, refused, shown])), ["shown after 640 ms by hook:FileChanged"]);
    }

    fn check(events: &[(u64, Event)], expected_wait: Wait, severity: Severity, expected: &str) {
        let status = status(events);
        let finding = verdict(&status, Duration::from_secs(30));
        assert_eq!((wait(&status), finding.severity), (expected_wait, severity), "{}", finding.what);
        assert!(finding.what.contains(expected), "{}", finding.what);
    }

    #[test]
    fn a_test_message_that_nobody_read_is_told_with_the_way_to_take_it_away() {
        for (events, is_left) in [
            (vec![], true),
            (vec![(1, reached(DeliveryStatus::Shown, "hook"))], true),
            (vec![(1, reached(DeliveryStatus::Read, "fetch"))], false),
            (vec![(1, reached(DeliveryStatus::Acknowledged, "reply"))], false),
        ] {
            let told = left_unread("01JD", &status(&events));
            assert_eq!(told.is_some(), is_left, "{told:?}");
            assert!(told.is_none_or(|told| told.contains("`relay-mesh ack 01JD --agent alice`")));
        }
    }

    #[test]
    fn only_a_message_that_was_shown_proves_a_wake() {
        check(&[], Wait::Longer, Severity::Broken, "stored and not shown within 30.0 s");
        check(
            &[(1, reached(DeliveryStatus::Notified, "wake-file"))],
            Wait::Longer,
            Severity::Broken,
            "notified and not shown",
        );
        check(&[(1, reached(DeliveryStatus::Shown, "hook"))], Wait::Over, Severity::Ok, "was shown after 1.0 ms");
        check(
            &[(1, reached(DeliveryStatus::Acknowledged, "reply"))],
            Wait::Over,
            Severity::Ok,
            "acknowledged after 1.0 ms",
        );
        check(
            &[(1, Event::Held { hold: Hold { reason: "12 hops".to_owned(), until: None } })],
            Wait::Longer,
            Severity::Warning,
            "12 hops",
        );
        check(&[(1, Event::Undeliverable { reason: "no route".to_owned() })], Wait::Over, Severity::Broken, "no route");
    }
}
