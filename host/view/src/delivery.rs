//! How far a message got, recipient by recipient.

use mesh::receipt::{RecipientStatus, Rung};
use mesh::{Sent, SentTo};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use crate::{PresenceView, Timestamp};

// A delivery status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RungView {
    Queued,
    Stored,
    Offered,
    Accepted,
    Shown,
    Fetched,
    Acknowledged,
}

impl RungView {
    /// The word that JSON and text use.
    pub fn as_str(self) -> &'static str {
        Rung::from(self).as_str()
    }
}

impl From<Rung> for RungView {
    fn from(rung: Rung) -> RungView {
        match rung {
            Rung::Queued => RungView::Queued,
            Rung::Stored => RungView::Stored,
            Rung::Offered => RungView::Offered,
            Rung::Accepted => RungView::Accepted,
            Rung::Shown => RungView::Shown,
            Rung::Fetched => RungView::Fetched,
            Rung::Acknowledged => RungView::Acknowledged,
        }
    }
}

impl From<RungView> for Rung {
    fn from(rung: RungView) -> Rung {
        match rung {
            RungView::Queued => Rung::Queued,
            RungView::Stored => Rung::Stored,
            RungView::Offered => Rung::Offered,
            RungView::Accepted => Rung::Accepted,
            RungView::Shown => Rung::Shown,
            RungView::Fetched => Rung::Fetched,
            RungView::Acknowledged => Rung::Acknowledged,
        }
    }
}

// What became of a message that was just sent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SentView {
    pub id: String,
    /// The conversation that it belongs to.
    pub thread: String,
    // The agent that sent it.
    pub from: String,
    pub recipients: Vec<SentToView>,
}

impl SentView {
    /// A message that `from` has just sent.
    pub fn of(sent: &Sent, from: String) -> SentView {
        let recipients = sent.recipients.iter().map(SentToView::from).collect();
        SentView { id: sent.id.to_string(), thread: sent.thread.clone(), from, recipients }
    }
}

// The same for one recipient.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SentToView {
    pub to: String,
    /// How far it got.
    pub rung: RungView,
    /// How present the recipient is.
    pub presence: PresenceView,
    /// Why nobody was woken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The same idempotency_key was stored before; nothing was stored now.
    pub duplicate: bool,
}

impl From<&SentTo> for SentToView {
    fn from(sent: &SentTo) -> SentToView {
        SentToView {
            to: sent.to.to_string(),
            rung: sent.rung.into(),
            presence: sent.presence.into(),
            held: sent.held.clone(),
            duplicate: sent.duplicate,
        }
    }
}

// The delivery of a message to one recipient.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RecipientView {
    pub to: String,
    /// How far it got.
    pub rung: RungView,
    /// Every status it had, in order.
    pub steps: Vec<StepView>,
    /// Why waking stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Whether it waited longer than mail is kept.
    pub expired: bool,
    /// Why it cannot be delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undeliverable: Option<String>,
    /// Routes that did not take it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedRouteView>,
}

// One status that a message had.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StepView {
    pub rung: RungView,
    pub at: Timestamp,
    /// By which route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// What proves it, in the route's own terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<serde_json::Value>,
}

// A route that did not take a message.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RefusedRouteView {
    pub route: String,
    pub reason: String,
    pub at: Timestamp,
}

impl From<&RecipientStatus> for RecipientView {
    fn from(status: &RecipientStatus) -> RecipientView {
        let ladder = &status.ladder;
        let steps = ladder.climbed.iter().map(|(rung, step)| StepView {
            rung: (*rung).into(),
            at: Timestamp(step.at),
            route: Some(step.route.clone()),
            evidence: step.evidence.clone(),
        });
        let refused = ladder.refused.iter().map(|(route, reason, at)| RefusedRouteView {
            route: route.clone(),
            reason: reason.clone(),
            at: Timestamp(*at),
        });
        RecipientView {
            to: status.to.to_string(),
            rung: ladder.rung().into(),
            steps: stored_step(status).into_iter().chain(steps).collect(),
            held: ladder.held.clone(),
            expired: ladder.expired,
            undeliverable: ladder.undeliverable.clone(),
            refused: refused.collect(),
        }
    }
}

// A message in an inbox is stored, but the mesh writes a receipt for that only if the message waited in the outbox.
// This makes up the missing step.
fn stored_step(status: &RecipientStatus) -> Option<StepView> {
    let ladder = &status.ladder;
    let is_implied = ladder.rung() > Rung::Queued && !ladder.climbed.contains_key(&Rung::Stored);
    is_implied.then(|| StepView { rung: RungView::Stored, at: Timestamp(status.stored), route: None, evidence: None })
}
