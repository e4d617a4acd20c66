//! The mesh's events as lines of JSON: what `relay-mesh events` prints, and what a server offers at its Unix
//! socket.
//!
//! Nothing is kept for a follower: each reads the store's own logs at its own pace, from the place that its
//! cursor names. So nothing is told twice or left out, a follower that comes back goes on where it was, and
//! one that reads slowly costs a stretch of a log.

mod follow;
mod outlet;
mod serve;
mod socket;
mod words;

pub(crate) use follow::{Followed, follow};
pub(crate) use outlet::{Cut, Outlet};
pub(crate) use serve::serve;
pub(crate) use socket::Socket;
pub(crate) use words::{Cursor, Subscription, Topic, Unwanted};
