//! Values as a key-value bucket: one message per key, its sequence the revision. A swap is a message
//! that the server takes only after the expected one. A removal leaves a mark, which tells those who
//! watch, and the mark is then taken away.

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{RawMessageErrorKind, Stream};
use futures::TryStreamExt;

use super::connection::Connection;
use super::sending::send;
use super::subjects;
use super::trouble::{again_if_late, trouble};
use crate::{Key, Revision, StoreError, SwapError, Versioned};

/// By which header a bucket marks that a key was removed.
const OPERATION: &str = "KV-Operation";

/// The value of a key.
pub(super) async fn get(connection: &Connection, key: &Key) -> Result<Option<Versioned>, StoreError> {
    let subject = subjects::of_value(&connection.options.map_bucket(), key);
    let found = newest(connection.map().await?, &subject, key).await?;
    Ok(found
        .filter(is_value)
        .map(|message| Versioned { revision: Revision(message.sequence), bytes: message.payload.to_vec() }))
}

/// Sets or removes a key that is still at the expected revision.
pub(super) async fn swap(
    connection: &Connection,
    key: &Key,
    expected: Option<Revision>,
    next: Option<&[u8]>,
) -> Result<Option<Revision>, SwapError> {
    let subject = subjects::of_value(&connection.options.map_bucket(), key);
    let stream = connection.map().await?;
    let mut after = expected.map_or(0, |revision| revision.0);
    if expected.is_none() && next.is_none() {
        let current = get(connection, key).await?.map(|value| value.revision);
        return if current.is_none() { Ok(None) } else { Err(SwapError::Changed { current }) };
    }
    loop {
        let put = put(connection, &subject, key, after, next).await?;
        if let Some(sequence) = put {
            if next.is_some() {
                return Ok(Some(Revision(sequence)));
            }
            // A mark that stays costs room and nothing else, and the next one to set the key goes on from it.
            if let Err(error) = stream.delete_message(sequence).await {
                tracing::debug!(%error, %key, "the mark of a removal stays");
            }
            return Ok(None);
        }
        match newest(stream, &subject, key).await? {
            // A mark that was left, or that somebody is about to take away: the key is absent.
            Some(mark) if !is_value(&mark) && expected.is_none() && after != mark.sequence => after = mark.sequence,
            None if expected.is_none() && after != 0 => after = 0,
            found => {
                let current = found.filter(is_value).map(|value| Revision(value.sequence));
                // It was put back to the expected revision by nobody: revisions only grow.
                return Err(SwapError::Changed { current });
            }
        }
    }
}

/// The keys under a prefix, in order.
pub(super) async fn list(connection: &Connection, prefix: &Key) -> Result<Vec<Key>, StoreError> {
    let bucket = connection.options.map_bucket();
    let stream = connection.map().await?;
    let told = |error: Box<dyn std::error::Error + Send + Sync>| trouble("could not list", prefix)(error);
    let mut keys = Vec::new();
    for filter in subjects::values_under(&bucket, prefix) {
        let asked = again_if_late(|| stream.info_with_subjects(filter.as_str())).await;
        let mut found = asked.map_err(|error| told(error.into()))?;
        while let Some((subject, _)) = found.try_next().await.map_err(|error| told(error.into()))? {
            keys.extend(subjects::value_of(&bucket, &subject));
        }
    }
    keys.sort();
    Ok(keys)
}

/// Sends a value, or the mark of a removal. None where the key is not at the expected sequence.
async fn put(
    connection: &Connection,
    subject: &str,
    key: &Key,
    after: u64,
    next: Option<&[u8]>,
) -> Result<Option<u64>, StoreError> {
    let mut headers = HeaderMap::new();
    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string().as_str());
    if next.is_none() {
        headers.insert(OPERATION, "DEL");
    }
    let body = next.map(<[u8]>::to_vec).unwrap_or_default();
    let sent = send(connection, subject.to_owned(), headers, body).await?;
    sent.map_err(|error| trouble("could not set", key)(error.into()))
}

/// The newest message of a key, asked of the server that leads.
async fn newest(stream: &Stream, subject: &str, key: &Key) -> Result<Option<StreamMessage>, StoreError> {
    match again_if_late(|| stream.get_last_raw_message_by_subject(subject)).await {
        Ok(message) => Ok(Some(message)),
        Err(error) => match error.kind() {
            RawMessageErrorKind::NoMessageFound => Ok(None),
            _ => Err(trouble("could not read", key)(error.into())),
        },
    }
}

/// Whether a message is a value, and not the mark of a removal.
fn is_value(message: &StreamMessage) -> bool {
    message.headers.get(OPERATION).is_none()
}
