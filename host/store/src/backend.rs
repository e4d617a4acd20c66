//! What backends share, in this crate and in others: which bytes a store takes, and what a backend does that has
//! no quicker way of its own.

pub use crate::children::{Gathered, by_key as children_by_key, hand_on};
use crate::{Key, Moved, Store, StoreError};

/// The longest entry. A message's body is at most 256 KiB, which JSON escapes may lengthen sixfold.
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

/// Whether bytes are JSON text. Lines of a log that are not were torn, or another program wrote them.
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

/// The result of a move in a store that has no hosts.
pub async fn nothing_to_move<S: Store + ?Sized>(store: &S, home: &Key) -> Result<Option<Moved>, StoreError> {
    Ok((!store.list(home).await?.is_empty()).then(Moved::default))
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
