//! The children of a prefix, read in bulk.

use std::pin::pin;

use futures::{StreamExt as _, stream};

use crate::{Key, Store, StoreError, Versioned};

/// A leaf to inspect in addition to a child's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf<'a> {
    /// Another value of this name.
    Value(&'a str),
    /// A log of this name.
    Log(&'a str),
}

/// One child of the prefix.
#[derive(Debug)]
pub struct Child<'a> {
    /// The child's name: the last segment of its key, encoded: `alice` of `agents/alice`.
    pub name: &'a str,
    /// The requested value; an error if it is damaged, which does not affect other children.
    pub value: Result<&'a [u8], StoreError>,
    /// The other leaves, in the order of the request. May be taken out.
    pub beside: &'a mut Vec<ChildLeaf>,
}

/// Called with each child in turn. A child borrows from buffers that are reused for the next one.
pub type Taker<'a> = &'a mut (dyn FnMut(Child<'_>) + Send);

/// What is cheaply known of a leaf.
#[derive(Debug)]
pub enum ChildLeaf {
    /// There is no such value, and nothing was ever appended to such a log.
    Nothing,
    /// The value; an error if it is damaged.
    Value(Result<Versioned, StoreError>),
    /// The number of appends in the log, each of one entry or more. None of them was read.
    Appends(u64),
    /// Not read. A caller that needs it reads it by its key.
    Unknown,
}

/// How many values are read concurrently: on servers each is a round trip.
const AT_ONCE: usize = 64;

/// A child, for a store that reads all of them before it passes on the first.
pub struct Gathered {
    /// The child's key: `agents/alice`.
    pub key: Key,
    /// The requested value; an error if it is damaged.
    pub value: Result<Versioned, StoreError>,
    /// The other leaves, in the order of the request.
    pub beside: Vec<ChildLeaf>,
}

/// Passes all children to the first taker: the work is done, so there is nothing to share.
pub fn hand_on(children: Vec<Gathered>, [take, _]: [Taker<'_>; 2]) {
    for Gathered { key, value, mut beside } in children {
        let name = key.segments().next_back().unwrap_or_default();
        let value = match value {
            Ok(ref value) => Ok(value.bytes.as_slice()),
            Err(damage) => Err(damage),
        };
        take(Child { name, value, beside: &mut beside });
    }
}

/// For a store without bulk reads: reads each value by its key, and none of the other leaves.
pub async fn by_key<S: Store + ?Sized>(
    store: &S,
    prefix: &Key,
    leaf: &str,
    beside: &[Leaf<'_>],
) -> Result<Vec<Gathered>, StoreError> {
    let mut wanted: Vec<(Key, Key)> = Vec::new();
    for key in store.list(prefix).await? {
        let below = key.as_str().strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let named = below.and_then(|rest| rest.split_once('/')).filter(|(_, last)| *last == leaf);
        if let Some(child) = named.and_then(|(name, _)| format!("{prefix}/{name}").parse().ok()) {
            wanted.push((child, key));
        }
    }
    wanted.sort();
    let values = wanted.into_iter().map(|(child, key)| async move { (child, store.get(&key).await) });
    let mut values = pin!(stream::iter(values).buffered(AT_ONCE));
    let mut children = Vec::new();
    while let Some((key, value)) = values.next().await {
        let value = match value {
            // Removed since it was listed.
            Ok(None) => continue,
            Ok(Some(value)) => Ok(value),
            Err(error @ StoreError::Damaged { .. }) => Err(error),
            Err(error) => return Err(error),
        };
        children.push(Gathered { key, value, beside: beside.iter().map(|_| ChildLeaf::Unknown).collect() });
    }
    Ok(children)
}
