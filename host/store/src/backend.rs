//! Shared by backends, in this crate and in others: which bytes a store accepts, and fallbacks for a backend without a
//! faster way.

pub use crate::children::{Gathered, by_key as children_by_key, hand_on};
use std::collections::BTreeSet;

use crate::{Batch, Entry, Key, Moved, Position, Store, StoreError, Term};

/// The longest entry, in bytes. A message's body is at most 256 KiB, which JSON escapes may lengthen sixfold.
pub(crate) const LONGEST_ENTRY: usize = 8 << 20;

/// Refuses bytes that cannot be an entry, and says why.
pub fn check_entry(entry: &[u8]) -> Result<(), StoreError> {
    let unfit = |why| Err(StoreError::Unfit { bytes: entry.len(), why });
    if entry.len() > LONGEST_ENTRY {
        return unfit("an entry has at most 8 MiB");
    }
    if entry.contains(&b'\n') {
        return unfit("an entry has no line breaks");
    }
    if !is_json(entry) {
        return unfit("an entry is JSON text");
    }
    Ok(())
}

/// Refuses bytes that cannot be a value, and says why.
pub fn check_value(value: &[u8]) -> Result<(), StoreError> {
    if is_json(value) { Ok(()) } else { Err(StoreError::Unfit { bytes: value.len(), why: "a value is JSON text" }) }
}

/// Whether bytes are JSON text. A line of a log that is not was torn, or written by another program.
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

/// The result of a move in a store that does not keep machines apart.
pub async fn nothing_to_move<S: Store + ?Sized>(store: &S, home: &Key) -> Result<Option<Moved>, StoreError> {
    Ok((!store.list(home).await?.is_empty()).then(Moved::default))
}

/// How much of a log is read at a time.
const STEP: usize = 1 << 20;

/// Reads each of some entries by itself.
pub async fn entries_one_by_one<S: Store + ?Sized>(
    store: &S,
    log: &Key,
    at: &[Position],
) -> Result<Vec<Entry>, StoreError> {
    let mut found = Vec::new();
    for at in at.iter().collect::<BTreeSet<_>>() {
        let batch = store.read(log, *at, 1).await?;
        found.extend(batch.entries.into_iter().take(1).filter(|entry| entry.at == *at));
    }
    Ok(found)
}

/// Finds entries by reading the whole log.
pub async fn find_by_reading<S: Store + ?Sized>(
    store: &S,
    log: &Key,
    terms: &[Term],
) -> Result<Vec<Entry>, StoreError> {
    let mut found = Vec::new();
    let mut from = Position::START;
    loop {
        let batch = store.read(log, from, STEP).await?;
        found.extend(batch.entries.into_iter().filter(|entry| has_any(&entry.bytes, terms)));
        if batch.at_end || batch.next == from {
            return Ok(found);
        }
        from = batch.next;
    }
}

/// Whether an entry contains the text of one of these terms.
pub fn has_any(entry: &[u8], terms: &[Term]) -> bool {
    terms.iter().any(|term| memchr::memmem::find(entry, term.text.as_bytes()).is_some())
}

/// Reads the last entries before a position by reading all before it.
pub async fn read_back_by_reading<S: Store + ?Sized>(
    store: &S,
    log: &Key,
    before: Position,
    limit: usize,
) -> Result<Batch, StoreError> {
    let mut last = Batch { next: before, at_end: true, ..Batch::default() };
    let mut from = Position::START;
    loop {
        let batch = store.read(log, from, STEP).await?;
        last.damage.extend(batch.damage.into_iter().filter(|damage| damage.at < before));
        last.entries.extend(batch.entries.into_iter().filter(|entry| entry.next <= before));
        if batch.at_end || batch.next == from || batch.next >= before {
            break;
        }
        from = batch.next;
    }
    last.at_end = !keep_last(&mut last.entries, limit);
    last.next = last.entries.first().map_or(before, |first| first.at);
    Ok(last)
}

/// Keeps the last entries, about `limit` bytes and at least one. Returns whether some were dropped.
pub fn keep_last(entries: &mut Vec<Entry>, limit: usize) -> bool {
    let mut bytes = 0;
    let fit = entries.iter().rev().take_while(|entry| {
        bytes += entry.bytes.len();
        bytes <= limit
    });
    let dropped = entries.len() - fit.count().max(1).min(entries.len());
    entries.drain(..dropped);
    dropped > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_not_be_read_back_is_refused() {
        for entry in ["", "{\n}", "{", "torn", "\u{0}"] {
            assert!(check_entry(entry.as_bytes()).is_err(), "{entry:?}");
        }
        assert!(check_entry(&[b'"', 0xff, b'"']).is_err(), "bytes that are no text");
        assert!(check_entry(&vec![b' '; LONGEST_ENTRY + 1]).is_err(), "too long");
        assert!(check_entry(b"{\"a\":\"b\"}").is_ok());
    }
}
