//! The receipt ladder: `message ID`.

use mesh::MessageStatus;
use mesh::machine::Instant;
use mesh::receipt::{RecipientStatus, Rung};
use serde::Serialize;

use super::mail::MessageShape;
use super::rfc3339;
use crate::render::{Show, printable_line, table};

/// One rung that a message climbed.
#[derive(Debug, Serialize)]
pub(crate) struct StepShape {
    /// `queued`, `stored`, `offered`, `accepted`, `shown`, `fetched` or `acknowledged`.
    pub(crate) rung: &'static str,
    /// When.
    pub(crate) at: String,
    /// By which route: `fetch`, `bell`, `hook:Stop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) route: Option<String>,
    /// What proves it, in the route's own terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) evidence: Option<serde_json::Value>,
}

/// A route that did not take it.
#[derive(Debug, Serialize)]
pub(crate) struct RefusedShape {
    /// The route.
    pub(crate) route: String,
    /// Why.
    pub(crate) reason: String,
    /// When.
    pub(crate) at: String,
}

/// Where a message stands with one recipient.
#[derive(Debug, Serialize)]
pub(crate) struct RecipientShape {
    /// The recipient.
    pub(crate) to: String,
    /// The highest rung.
    pub(crate) rung: &'static str,
    /// Every rung that it climbed, lowest first.
    pub(crate) steps: Vec<StepShape>,
    /// Why waking stopped, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<String>,
    /// Whether it lay longer than mail is kept.
    pub(crate) expired: bool,
    /// Why it cannot be delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undeliverable: Option<String>,
    /// Routes that did not take it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused: Vec<RefusedShape>,
}

impl From<&RecipientStatus> for RecipientShape {
    fn from(status: &RecipientStatus) -> RecipientShape {
        let ladder = &status.ladder;
        let stored = (ladder.rung() > Rung::Queued && !ladder.climbed.contains_key(&Rung::Stored)).then(|| StepShape {
            rung: Rung::Stored.as_str(),
            at: rfc3339(status.stored),
            route: None,
            evidence: None,
        });
        let climbed = ladder.climbed.iter().map(|(rung, step)| StepShape {
            rung: rung.as_str(),
            at: rfc3339(step.at),
            route: Some(step.route.clone()),
            evidence: step.evidence.clone(),
        });
        RecipientShape {
            to: status.to.to_string(),
            rung: ladder.rung().as_str(),
            steps: stored.into_iter().chain(climbed).collect(),
            held: ladder.held.clone(),
            expired: ladder.expired,
            undeliverable: ladder.undeliverable.clone(),
            refused: ladder
                .refused
                .iter()
                .map(|(route, reason, at)| RefusedShape {
                    route: route.clone(),
                    reason: reason.clone(),
                    at: rfc3339(*at),
                })
                .collect(),
        }
    }
}

impl RecipientShape {
    fn rows(&self) -> Vec<Vec<String>> {
        let row = |what: &str, at: &str, by: &str, detail: String| {
            vec![self.to.clone(), what.to_owned(), at.to_owned(), by.to_owned(), detail]
        };
        let steps = self.steps.iter().map(|step| {
            let evidence = step.evidence.as_ref().map_or_else(String::new, ToString::to_string);
            row(step.rung, &step.at, step.route.as_deref().unwrap_or_default(), printable_line(&evidence))
        });
        let refused = self.refused.iter().map(|one| row("refused", &one.at, &one.route, printable_line(&one.reason)));
        let held = self.held.iter().map(|reason| row("held", "", "", printable_line(reason)));
        let undeliverable =
            self.undeliverable.iter().map(|reason| row("undeliverable", "", "", printable_line(reason)));
        let expired = self.expired.then(|| row("expired", "", "", "it lay longer than mail is kept".to_owned()));
        steps.chain(refused).chain(held).chain(undeliverable).chain(expired).collect()
    }
}

/// `relay-mesh message ID`.
#[derive(Debug, Serialize)]
pub(crate) struct LadderShape {
    /// The message, as its first recipient has it.
    pub(crate) message: MessageShape,
    /// Each recipient.
    pub(crate) recipients: Vec<RecipientShape>,
    /// The time of asking, for "how long ago".
    #[serde(skip)]
    now: Instant,
}

impl LadderShape {
    /// A message's status at a time.
    pub(crate) fn of(status: &MessageStatus, now: Instant) -> LadderShape {
        let recipients = status.recipients.iter().map(RecipientShape::from).collect();
        LadderShape { message: (&status.message).into(), recipients, now }
    }
}

impl Show for LadderShape {
    fn text(&self) -> String {
        let rows: Vec<Vec<String>> = self.recipients.iter().flat_map(RecipientShape::rows).collect();
        let steps = table(&["TO", "RUNG", "AT", "BY", "EVIDENCE"], &rows);
        format!("{}\n{}\n\n{steps}", self.message.headline(self.now), self.message.text())
    }
}
