//! Lookups in a log: entries by a piece of their text, and the place where a time begins.
//!
//! The mesh's rule says which pieces of an entry are looked up later. A backend may keep indexes by that rule; they are
//! derived from the log and can be deleted at any time. Without one, the whole log is read.

use crate::Key;

/// A piece of text by which entries are found. Every entry that has a term contains its text verbatim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    /// How the terms of this sort follow each other in a log.
    pub order: TermOrder,
    /// The text, not empty.
    pub text: String,
    /// A time in milliseconds since 1970: what has the term was appended later, as far as clocks agree. A store without
    /// an index begins to read there, and one with an index looks no further back for a term without order.
    pub since: Option<u64>,
}

/// How the terms of a log follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TermOrder {
    /// They mostly grow, as ULIDs do: a segment whose range does not include a term is skipped.
    Growing,
    /// They have no order.
    Scattered,
}

impl Term {
    /// A term that mostly grows from entry to entry.
    pub fn growing(text: impl Into<String>) -> Term {
        Term { order: TermOrder::Growing, text: text.into(), since: None }
    }

    /// A term without order.
    pub fn scattered(text: impl Into<String>) -> Term {
        Term { order: TermOrder::Scattered, text: text.into(), since: None }
    }

    /// The same term, of entries that were appended after this time, in milliseconds since 1970.
    #[must_use]
    pub fn since(self, at: u64) -> Term {
        Term { since: Some(at), ..self }
    }
}

/// What an index holds of one entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// The terms by which it is found.
    pub terms: Vec<Term>,
    /// Its time, in milliseconds since 1970.
    pub at: Option<u64>,
}

/// Which terms and which time an entry has.
pub trait IndexRule: Send + Sync + 'static {
    /// Changes whenever the rule gives other terms: indexes of another version are built again.
    fn version(&self) -> u32;

    /// The terms and the time of an entry of a log.
    fn of(&self, log: &Key, entry: &[u8]) -> Indexed;
}

/// A place to seek in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek<'a> {
    /// Entries of this time or later, in milliseconds since 1970.
    Time(u64),
    /// Entries with a growing term equal to this text or above it.
    Term(&'a str),
}
