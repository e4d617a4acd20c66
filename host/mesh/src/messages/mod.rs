//! Messages: how they are sent, stored, fetched and acknowledged, and their delivery history.

pub(crate) mod address;
pub(crate) mod all_receipts;
pub mod channel;
pub(crate) mod checkpoint;
pub(crate) mod envelope;
pub(crate) mod fetch;
pub(crate) mod hand_over;
pub(crate) mod id_prefix;
pub(crate) mod idempotency;
pub(crate) mod inbox;
pub(crate) mod inboxes;
pub(crate) mod kept;
pub(crate) mod message;
pub(crate) mod open;
pub(crate) mod outbox;
pub mod protocol;
pub mod receipt;
pub(crate) mod retention;
pub(crate) mod send;
mod send_error;
pub(crate) mod slot;
pub(crate) mod status;
pub(crate) mod texts;
pub(crate) mod wait;
pub(crate) mod wake;
pub(crate) mod watch;

pub use message::{
    Draft, Hold, InvalidDraft, LONGEST_BODY, LONGEST_LABEL, MOST_TAGS, Message, Priority, Trace, shortened,
};
