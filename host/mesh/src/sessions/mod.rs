//! Sessions of harnesses: who calls, which session an agent lives in, and what this machine knows of it.

pub(crate) mod bind;
pub(crate) mod connections;
pub(crate) mod discover;
pub(crate) mod identify;
pub(crate) mod listeners;
pub(crate) mod record;
pub(crate) mod session;
pub(crate) mod ticket;

pub use session::{
    Activity, Call, Caller, Certainty, ConnectionId, Detection, Evidence, Principal, Session, SessionRecord,
    SessionRef, Sign, Ticket, ToldActivity, Transport,
};
