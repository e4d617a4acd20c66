//! The delivery of a message, recipient by recipient.

use mesh::messages::receipt::{Awaits, DeliveryHistory, DeliveryStatus, RecipientStatus};
use mesh::names::AgentName;
use mesh::{Sent, SentTo, WaitsFor};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use crate::{MessageView, PresenceView, Timestamp};

// A delivery status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StatusView {
    Queued,
    Stored,
    Notified,
    Accepted,
    Shown,
    Read,
    Acknowledged,
}

impl StatusView {
    /// The word that JSON and text use.
    pub fn as_str(self) -> &'static str {
        DeliveryStatus::from(self).as_str()
    }
}

impl From<DeliveryStatus> for StatusView {
    fn from(status: DeliveryStatus) -> StatusView {
        match status {
            DeliveryStatus::Queued => StatusView::Queued,
            DeliveryStatus::Stored => StatusView::Stored,
            DeliveryStatus::Notified => StatusView::Notified,
            DeliveryStatus::Accepted => StatusView::Accepted,
            DeliveryStatus::Shown => StatusView::Shown,
            DeliveryStatus::Read => StatusView::Read,
            DeliveryStatus::Acknowledged => StatusView::Acknowledged,
        }
    }
}

impl From<StatusView> for DeliveryStatus {
    fn from(status: StatusView) -> DeliveryStatus {
        match status {
            StatusView::Queued => DeliveryStatus::Queued,
            StatusView::Stored => DeliveryStatus::Stored,
            StatusView::Notified => DeliveryStatus::Notified,
            StatusView::Accepted => DeliveryStatus::Accepted,
            StatusView::Shown => DeliveryStatus::Shown,
            StatusView::Read => DeliveryStatus::Read,
            StatusView::Acknowledged => DeliveryStatus::Acknowledged,
        }
    }
}

// The result of sending a message.
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
    /// The result of sending, for a message of `from`.
    pub fn of(sent: &Sent, from: String) -> SentView {
        let to = |recipient: &SentTo| {
            let is_queued = recipient.status == DeliveryStatus::Queued;
            let waits_until = sent.waits_for.filter(|_| is_queued).map(WaitsFor::as_str);
            SentToView { waits_until, ..SentToView::from(recipient) }
        };
        let recipients = sent.recipients.iter().map(to).collect();
        SentView { id: sent.id.to_string(), thread: sent.thread.clone(), from, recipients }
    }
}

// The result of sending to one recipient.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SentToView {
    pub to: String,
    /// How far it got.
    pub status: StatusView,
    /// How present the recipient is.
    pub presence: PresenceView,
    /// Why it was not woken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The same idempotency_key was stored before; nothing was stored now.
    pub duplicate: bool,
    /// If it is queued: until when it waits on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<&'static str>,
    /// Whether its user has paused it, if that was looked up.
    #[serde(skip)]
    pub paused: bool,
}

impl From<&SentTo> for SentToView {
    fn from(sent: &SentTo) -> SentToView {
        SentToView {
            to: sent.to.to_string(),
            status: sent.status.into(),
            presence: sent.presence.into(),
            held: sent.held.clone(),
            duplicate: sent.duplicate,
            waits_until: None,
            paused: false,
        }
    }
}

// The delivery of a message to one recipient.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RecipientView {
    pub to: String,
    /// How far it got.
    pub status: StatusView,
    /// Every status it had, in order.
    pub history: Vec<StepView>,
    /// What has yet to happen before it counts as shown, if its text has gone out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// What brings it, if it waits for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// How much of its text the recipient got, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
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

impl RecipientView {
    /// A recipient of whom nothing is known but the statuses that the message had, in order.
    pub(crate) fn with_history(to: String, history: Vec<StepView>) -> RecipientView {
        RecipientView {
            to,
            status: history.last().map_or(StatusView::Queued, |step| step.status),
            history,
            open: None,
            waits: None,
            cut: None,
            held: None,
            expired: false,
            undeliverable: None,
            refused: Vec::new(),
        }
    }

    /// A recipient for whom a message has just been stored.
    pub fn just_stored(to: String, message: &MessageView) -> RecipientView {
        let step = StepView { status: StatusView::Stored, at: message.at, route: None, evidence: None };
        RecipientView::with_history(to, vec![step])
    }
}

// One status that a message had.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct StepView {
    pub status: StatusView,
    pub at: Timestamp,
    /// The route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The evidence, in the route's own terms.
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
        let history = &status.history;
        let steps = history.reached.iter().map(|(status, step)| StepView {
            status: (*status).into(),
            at: Timestamp(step.at),
            route: Some(step.route.clone()),
            evidence: step.evidence.clone(),
        });
        let refused = history.refused.iter().map(|(route, reason, at)| RefusedRouteView {
            route: route.clone(),
            reason: reason.clone(),
            at: Timestamp(*at),
        });
        RecipientView {
            to: status.to.to_string(),
            status: history.status().into(),
            history: stored_step(status).into_iter().chain(steps).collect(),
            open: open(history),
            waits: status.awaits.map(|awaits| waits(awaits, &status.to)),
            cut: history
                .cut
                .map(|cut| format!("{} of {} bytes; the rest waits until it is asked for", cut.shown, cut.of)),
            held: history.hold.as_ref().map(|hold| hold.reason.clone()),
            expired: history.expired,
            undeliverable: history.undeliverable.clone(),
            refused: refused.collect(),
        }
    }
}

fn waits(awaits: Awaits, to: &AgentName) -> String {
    match awaits {
        Awaits::NextPrompt => "it is shown with its session's next prompt".to_owned(),
        Awaits::Resume => format!("its user has paused the agent: `relay-mesh resume {to}` lets it go on"),
        Awaits::Fetch => {
            "the agent has no session that could be woken: it comes with the agent's next fetch".to_owned()
        }
        Awaits::Return => "the agent is offline: it is shown when its session is opened again".to_owned(),
    }
}

fn open(history: &DeliveryHistory) -> Option<String> {
    let handed = history.handed.as_ref().map(|_| "its session has it; no model request is known to have held it yet");
    let taken_back = history.taken_back.as_ref().map(|reason| format!("it will be shown again: {reason}"));
    handed.map(str::to_owned).or(taken_back)
}

// The mesh writes no receipt for `stored`, unless the message waited in the outbox. This adds the missing step.
fn stored_step(status: &RecipientStatus) -> Option<StepView> {
    let history = &status.history;
    let is_implied =
        history.status() > DeliveryStatus::Queued && !history.reached.contains_key(&DeliveryStatus::Stored);
    is_implied.then(|| StepView {
        status: StatusView::Stored,
        at: Timestamp(status.stored),
        route: None,
        evidence: None,
    })
}
