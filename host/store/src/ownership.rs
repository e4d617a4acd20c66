//! The rule by which a store that several hosts share decides whose a key is. The mesh has it, and lends it to the
//! store.

use std::collections::{BTreeMap, BTreeSet};

use crate::Key;

/// The mesh's rule for whose keys are whose.
pub trait Homes: Send + Sync + 'static {
    /// The home that a value or a log lies in. None if it belongs to no host in particular.
    fn home_of(&self, key: &Key) -> Option<Key>;

    /// Whether other hosts append to this log of a home too, as to an inbox.
    fn is_open(&self, log: &Key) -> bool;

    /// The home in whose name an entry of an open log speaks. None if any host may write it.
    fn speaker(&self, log: &Key, entry: &[u8]) -> Option<Key>;

    /// The homes whose hosts must be known to merge the parts of a value that lies in no home.
    fn voices(&self, key: &Key, parts: &[Part]) -> BTreeSet<Key>;

    /// Merges the hosts' parts of such a value, oldest first; `hosts` says who has which home. None if no part
    /// counts.
    fn together(&self, key: &Key, parts: &[Part], hosts: &BTreeMap<Key, String>) -> Option<Vec<u8>>;
}

/// What one host says of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The host, as the server knows it.
    pub host: String,
    /// The part: JSON text.
    pub bytes: Vec<u8>,
}
