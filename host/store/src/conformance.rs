//! The promises of every store, as tests that each backend runs against itself.
//!
//! A backend passes [`check`] a function that makes an empty store.

mod logs;
mod maps;
mod models;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use crate::{Child, ChildLeaf, Durability, Expect, Key, Leaf, Position, Store, Taker};

/// One store under test, opened twice with nothing shared but the stored data: for files two openings of one folder,
/// for a server two connections.
pub struct Pair {
    /// The first opening.
    pub one: Arc<dyn Store>,
    /// The second opening, which sees the changes of the first.
    pub other: Arc<dyn Store>,
}

/// Tests every promise against fresh stores.
pub async fn check(make: impl Fn() -> Pair) {
    logs::check(&make).await;
    maps::check(&make).await;
    watching::check(&make).await;
    models::check(&make).await;
}

/// Tests only the promises about watches, for a backend that has several ways to watch.
pub async fn check_watches(make: impl Fn() -> Pair) {
    watching::check(&make).await;
}

/// The children that a store passes on, in its order: each one's name, its value and its other leaves.
pub async fn children(
    store: &dyn Store,
    prefix: &Key,
    leaf: &str,
    beside: &[Leaf<'_>],
) -> Vec<(String, Vec<u8>, Vec<ChildLeaf>)> {
    let (mut all, mut rest) = (Vec::new(), Vec::new());
    let keep = |onto: &mut Vec<_>, child: Child<'_>| {
        let value = child.value.expect("a value").to_vec();
        onto.push((Key::decode(child.name).into_owned(), value, std::mem::take(child.beside)));
    };
    let takers: [Taker<'_>; 2] = [&mut |child| keep(&mut all, child), &mut |child| keep(&mut rest, child)];
    store.children(prefix, leaf, beside, takers).await.expect("looked");
    all.append(&mut rest);
    all
}

/// How long a test waits for an event that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

/// Distinguishable entries.
fn numbered(numbers: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    numbers.map(|number| format!("{{\"n\":{number}}}").into_bytes()).collect()
}

async fn append(store: &dyn Store, log: &Key, numbers: std::ops::Range<u64>) -> Position {
    let entries = numbered(numbers);
    store.append(log, &entries, Expect::Any, Durability::Process).await.expect("appended")
}

/// Reads a log to its end in pieces of `limit` bytes; returns the numbers and the end.
async fn read_all(store: &dyn Store, log: &Key, from: Position, limit: usize) -> (Vec<u64>, Position) {
    let (mut numbers, mut at) = (Vec::new(), from);
    loop {
        let batch = store.read(log, at, limit).await.expect("read");
        assert_eq!(batch.damage, [], "{log}");
        for entry in &batch.entries {
            assert!(entry.at < entry.next && entry.next <= batch.next, "{entry:?} ends after {:?}", batch.next);
            numbers.push(number_of(&entry.bytes));
        }
        at = batch.next;
        if batch.at_end {
            return (numbers, at);
        }
        assert!(!batch.entries.is_empty(), "a read gives at least one entry where there is one");
    }
}

fn number_of(entry: &[u8]) -> u64 {
    let value: serde_json::Value = serde_json::from_slice(entry).expect("an entry is what was appended");
    value["n"].as_u64().expect("a number")
}
