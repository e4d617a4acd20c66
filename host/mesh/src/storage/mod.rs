//! How the mesh uses the stores: keys, records, ownership of keys, migration and the event log.

pub(crate) mod damage;
pub(crate) mod event_log;
pub(crate) mod index_rule;
pub(crate) mod keys;
pub(crate) mod known_store;
pub mod migrate;
pub(crate) mod old;
pub(crate) mod ownership;
pub(crate) mod records;
pub mod upgrade;
pub(crate) mod write_behind;
