//! Sessions of harnesses: identifying callers, binding agents to sessions, and this machine's records of sessions.

pub(crate) mod archive;
pub(crate) mod bind;
pub(crate) mod connections;
pub(crate) mod discover;
pub(crate) mod heartbeat;
pub(crate) mod identify;
pub(crate) mod listeners;
pub(crate) mod record;
pub(crate) mod reopened;
pub(crate) mod retention;
pub(crate) mod screens;
pub(crate) mod session;
pub(crate) mod ticket;

pub use session::{
    Activity, Call, Caller, Certainty, ConnectionId, Detection, Evidence, Principal, Session, SessionRecord,
    SessionRef, Sign, Ticket, ToldActivity, Transport,
};
