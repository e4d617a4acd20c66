//! Values as a key-value bucket: one message per key and machine, whose sequence is the revision. A swap is a message
//! that the server accepts only after the expected one. A removal leaves a marker, which wakes the watches, and
//! expires.
//!
//! A value in a home is the one that the home's machine wrote. Any other value is merged from the parts of all
//! machines, and a swap succeeds only if no part has changed.

use std::collections::BTreeMap;

use async_nats::HeaderMap;
use async_nats::header::{NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, NATS_MESSAGE_TTL};
use async_nats::jetstream::message::StreamMessage;
use futures::{StreamExt, TryStreamExt};
use store::{Key, MachinePart, Revision, StoreError, SwapError, Versioned};

use crate::connection::Connection;
use crate::direct;
use crate::errors::{again_if_late, found, server_error};
use crate::ownership;
use crate::reading::first_from;
use crate::sending::{EXPECTED_SUBJECT, send};
use crate::subjects;

/// The header of a removal marker.
const OPERATION: &str = "KV-Operation";
/// Replaces the machine's name if there is no ownership rule.
pub(crate) const EVERYBODY: &str = "_";
/// Lifetime of a removal marker, in seconds.
const MARK_LASTS: &str = "10";

/// From this many keys on, their owners are read in one request: a caller that lists keys reads them next.
const MANY: usize = 16;
/// How many keys are read concurrently.
const AT_ONCE: usize = 32;

/// The current state of a key.
struct CurrentValue {
    /// The value that counts.
    value: Option<Vec<u8>>,
    /// The sequence of the last message at the subjects that count; zero if there is none.
    last: u64,
}

/// The value of a key.
pub(crate) async fn get(connection: &Connection, key: &Key) -> Result<Option<Versioned>, StoreError> {
    match place(connection, key).await? {
        Some(place) => Ok(look(connection, key, &place).await?.versioned()),
        None => Ok(None),
    }
}

/// Sets or removes a key that is still at the expected revision.
pub(crate) async fn swap(
    connection: &Connection,
    key: &Key,
    expected: Option<Revision>,
    next: Option<&[u8]>,
) -> Result<Option<Revision>, SwapError> {
    if let Some(home) = ownership::home_of(connection, key) {
        ownership::ours(connection, &home).await?;
    }
    let Some(place) = place(connection, key).await? else { return Err(SwapError::Changed { current: None }) };
    let mut after = expected.map_or(0, |revision| revision.0);
    // Read first if the key must be absent, or if its last message may be a marker.
    let may_be_a_mark = expected.is_some() && marks_stay(connection).await?;
    if (expected.is_none() && next.is_none()) || place == Writers::AllParts || may_be_a_mark {
        let found = look(connection, key, &place).await?;
        let current = found.revision();
        match (current == expected, next) {
            (false, _) => return Err(SwapError::Changed { current }),
            (true, None) if current.is_none() => return Ok(None),
            (true, _) => after = found.last,
        }
    }
    let writer = if place == Writers::Shared { EVERYBODY } else { &connection.options.machine };
    let subject = subjects::of_value(&connection.options.map_bucket(), writer, key);
    loop {
        let put = put(connection, &subject, key, &place.filter(connection, key), after, next).await?;
        if let Some(sequence) = put {
            if next.is_some() {
                return Ok(Some(Revision(sequence)));
            }
            take_away(connection, key, sequence).await?;
            return Ok(None);
        }
        let found = look(connection, key, &place).await?;
        // A removal marker: the key is absent.
        if expected.is_none() && found.value.is_none() && found.last != after {
            after = found.last;
        } else {
            return Err(SwapError::Changed { current: found.revision() });
        }
    }
}

/// The keys under a prefix, in order.
pub(crate) async fn list(connection: &Connection, prefix: &Key) -> Result<Vec<Key>, StoreError> {
    let bucket = connection.options.map_bucket();
    let stream = connection.map().await?;
    let told = |error: Box<dyn std::error::Error + Send + Sync>| server_error("could not list", prefix)(error);
    let mut keys = Vec::new();
    for filter in subjects::values_under(&bucket, prefix) {
        let asked = again_if_late(|| stream.info_with_subjects(filter.as_str())).await;
        let mut found = asked.map_err(|error| told(error.into()))?;
        while let Some((subject, _)) = found.try_next().await.map_err(|error| told(error.into()))? {
            keys.extend(subjects::value_of(&bucket, &subject).map(|(_, key)| key));
        }
    }
    keys.sort();
    keys.dedup();
    if connection.homes.is_some() && keys.len() > MANY {
        ownership::learn(connection, prefix).await?;
    }
    if marks_stay(connection).await? { those_there(connection, keys).await } else { Ok(keys) }
}

/// Whether removal markers never expire, as in some buckets that an operator created. In a bucket that keeps old values
/// they must stay: without the marker the value before it would count again.
async fn marks_stay(connection: &Connection) -> Result<bool, StoreError> {
    let map = connection.map().await?;
    let config = &map.cached_info().config;
    Ok(config.deny_delete || !config.allow_message_ttl || config.max_messages_per_subject != 1)
}

/// Filters out keys without a value.
async fn those_there(connection: &Connection, keys: Vec<Key>) -> Result<Vec<Key>, StoreError> {
    let looks = futures::stream::iter(keys).map(|key| async move {
        let value = get(connection, &key).await?;
        Ok::<_, StoreError>(value.map(|_| key))
    });
    looks.buffered(AT_ONCE).try_filter_map(|key| async move { Ok(key) }).try_collect().await
}

/// A key's oldest message from a sequence on, whoever wrote it.
pub(crate) async fn first(connection: &Connection, key: &Key, from: u64) -> Result<Option<StreamMessage>, StoreError> {
    let stream = connection.map().await?;
    let subject = subjects::of_value(&connection.options.map_bucket(), "*", key);
    first_from(connection, &stream, (key, &subject), from).await
}

/// Records this machine as the owner of a key, unless another machine was faster. The caller reads again to see who has it.
pub(crate) async fn become_owner(connection: &Connection, key: &Key) -> Result<(), StoreError> {
    let bucket = connection.options.map_bucket();
    let everyones = subjects::of_value(&bucket, "*", key);
    let subject = subjects::of_value(&bucket, &connection.options.machine, key);
    let last = newest(connection, &everyones, key).await?.map_or(0, |message| message.sequence);
    put(connection, &subject, key, &everyones, last, Some(b"{}")).await.map(drop)
}

/// Whether a message is a value, and not a removal marker.
pub(crate) fn is_value(message: &StreamMessage) -> bool {
    message.headers.get(OPERATION).is_none()
}

/// The machines whose messages at a key count.
#[derive(PartialEq, Eq)]
enum Writers {
    /// All machines write at one subject: there is no ownership rule.
    Shared,
    /// One machine.
    OfMachine(String),
    /// All machines, each with its part.
    AllParts,
}

impl Writers {
    /// The subjects that count.
    fn filter(&self, connection: &Connection, key: &Key) -> String {
        let machine = match self {
            Writers::Shared => EVERYBODY,
            Writers::AllParts => "*",
            Writers::OfMachine(machine) => machine,
        };
        subjects::of_value(&connection.options.map_bucket(), machine, key)
    }
}

impl CurrentValue {
    fn revision(&self) -> Option<Revision> {
        self.value.as_ref().map(|_| Revision(self.last))
    }

    fn versioned(self) -> Option<Versioned> {
        let revision = self.revision()?;
        Some(Versioned { revision, bytes: self.value? })
    }
}

/// The machines that count at a key. None if it is in a home that has no owner.
async fn place(connection: &Connection, key: &Key) -> Result<Option<Writers>, StoreError> {
    match ownership::home_of(connection, key) {
        Some(home) => Ok(ownership::machine_of(connection, &home).await?.map(Writers::OfMachine)),
        None if connection.homes.is_some() => Ok(Some(Writers::AllParts)),
        None => Ok(Some(Writers::Shared)),
    }
}

async fn look(connection: &Connection, key: &Key, place: &Writers) -> Result<CurrentValue, StoreError> {
    let filter = place.filter(connection, key);
    match (place, &connection.homes) {
        (Writers::AllParts, Some(homes)) => {
            let (parts, last) = parts(connection, key).await?;
            let mut machines = BTreeMap::new();
            for home in homes.owners_needed(key, &parts) {
                if let Some(machine) = ownership::machine_of(connection, &home).await? {
                    machines.insert(home, machine);
                }
            }
            let value = if parts.is_empty() { None } else { homes.merge(key, &parts, &machines) };
            Ok(CurrentValue { value, last })
        }
        (Writers::Shared | Writers::OfMachine(_) | Writers::AllParts, _) => {
            let newest = newest(connection, &filter, key).await?;
            let last = newest.as_ref().map_or(0, |message| message.sequence);
            Ok(CurrentValue { value: newest.filter(is_value).map(|message| message.payload.to_vec()), last })
        }
    }
}

/// The parts of a value, oldest first, and the last sequence of all, markers included.
async fn parts(connection: &Connection, key: &Key) -> Result<(Vec<MachinePart>, u64), StoreError> {
    let mut parts: Vec<MachinePart> = Vec::new();
    let mut last = 0;
    while let Some(message) = first(connection, key, last + 1).await? {
        last = message.sequence;
        let Some(machine) = ownership::machine_in(connection, &message) else { continue };
        // A bucket that an operator created may keep more than the newest part of each machine.
        parts.retain(|part| part.machine != machine);
        if is_value(&message) {
            parts.push(MachinePart { machine, bytes: message.payload.to_vec() });
        }
    }
    Ok((parts, last))
}

/// Sends a value, or a removal marker. None if the last message that counts is another one.
pub(crate) async fn put(
    connection: &Connection,
    subject: &str,
    key: &Key,
    filter: &str,
    after: u64,
    next: Option<&[u8]>,
) -> Result<Option<u64>, StoreError> {
    // Creates the bucket if it is missing, before anything is sent to it.
    let marks_lapse = !marks_stay(connection).await?;
    let mut headers = HeaderMap::new();
    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string().as_str());
    if filter != subject {
        headers.insert(EXPECTED_SUBJECT, filter);
    }
    if next.is_none() {
        headers.insert(OPERATION, "DEL");
        if marks_lapse {
            headers.insert(NATS_MESSAGE_TTL, MARK_LASTS);
        }
    }
    let body = next.map(<[u8]>::to_vec).unwrap_or_default();
    send(connection, &*connection.map().await?, subject.to_owned(), headers, body, ("could not set", key)).await
}

/// Deletes a removal marker if the server allows it. Otherwise the marker expires, or stays and costs only space: the
/// next swap of the key continues from it.
pub(crate) async fn take_away(connection: &Connection, key: &Key, sequence: u64) -> Result<(), StoreError> {
    if marks_stay(connection).await? {
        return Ok(());
    }
    if let Err(error) = connection.map().await?.delete_message(sequence).await {
        tracing::debug!(%error, %key, "the mark of a removal stays for a while");
    }
    Ok(())
}

/// The newest message of some subjects, as the leader has it.
pub(crate) async fn newest(
    connection: &Connection,
    subject: &str,
    key: &Key,
) -> Result<Option<StreamMessage>, StoreError> {
    let stream = connection.map().await?;
    if let Some(newest) = direct::newest(connection, &stream, subject).await {
        return Ok(newest);
    }
    found(key, again_if_late(|| stream.get_last_raw_message_by_subject(subject)).await)
}
