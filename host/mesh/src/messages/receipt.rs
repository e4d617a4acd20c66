//! The delivery history: how far a message got with one recipient, and the evidence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::messages::Hold;
use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::sessions::SessionRef;

/// The route by which an agent fetches its mail itself.
pub const FETCH: &str = "fetch";

/// A delivery status. Each claims no more than its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryStatus {
    /// It waits on disk on the sender's machine, because the servers cannot be reached. In no inbox yet.
    Queued,
    /// It is on disk in the inbox. No notification was sent.
    Stored,
    /// A route was asked to carry it or a notification of it.
    #[serde(alias = "offered")]
    Notified,
    /// The harness confirmed that it took it.
    Accepted,
    /// Its text was put into the agent's context.
    Shown,
    /// The agent fetched its mail and got this message.
    #[serde(alias = "fetched")]
    Read,
    /// The agent acknowledged it or replied to it.
    Acknowledged,
}

impl DeliveryStatus {
    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Queued => "queued",
            DeliveryStatus::Stored => "stored",
            DeliveryStatus::Notified => "notified",
            DeliveryStatus::Accepted => "accepted",
            DeliveryStatus::Shown => "shown",
            DeliveryStatus::Read => "read",
            DeliveryStatus::Acknowledged => "acknowledged",
        }
    }

    /// Whether the agent has the text, so that no route needs to carry it any more.
    pub fn settles(self) -> bool {
        match self {
            DeliveryStatus::Queued | DeliveryStatus::Stored | DeliveryStatus::Notified | DeliveryStatus::Accepted => {
                false
            }
            DeliveryStatus::Shown | DeliveryStatus::Read | DeliveryStatus::Acknowledged => true,
        }
    }
}

/// An event of a message, as one line of the recipient's `receipts` log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub message: MessageId,
    /// When the event happened.
    pub at: Instant,
    #[serde(flatten)]
    pub event: Event,
}

/// What can happen to a message after it was stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// It reached a further status.
    #[serde(alias = "rung")]
    Status {
        #[serde(alias = "rung")]
        status: DeliveryStatus,
        /// The route that carried it: `hook:PostToolUse`, `fetch`, `wake-file`.
        route: String,
        /// The evidence, in the route's own terms: a turn id, a tool-use id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<serde_json::Value>,
    },
    /// A presenter leased it: no other may present it until then.
    #[serde(alias = "claimed")]
    Leased {
        /// The id of the lease, which the release repeats.
        #[serde(alias = "claim")]
        lease: String,
        /// When the lease lapses by itself.
        until: Instant,
    },
    /// A hook's answer with its text was written out to this session, or the reply to its fetch. It counts as accepted, or
    /// as read, and stays open until the harness's own evidence shows that a model request held it; no other presenter
    /// takes it meanwhile.
    #[serde(rename = "handed-over")]
    HandedOver {
        session: SessionRef,
        /// The hook, `hook:PostToolUse`, or [`FETCH`].
        route: String,
    },
    /// Only the beginning of its text has gone out, or by now all of it.
    Cut(Cut),
    /// The session that it was handed over to ended, or left it out, before a model request is known to have held it.
    #[serde(rename = "taken-back")]
    TakenBack {
        /// The reason, for users.
        reason: String,
    },
    /// The presenter gave up without presenting it.
    Released {
        /// The lease that ended.
        #[serde(alias = "claim")]
        lease: String,
        /// It had passed the text on, so the text may have been read.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        went_out: bool,
    },
    /// The loop guard stopped waking for it; it waits for the user or a fetch.
    Held {
        /// Why, and until when.
        #[serde(flatten)]
        hold: Hold,
    },
    /// The user spoke, so held messages may wake again.
    Freed,
    /// It waited longer than mail is kept.
    Expired,
    /// No route can deliver it or a notification of it to this recipient. It stays in the inbox, and a hook
    /// or a fetch that finds it there ends this.
    Undeliverable {
        /// The reason, for users.
        reason: String,
    },
    /// A route was tried and did not take it. The next one follows.
    Refused {
        route: String,
        /// The reason, for users.
        reason: String,
    },
}

/// How much of a message's text has gone out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Its first bytes, so many.
    pub shown: usize,
    /// The length of the whole text, in bytes.
    pub of: usize,
}

/// A hand-over that nothing has proven yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandOver {
    /// The session whose hook carried the message.
    pub session: SessionRef,
    /// The hook.
    pub route: String,
    pub at: Instant,
}

/// A status that a message reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reached {
    /// When it was reached.
    pub at: Instant,
    /// The route that proved it.
    pub route: String,
    /// The evidence, in the route's own terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<serde_json::Value>,
}

/// The right of one presenter to present a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisplayLease {
    /// The id of the lease.
    pub id: String,
    /// When it was taken.
    pub since: Instant,
    /// When it lapses by itself.
    pub until: Instant,
}

/// A message's delivery history with one recipient: the fold of its receipts. The cursor of an inbox keeps those of open
/// messages (`messages/checkpoint.rs`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeliveryHistory {
    /// Every status it reached, each with its first evidence.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reached: BTreeMap<DeliveryStatus, Reached>,
    /// The current lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<DisplayLease>,
    /// The session to which it was handed over, while it is not known whether a model request held it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed: Option<HandOver>,
    /// Why it waits again after it was handed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_back: Option<String>,
    /// How much of its text the recipient got, if that was not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// Its text has gone out, or may have. See [`DeliveryHistory::may_repeat`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub went_out: bool,
    /// Why waking stopped, if it did. See [`DeliveryHistory::held`] for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Whether it expired.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// Why no route can deliver it, if none can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undeliverable: Option<String>,
    /// Routes that did not take it, with reason and time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<(String, String, Instant)>,
    /// Every route that was tried: how often, and when last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tried: BTreeMap<String, (u32, Instant)>,
}

impl DeliveryHistory {
    /// The history of a message that was just stored.
    pub fn of_stored(held: Option<&Hold>) -> DeliveryHistory {
        DeliveryHistory { hold: held.cloned(), ..DeliveryHistory::default() }
    }

    /// Why no wake is sent for it now.
    pub fn held(&self, now: Instant) -> Option<&str> {
        let hold = self.hold.as_ref().filter(|hold| hold.until.is_none_or(|until| now < until));
        hold.map(|hold| hold.reason.as_str())
    }

    /// The history as far as it concerns a session that began at this time: tries and refusals of routes into an
    /// earlier session of the same agent are left out.
    pub fn since(&self, began: Instant) -> DeliveryHistory {
        let mut own = self.clone();
        own.tried.retain(|_, (_, at)| *at >= began);
        own.refused.retain(|(_, _, at)| *at >= began);
        own
    }

    /// Applies one more event.
    pub fn take(&mut self, at: Instant, event: Event) {
        match event {
            Event::Status { status, route, evidence } => {
                if status.settles() {
                    self.lease = None;
                    self.hold = None;
                    self.handed = None;
                    self.taken_back = None;
                }
                self.undeliverable = None;
                self.note_try(&route, at);
                self.reached.entry(status).or_insert(Reached { at, route, evidence });
            }
            Event::Leased { lease, until } => {
                self.went_out |= self.lease.is_some();
                self.lease = Some(DisplayLease { id: lease, since: at, until });
            }
            Event::HandedOver { session, route } => {
                self.lease = None;
                self.hold = None;
                self.undeliverable = None;
                self.went_out = true;
                self.taken_back = None;
                self.note_try(&route, at);
                self.handed = Some(HandOver { session, route: route.clone(), at });
                let status = if route == FETCH { DeliveryStatus::Read } else { DeliveryStatus::Accepted };
                self.reached.entry(status).or_insert(Reached { at, route, evidence: None });
            }
            Event::Cut(cut) => self.cut = Some(cut).filter(|cut| cut.shown < cut.of),
            Event::TakenBack { reason } => {
                // It may have been proven in the same moment.
                if self.handed.take().is_some() {
                    self.taken_back = Some(reason);
                }
            }
            Event::Released { lease, went_out } => {
                if self.lease.as_ref().is_some_and(|held| held.id == lease) {
                    self.lease = None;
                }
                self.went_out |= went_out;
            }
            Event::Held { hold } => self.hold = Some(hold),
            Event::Freed => self.hold = None,
            Event::Expired => self.expired = true,
            Event::Undeliverable { reason } => self.undeliverable = Some(reason),
            Event::Refused { route, reason } => {
                self.note_try(&route, at);
                self.refused.push((route, reason, at));
            }
        }
    }

    fn note_try(&mut self, route: &str, at: Instant) {
        let (times, last) = self.tried.entry(route.to_owned()).or_insert((0, at));
        *times += 1;
        *last = at;
    }

    /// Whether its text went out before and may have been read. A lease that was neither confirmed nor released counts:
    /// its holder may have died after the text was out.
    pub fn may_repeat(&self) -> bool {
        self.went_out || self.lease.is_some()
    }

    /// The highest status. Every message in an inbox is at least stored.
    pub fn status(&self) -> DeliveryStatus {
        self.reached.keys().next_back().copied().unwrap_or(DeliveryStatus::Stored)
    }

    /// Whether the agent has the text, or never will. What it fetched is open until a model request is known to have held
    /// it, if its harness tells.
    pub fn is_settled(&self) -> bool {
        let is_open = self.handed.is_some() || self.taken_back.is_some();
        (self.status().settles() && !is_open) || self.expired
    }

    /// Whether nothing has happened to it since it was stored, held or not.
    pub(crate) fn is_untouched(&self) -> bool {
        *self == DeliveryHistory::of_stored(self.hold.as_ref())
    }

    /// Whether a presenter holds a lease on it now.
    pub fn is_leased(&self, now: Instant) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.lasts(now))
    }
}

impl DisplayLease {
    /// Whether it lasts at this time. One that begins later than it is long was taken by a clock that has stepped back
    /// since: it would hide the message until that time comes again.
    fn lasts(&self, now: Instant) -> bool {
        let length = self.until.since(self.since);
        now < self.until && self.since.since(now) <= length
    }
}

/// A message's delivery history with one recipient, for its sender.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipientStatus {
    /// The recipient.
    pub to: AgentName,
    /// When it was stored in the recipient's inbox; for a queued message, when it was sent.
    pub stored: Instant,
    /// What happened since.
    pub history: DeliveryHistory,
    /// What it waits for, if it goes no further by itself.
    pub awaits: Option<Awaits>,
}

/// What a message waits for that goes no further by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// The next prompt in its recipient's session.
    NextPrompt,
    /// That the user lets its paused recipient go on.
    Resume,
    /// That its recipient fetches it, which has no session that could be woken.
    Fetch,
    /// That its recipient, which is offline, comes back.
    Return,
}
