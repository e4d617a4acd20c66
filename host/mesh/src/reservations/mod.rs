//! Reservations: agents reserve paths of a repository, and no two that exclude each other are granted at once.

pub(crate) mod edits;
pub mod glob;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod reading;
pub mod repository;
pub(crate) mod reservation;
pub(crate) mod reserve;
pub(crate) mod written;

pub(crate) use reservation::holds;
pub use reservation::{Conflict, InvalidTtl, LONGEST_REASON, LONGEST_TTL, Mode, Reservation, Taken, Ttl};
