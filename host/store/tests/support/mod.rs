//! Shared by the tests of this folder: numbered entries, and a disk whose power can fail.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod power;

use store::{Batch, Key, Position, Store};

pub(crate) fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

/// A distinguishable entry of about 60 bytes.
pub(crate) fn entry(number: u64) -> Vec<u8> {
    format!("{{\"n\":{number},\"body\":\"{number:040}\"}}").into_bytes()
}

/// The number of such an entry; panics if its text differs from the one written.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let value: serde_json::Value = serde_json::from_slice(bytes).expect("an entry");
    let number = value["n"].as_u64().expect("a number");
    assert_eq!(bytes, entry(number), "an entry is all of what was appended");
    number
}

/// Everything in a log.
pub(crate) async fn read_all(store: &dyn Store, log: &Key) -> Batch {
    let mut all = Batch { next: Position::START, ..Batch::default() };
    while !all.at_end {
        let batch = store.read(log, all.next, 1 << 16).await.expect("read");
        all.entries.extend(batch.entries);
        all.damage.extend(batch.damage);
        (all.next, all.at_end) = (batch.next, batch.at_end);
    }
    all
}

/// The numbers in a log, in order.
pub(crate) async fn numbers(store: &dyn Store, log: &Key) -> Vec<u64> {
    read_all(store, log).await.entries.iter().map(|entry| number(&entry.bytes)).collect()
}
