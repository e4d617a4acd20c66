//! The rule by which a store shared by several machines decides who owns a key. The mesh implements it and passes it to
//! the store.

use std::collections::{BTreeMap, BTreeSet};

use crate::Key;

/// The mesh's rule for the ownership of keys.
pub trait Ownership: Send + Sync + 'static {
    /// The home of a value or a log. None if it belongs to no machine in particular.
    fn home_of(&self, key: &Key) -> Option<Key>;

    /// Whether other machines may append to this log of a home, as to an inbox.
    fn is_open(&self, log: &Key) -> bool;

    /// The home on whose behalf an entry of an open log is written. None if any machine may write it.
    fn speaker(&self, log: &Key, entry: &[u8]) -> Option<Key>;

    /// The homes whose machines must be known to merge the parts of a value outside all homes.
    fn owners_needed(&self, key: &Key, parts: &[MachinePart]) -> BTreeSet<Key>;

    /// Merges the machines' parts of such a value, oldest first; `machines` maps each home to its machine. None if no part
    /// counts.
    fn merge(&self, key: &Key, parts: &[MachinePart], machines: &BTreeMap<Key, String>) -> Option<Vec<u8>>;
}

/// One machine's part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachinePart {
    /// The machine, by its name on the server.
    pub machine: String,
    /// The part: JSON text.
    pub bytes: Vec<u8>,
}
