//! The receipt ladder: how far a message went with one recipient, and how we know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;

/// A rung of the ladder. Each means what it says and nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rung {
    /// It waits on the sender's machine, on disk, because the servers cannot be reached. In no inbox yet.
    Queued,
    /// It lies in the inbox, on disk. Nobody was told.
    Stored,
    /// A route was asked to carry it or the news of it.
    Offered,
    /// The harness said that it took it.
    Accepted,
    /// Its text was put where the agent's model reads.
    Shown,
    /// The agent asked for its mail and was given this.
    Fetched,
    /// The agent said that it had it, or replied to it.
    Acknowledged,
}

impl Rung {
    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Rung::Queued => "queued",
            Rung::Stored => "stored",
            Rung::Offered => "offered",
            Rung::Accepted => "accepted",
            Rung::Shown => "shown",
            Rung::Fetched => "fetched",
            Rung::Acknowledged => "acknowledged",
        }
    }

    /// Whether the agent has the text: nothing needs to carry it any more.
    pub fn settles(self) -> bool {
        match self {
            Rung::Queued | Rung::Stored | Rung::Offered | Rung::Accepted => false,
            Rung::Shown | Rung::Fetched | Rung::Acknowledged => true,
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
    /// It climbed to a rung.
    Rung {
        /// Which.
        rung: Rung,
        /// The route that carried it: `hook:PostToolUse`, `fetch`, `bell`.
        route: String,
        /// What proves it, in the route's own terms: a turn id, a tool-use id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<serde_json::Value>,
    },
    /// Somebody is about to present it, and nobody else may until then.
    Claimed {
        /// Names the claim in what follows.
        claim: String,
        /// When the claim lapses by itself.
        until: Instant,
    },
    /// The presenter gave up without presenting it.
    Released {
        /// The claim that ended.
        claim: String,
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

/// One climbed rung: when, by which route, and what proves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Climbed {
    /// When.
    pub at: Instant,
    /// By which route.
    pub route: String,
    /// What proves it.
    pub evidence: Option<serde_json::Value>,
}

/// Where a message stands with one recipient: the fold of its receipts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ladder {
    /// The rungs that it climbed, each with its first evidence.
    pub climbed: BTreeMap<Rung, Climbed>,
    /// Who is presenting it, and until when that keeps others off.
    pub claim: Option<(String, Instant)>,
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

impl Ladder {
    /// The ladder as it concerns a session that began at this time: what routes into an earlier
    /// session of the same agent did or refused says nothing of routes into this one.
    pub fn since(&self, began: Instant) -> Ladder {
        let mut own = self.clone();
        own.tried.retain(|_, (_, at)| *at >= began);
        own.refused.retain(|(_, _, at)| *at >= began);
        own
    }

    /// Takes one more event in.
    pub fn take(&mut self, at: Instant, event: Event) {
        match event {
            Event::Rung { rung, route, evidence } => {
                if rung.settles() {
                    self.claim = None;
                    self.held = None;
                }
                self.undeliverable = None;
                self.note_try(&route, at);
                self.climbed.entry(rung).or_insert(Climbed { at, route, evidence });
            }
            Event::Claimed { claim, until } => self.claim = Some((claim, until)),
            Event::Released { claim } => {
                if self.claim.as_ref().is_some_and(|(held, _)| *held == claim) {
                    self.claim = None;
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

    /// The highest rung. Every message in an inbox is at least stored.
    pub fn rung(&self) -> Rung {
        self.climbed.keys().next_back().copied().unwrap_or(Rung::Stored)
    }

    /// Whether the agent has the text, or never will.
    pub fn is_settled(&self) -> bool {
        self.rung().settles() || self.expired
    }

    /// Whether somebody is presenting it right now.
    pub fn is_claimed(&self, now: Instant) -> bool {
        self.claim.as_ref().is_some_and(|(_, until)| now < *until)
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
    pub ladder: Ladder,
}
