//! Reservations: agents reserve paths of a repository, and no two conflicting reservations are granted at once.

pub(crate) mod edits;
pub mod glob;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod renamed;
pub mod repository;
pub(crate) mod reservation;
pub(crate) mod reserve;

pub use reservation::{Conflict, InvalidTtl, LONGEST_REASON, LONGEST_TTL, Mode, Reservation, Takeover, Ttl};
