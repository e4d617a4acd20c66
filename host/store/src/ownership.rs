//! The rule by which a store that several hosts share decides whose a key is. The mesh has it, and lends it to the
//! store.

use std::collections::{BTreeMap, BTreeSet};

use crate::Key;

/// What the mesh knows of its keys, and the store does not.
pub trait Homes: Send + Sync + 'static {
    /// The home that a value or a log lies in. None where no host has more right to it than another.
    fn home_of(&self, key: &Key) -> Option<Key>;

    /// Whether other hosts append to this log of a home too, as to an inbox.
    fn is_open(&self, log: &Key) -> bool;

    /// The home in whose name an entry of an open log speaks. None where it speaks for nobody, so that
    /// any host may have written it.
    fn speaker(&self, log: &Key, entry: &[u8]) -> Option<Key>;

    /// The homes whose hosts must be known to put the parts of a value together that lies in no home.
    fn voices(&self, key: &Key, parts: &[Part]) -> BTreeSet<Key>;

    /// What the hosts' parts of such a value come to, the oldest part first, where `hosts` says who has
    /// which home. None where nothing that counts is left.
    fn together(&self, key: &Key, parts: &[Part], hosts: &BTreeMap<Key, String>) -> Option<Vec<u8>>;
}

/// What one host says of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The host, as the server knows it.
    pub host: String,
    /// What it says: JSON text.
    pub bytes: Vec<u8>,
}
