//! A reservation: who has reserved which paths of a repository, how, and until when.

use serde::{Deserialize, Serialize};

use crate::names::{AgentName, MessageId};
use crate::ports::machine::Instant;
use crate::reservations::glob::Glob;
use crate::sessions::SessionRef;

/// The longest that a reservation may last, in milliseconds: a week.
pub const LONGEST_TTL: u64 = 7 * 24 * 3_600_000;
/// The longest reason, in bytes.
pub const LONGEST_REASON: usize = 200;

/// Whether others may hold the same paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nobody else.
    #[default]
    Exclusive,
    /// Others who hold them shared.
    Shared,
}

impl Mode {
    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Exclusive => "exclusive",
            Mode::Shared => "shared",
        }
    }

    /// Whether this one beside that one is too much.
    pub(crate) fn excludes(self, other: Mode) -> bool {
        self == Mode::Exclusive || other == Mode::Exclusive
    }
}

/// How long a reservation lasts unless it is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl(u64);

/// Why a span of time is none that a reservation may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTtl {
    /// It would be over at once.
    #[error("a reservation lasts at least a second")]
    TooShort,
    /// Nobody would remember it.
    #[error("a reservation lasts at most a week; renew it while you work")]
    TooLong,
}

impl Ttl {
    /// A span in milliseconds.
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
    /// An hour.
    fn default() -> Ttl {
        Ttl(3_600_000)
    }
}

/// One reservation of one agent, as it is kept in its repository's value under `reservations/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its id. Written when it is granted; a renewal keeps it.
    pub id: MessageId,
    /// Who holds it.
    pub owner: AgentName,
    /// Of which paths, from the top of the repository.
    pub pattern: Glob,
    /// Whether others may.
    pub mode: Mode,
    /// What for, in the owner's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was granted or last renewed.
    pub granted: Instant,
    /// When it lapses by itself. Nothing else ends it but its owner and who takes it.
    pub expires: Instant,
    /// The session from which it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRef>,
    /// Who took it by force. Written by that one's `reserve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

/// How a reservation was taken from its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// By whom.
    pub by: AgentName,
    /// When.
    pub at: Instant,
    /// Whether its owner has been sent a message about it. Written once that message is stored; whoever comes
    /// by sees to it, so that no crash keeps the news from them.
    pub told: bool,
}

impl Reservation {
    /// Whether it holds at a time.
    pub fn holds(&self, now: Instant) -> bool {
        holds(self.taken.as_ref(), self.expires, now)
    }

    /// How long it still lasts, in milliseconds.
    pub fn left(&self, now: Instant) -> u64 {
        self.expires.since(now)
    }
}

/// Whether what was so taken and lapses then holds at a time.
pub(crate) fn holds(taken: Option<&Taken>, expires: Instant, now: Instant) -> bool {
    taken.is_none() && now < expires
}

/// What stands in the way of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The pattern that was asked for.
    pub asked: Glob,
    /// Whose reservation it meets.
    pub held: Reservation,
    /// A path that both would hold.
    pub at: String,
}
