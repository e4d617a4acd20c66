//! A reservation: which agent has reserved which paths of a repository, in which mode, and until when.

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::reservations::glob::Glob;
use crate::sessions::SessionRef;

/// Longest duration of a reservation, in milliseconds: a week.
pub const LONGEST_TTL: u64 = 7 * 24 * 3_600_000;
/// The longest reason, in bytes.
pub const LONGEST_REASON: usize = 200;

/// Whether other agents may hold the same paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// No other agent may.
    #[default]
    Exclusive,
    /// Other agents may hold them too, in shared mode.
    Shared,
}

impl Mode {
    /// The word that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Exclusive => "exclusive",
            Mode::Shared => "shared",
        }
    }

    /// Whether the two modes conflict on the same path.
    pub(crate) fn excludes(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// How long a reservation lasts unless it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl(u64);

/// Why a duration is not valid for a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTtl {
    /// Shorter than a second.
    #[error("a reservation lasts at least a second")]
    TooShort,
    /// Longer than a week.
    #[error("a reservation lasts at most a week; renew it while you work")]
    TooLong,
}

impl Ttl {
    /// A duration in milliseconds.
    pub fn new(milliseconds: u64) -> Result<Ttl, InvalidTtl> {
        match milliseconds {
            0..1_000 => Err(InvalidTtl::TooShort),
            1_000..=LONGEST_TTL => Ok(Ttl(milliseconds)),
            _ => Err(InvalidTtl::TooLong),
        }
    }

    /// In milliseconds.
    pub fn milliseconds(self) -> u64 {
        self.0
    }
}

impl Default for Ttl {
    fn default() -> Ttl {
        Ttl(3_600_000)
    }
}

/// One reservation, as stored in its repository's value under `reservations/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Reservation id. Assigned when it is granted; a renewal keeps it.
    pub id: MessageId,
    /// The agent that holds it.
    pub owner: AgentName,
    /// The reserved paths, relative to the top of the repository.
    pub pattern: Glob,
    /// Whether other agents may hold the paths too.
    pub mode: Mode,
    /// The reason, in the owner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was granted or last renewed.
    pub granted: Instant,
    /// When it lapses by itself. Before that, only a release by its owner or a forced take ends it.
    pub expires: Instant,
    /// The session that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRef>,
    /// How it was taken by force, if it was. Written by the taker's `reserve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Takeover>,
}

/// How a reservation was taken from its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takeover {
    /// The agent that took it.
    pub by: AgentName,
    /// When it was taken.
    pub at: Instant,
    /// Whether its owner has been sent a message about it. Set once that message is stored; any later process
    /// sends a missing one, so that a crash does not suppress it.
    pub told: bool,
}

impl Reservation {
    /// Whether it holds at this time.
    pub fn holds(&self, now: Instant) -> bool {
        holds(self.taken.as_ref(), self.expires, now)
    }

    /// How long it still lasts, in milliseconds.
    pub fn left(&self, now: Instant) -> u64 {
        self.expires.since(now)
    }
}

/// Whether a reservation with these fields holds at this time.
pub(crate) fn holds(taken: Option<&Takeover>, expires: Instant, now: Instant) -> bool {
    taken.is_none() && now < expires
}

/// A conflict with an existing reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The requested pattern.
    pub asked: Glob,
    /// The existing reservation.
    pub held: Reservation,
    /// A path that both would hold.
    pub at: String,
}
