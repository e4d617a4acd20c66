//! The mesh's events as lines of JSON: what `relay-mesh events` prints, and what a server offers at its Unix
//! socket.
//!
//! The server stores nothing per follower: each reads the store's own logs at its own pace, from its cursor. So no
//! event is sent twice or left out, a follower that reconnects continues where it was, and a slow one costs one
//! buffered part of a log.

mod cursor;
mod delivery;
mod deltas;
mod follow;
mod outlet;
mod serve;
mod socket;
mod socket_lines;
mod topic;

pub(crate) use cursor::Cursor;
pub(crate) use deltas::DeltaLine;
pub(crate) use follow::{Followed, follow};
pub(crate) use outlet::{Cut, Outlet};
pub(crate) use serve::serve;
pub(crate) use socket::Socket;
pub(crate) use socket_lines::{Subscription, Unwanted};
pub(crate) use topic::Topic;
