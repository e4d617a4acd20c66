//! Values and log entries as JSON. Only this file converts between records and the store's bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{AppendError, Durability, Expect, Key, Position, Revision, Store, StoreError, SwapError};

/// How often to retry an update if other processes change the value meanwhile.
const TRIES: usize = 100;

/// Initial buffer size: enough for most records, including a short message, in bytes.
const USUAL: usize = 512;

/// Reads a record and its revision.
pub(crate) async fn load<T: DeserializeOwned>(
    store: &dyn Store,
    key: &Key,
) -> Result<Option<(Revision, T)>, StoreError> {
    match store.get(key).await? {
        Some(value) => Ok(Some((value.revision, parse_at(|| store.place(key), &value.bytes)?))),
        None => Ok(None),
    }
}

/// The outcome of an update's decision.
pub(crate) enum Next<T> {
    /// Leave the record as it is.
    Keep,
    /// Store this record.
    Put(T),
    /// Delete the record.
    Remove,
}

/// Changes a record by a pure decision, which runs again if another process changed the record meanwhile.
pub(crate) async fn update<T, R>(
    store: &dyn Store,
    key: &Key,
    durability: Durability,
    mut decide: impl FnMut(Option<T>) -> (Next<T>, R) + Send,
) -> Result<R, StoreError>
where
    T: Serialize + DeserializeOwned + Send,
    R: Send,
{
    for _ in 0..TRIES {
        let found = load::<T>(store, key).await?;
        let (revision, record) = match found {
            Some((revision, record)) => (Some(revision), Some(record)),
            None => (None, None),
        };
        let (next, answer) = decide(record);
        let outcome = match next {
            Next::Keep => return Ok(answer),
            Next::Put(record) => store.swap(key, revision, Some(&json(&record)), durability).await,
            Next::Remove => store.swap(key, revision, None, durability).await,
        };
        match outcome {
            Ok(_) => return Ok(answer),
            Err(SwapError::Changed { .. }) => {}
            Err(SwapError::Store(error)) => return Err(error),
        }
    }
    Err(StoreError::Damaged {
        what: key.to_string(),
        why: format!("other processes changed it {TRIES} times during the update"),
    })
}

/// Removes a value; false if it changed since that revision.
pub(crate) async fn remove_if(
    store: &dyn Store,
    key: &Key,
    revision: Revision,
    durability: Durability,
) -> Result<bool, StoreError> {
    match store.swap(key, Some(revision), None, durability).await {
        Ok(_) => Ok(true),
        Err(SwapError::Changed { .. }) => Ok(false),
        Err(SwapError::Store(error)) => Err(error),
    }
}

/// Appends one record to a log, wherever the log ends.
pub(crate) async fn append<T: Serialize + Sync>(
    store: &dyn Store,
    log: &Key,
    record: &T,
    durability: Durability,
) -> Result<Position, StoreError> {
    append_all(store, log, std::slice::from_ref(record), durability).await
}

/// Appends records to a log as one block, wherever the log ends.
pub(crate) async fn append_all<T: Serialize + Sync>(
    store: &dyn Store,
    log: &Key,
    records: &[T],
    durability: Durability,
) -> Result<Position, StoreError> {
    let entries: Vec<Vec<u8>> = records.iter().map(json).collect();
    match store.append(log, &entries, Expect::Any, durability).await {
        Ok(position) => Ok(position),
        Err(AppendError::Store(error)) => Err(error),
        Err(AppendError::Moved) => unreachable!("nothing was expected of the log's end"),
    }
}

/// A record as JSON. Infallible: all record types can be represented.
pub(crate) fn json<T: Serialize>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut bytes, record).expect("records of the mesh are JSON");
    bytes
}

/// Parses a record; the error names the key.
pub(crate) fn parse<T: DeserializeOwned>(key: &Key, bytes: &[u8]) -> Result<T, StoreError> {
    parse_at(|| key.to_string(), bytes)
}

/// Like `parse`, with a place that is computed only if the record is damaged.
pub(crate) fn parse_at<T: DeserializeOwned>(place: impl FnOnce() -> String, bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::Damaged { what: place(), why: error.to_string() })
}

/// Reads a log from a position to its end and passes each entry to `each`. Returns the end and how many damaged
/// stretches were skipped.
pub(crate) async fn scan(
    store: &dyn Store,
    log: &Key,
    from: Position,
    mut each: impl FnMut(store::Entry) + Send,
) -> Result<(Position, usize), StoreError> {
    const STEP: usize = 1 << 20;
    let mut at = from;
    let mut damage = 0;
    loop {
        let batch = store.read(log, at, STEP).await?;
        damage += batch.damage.len();
        for entry in batch.entries {
            each(entry);
        }
        if batch.at_end || batch.next == at {
            return Ok((batch.next, damage));
        }
        at = batch.next;
    }
}
