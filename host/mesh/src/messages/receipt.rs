//! The delivery history: how far a message went with one recipient, and how we know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// A status of the history. Each means what it says and nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryStatus {
    /// It waits on the sender's machine, on disk, because the servers cannot be reached. In no inbox yet.
    Queued,
    /// It lies in the inbox, on disk. Nobody was told.
    Stored,
    /// A route was asked to carry it or the news of it.
    #[serde(alias = "offered")]
    Notified,
    /// The harness said that it took it.
    Accepted,
    /// Its text was put where the agent's model reads.
    Shown,
    /// The agent asked for its mail and was given this.
    #[serde(alias = "fetched")]
    Read,
    /// The agent said that it had it, or replied to it.
    Acknowledged,
}

impl DeliveryStatus {
    /// The word that people see.
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

    /// Whether the agent has the text: nothing needs to carry it any more.
    pub fn settles(self) -> bool {
        match self {
            DeliveryStatus::Queued | DeliveryStatus::Stored | DeliveryStatus::Notified | DeliveryStatus::Accepted => {
                false
            }
            DeliveryStatus::Shown | DeliveryStatus::Read | DeliveryStatus::Acknowledged => true,
        }
    }
}

/// What happened to a message, as one line of the recipient's `receipts` log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The message.
    pub message: MessageId,
    /// When it happened.
    pub at: Instant,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What can happen to a message after it was stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// It has a further status.
    #[serde(alias = "rung")]
    Status {
        /// Which.
        #[serde(alias = "rung")]
        status: DeliveryStatus,
        /// The route that carried it: `hook:PostToolUse`, `fetch`, `wake-file`.
        route: String,
        /// What proves it, in the route's own terms: a turn id, a tool-use id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<serde_json::Value>,
    },
    /// Somebody is about to present it, and nobody else may until then.
    #[serde(alias = "claimed")]
    Leased {
        /// Names the lease in what follows.
        #[serde(alias = "claim")]
        lease: String,
        /// When the lease lapses by itself.
        until: Instant,
    },
    /// The presenter gave up without presenting it.
    Released {
        /// The lease that ended.
        #[serde(alias = "claim")]
        lease: String,
    },
    /// Waking stopped for it; it waits for a person or a fetch.
    Held {
        /// Why, for people.
        reason: String,
    },
    /// A person spoke, and what was held may wake again.
    Freed,
    /// It lay longer than mail is kept.
    Expired,
    /// No route can bring it to this recipient, nor the news of it. It stays in the inbox, and a hook
    /// or a fetch that finds it there ends this.
    Undeliverable {
        /// Why, for people.
        reason: String,
    },
    /// A route was tried and did not take it. The next one follows.
    Refused {
        /// The route.
        route: String,
        /// Why, for people.
        reason: String,
    },
}

/// One reached status: when, by which route, and what proves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reached {
    /// When.
    pub at: Instant,
    /// By which route.
    pub route: String,
    /// What proves it.
    pub evidence: Option<serde_json::Value>,
}

/// Where a message stands with one recipient: the fold of its receipts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryHistory {
    /// The statuses that it reached, each with its first evidence.
    pub reached: BTreeMap<DeliveryStatus, Reached>,
    /// Who is presenting it, and until when that keeps others off.
    pub lease: Option<(String, Instant)>,
    /// Why waking stopped, where it did.
    pub held: Option<String>,
    /// Whether it expired.
    pub expired: bool,
    /// Why no route can bring it, where that is so.
    pub undeliverable: Option<String>,
    /// Routes that did not take it, with reason and time.
    pub refused: Vec<(String, String, Instant)>,
    /// Every route that was tried: how often, and when last.
    pub tried: BTreeMap<String, (u32, Instant)>,
}

impl DeliveryHistory {
    /// The history as it concerns a session that began at this time: what routes into an earlier
    /// session of the same agent did or refused says nothing of routes into this one.
    pub fn since(&self, began: Instant) -> DeliveryHistory {
        let mut own = self.clone();
        own.tried.retain(|_, (_, at)| *at >= began);
        own.refused.retain(|(_, _, at)| *at >= began);
        own
    }

    /// Takes one more event in.
    pub fn take(&mut self, at: Instant, event: Event) {
        match event {
            Event::Status { status, route, evidence } => {
                if status.settles() {
                    self.lease = None;
                    self.held = None;
                }
                self.undeliverable = None;
                self.note_try(&route, at);
                self.reached.entry(status).or_insert(Reached { at, route, evidence });
            }
            Event::Leased { lease, until } => self.lease = Some((lease, until)),
            Event::Released { lease } => {
                if self.lease.as_ref().is_some_and(|(held, _)| *held == lease) {
                    self.lease = None;
                }
            }
            Event::Held { reason } => self.held = Some(reason),
            Event::Freed => self.held = None,
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

    /// The highest status. Every message in an inbox is at least stored.
    pub fn status(&self) -> DeliveryStatus {
        self.reached.keys().next_back().copied().unwrap_or(DeliveryStatus::Stored)
    }

    /// Whether the agent has the text, or never will.
    pub fn is_settled(&self) -> bool {
        self.status().settles() || self.expired
    }

    /// Whether somebody is presenting it right now.
    pub fn is_leased(&self, now: Instant) -> bool {
        self.lease.as_ref().is_some_and(|(_, until)| now < *until)
    }
}

/// Where one message stands with one recipient, for the sender's eyes.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipientStatus {
    /// The recipient.
    pub to: AgentName,
    /// When it was stored there.
    pub stored: Instant,
    /// What happened since.
    pub history: DeliveryHistory,
}
