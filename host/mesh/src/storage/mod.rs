//! How the mesh lies in the store: keys, records, whose key is whose, and the event log.

pub(crate) mod event_log;
pub(crate) mod keys;
pub mod migrate;
pub(crate) mod ownership;
pub(crate) mod records;
pub mod upgrade;
pub(crate) mod write_behind;
