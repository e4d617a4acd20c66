//! Logs as messages of one stream. One append is one message, its entries a line each, so that nothing
//! comes in between. A position is the sequence of a message and the number of an entry in it.
//!
//! Retiring leaves a log's last message where it is, for the server checks the end of a log by it, and
//! notes in the map from where on the log is read.

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::RawMessageErrorKind;

use super::connection::Connection;
use super::sending::send;
use super::trouble::{again_if_late, trouble};
use super::{subjects, values};
use crate::files::lines;
use crate::{AppendError, Batch, Damage, Entry, Expect, Key, Position, StoreError, SwapError};

/// Names the subject whose last message an append expects: the log, whichever host wrote it.
const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
/// How many bits of a position number the entries of one message.
const ENTRY_BITS: u32 = 16;

/// Appends some entries as one message.
pub(super) async fn append(
    connection: &Connection,
    log: &Key,
    entries: &[Vec<u8>],
    expect: Expect,
) -> Result<Position, AppendError> {
    if entries.is_empty() {
        return match (expect, end(connection, log).await?) {
            (Expect::End(at), end) if at != end => Err(AppendError::Moved),
            (Expect::Any | Expect::End(_), end) => Ok(end),
        };
    }
    if entries.len() >= 1 << ENTRY_BITS {
        let why = "one append holds fewer than 65,536 entries";
        return Err(StoreError::Unfit { bytes: entries.iter().map(Vec::len).sum(), why }.into());
    }
    let body = entries.join(&b'\n');
    let expected = match expect {
        Expect::Any => return Ok(after(publish(connection, log, body, None).await?.ok_or(AppendError::Moved)?)),
        Expect::End(Position::START) => 0,
        Expect::End(at) => match place(at) {
            (sequence, 0) => sequence - 1,
            // Between two entries of one append is nobody's end.
            (_, _) => return Err(AppendError::Moved),
        },
    };
    if let Some(sequence) = publish(connection, log, body.clone(), Some(expected)).await? {
        return Ok(after(sequence));
    }
    // A log that was removed since, or whose messages grew too old, has nothing after that end.
    if expected > 0 && last(connection, log).await?.is_none() {
        return Ok(after(publish(connection, log, body, Some(0)).await?.ok_or(AppendError::Moved)?));
    }
    Err(AppendError::Moved)
}

/// Sends one message. None where the log's last message is not the expected one.
async fn publish(
    connection: &Connection,
    log: &Key,
    body: Vec<u8>,
    expected: Option<u64>,
) -> Result<Option<u64>, StoreError> {
    // The stream is made before anything is sent to it.
    connection.logs().await?;
    let options = &connection.options;
    let mut headers = HeaderMap::new();
    if let Some(expected) = expected {
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string().as_str());
        headers.insert(EXPECTED_SUBJECT, subjects::any_of_log(options, log).as_str());
    }
    let sent = send(connection, subjects::of_log(options, log), headers, body).await?;
    sent.map_err(|error| trouble("could not append to", log)(error.into()))
}

/// Where the next append would begin.
pub(super) async fn end(connection: &Connection, log: &Key) -> Result<Position, StoreError> {
    Ok(last(connection, log).await?.map_or(Position::START, |message| after(message.sequence)))
}

/// Reads from a position on.
pub(super) async fn read(
    connection: &Connection,
    log: &Key,
    from: Position,
    limit: usize,
) -> Result<Batch, StoreError> {
    let mut batch = Batch { next: from, ..Batch::default() };
    let mut bytes = 0;
    let mut floor = None;
    loop {
        let Some(message) = following(connection, log, place(batch.next).0).await? else {
            batch.at_end = true;
            return Ok(batch);
        };
        let floor = match floor {
            Some(floor) => floor,
            None => *floor.insert(floor_of(connection, log).await?.0),
        };
        let lines: Vec<&[u8]> = message.payload.split(|byte| *byte == b'\n').collect();
        for (index, line) in lines.iter().enumerate() {
            let at = position(message.sequence, index as u64);
            let next = if index + 1 == lines.len() { after(message.sequence) } else { Position(at.0 + 1) };
            if at < from.max(floor) {
                continue;
            }
            if lines::check_fits(line).is_err() {
                batch.damage.push(Damage { at, bytes: line.len() as u64 });
            } else if bytes >= limit && !batch.entries.is_empty() {
                return Ok(batch);
            } else {
                bytes += line.len();
                batch.entries.push(Entry { at, next, bytes: line.to_vec() });
            }
            batch.next = next;
        }
        batch.next = after(message.sequence);
    }
}

/// Makes everything before a position unreadable, and removes it but for the log's last message.
pub(super) async fn retire(connection: &Connection, log: &Key, before: Position) -> Result<usize, StoreError> {
    let Some(last) = last(connection, log).await? else { return Ok(0) };
    let floor = before.min(after(last.sequence));
    raise_floor(connection, log, floor).await?;
    let sequence = place(floor).0.min(last.sequence);
    if sequence == 0 {
        return Ok(0);
    }
    purge(connection, log, Some(sequence)).await
}

/// Removes a log and everything in it.
pub(super) async fn remove(connection: &Connection, log: &Key) -> Result<(), StoreError> {
    purge(connection, log, None).await.map(drop)
}

async fn purge(connection: &Connection, log: &Key, before: Option<u64>) -> Result<usize, StoreError> {
    let stream = connection.logs().await?;
    let purge = stream.purge().filter(subjects::any_of_log(&connection.options, log));
    let purged = match before {
        Some(sequence) => purge.sequence(sequence).await,
        None => purge.await,
    };
    let purged = purged.map_err(|error| trouble("could not remove from", log)(error.into()))?;
    Ok(usize::try_from(purged.purged).unwrap_or(usize::MAX))
}

/// From where on a log is read, with the revision of that note.
async fn floor_of(connection: &Connection, log: &Key) -> Result<(Position, Option<crate::Revision>), StoreError> {
    match values::get(connection, &floor_key(log)).await? {
        Some(noted) => {
            let text = String::from_utf8_lossy(&noted.bytes).into_owned();
            let floor = text.parse().map_err(|_| StoreError::Damaged {
                what: floor_key(log).to_string(),
                why: format!("`{text}` is not a position"),
            })?;
            Ok((Position(floor), Some(noted.revision)))
        }
        None => Ok((Position::START, None)),
    }
}

async fn raise_floor(connection: &Connection, log: &Key, to: Position) -> Result<(), StoreError> {
    loop {
        let (floor, revision) = floor_of(connection, log).await?;
        if floor >= to {
            return Ok(());
        }
        let text = to.0.to_string();
        match values::swap(connection, &floor_key(log), revision, Some(text.as_bytes())).await {
            Ok(_) => return Ok(()),
            Err(SwapError::Changed { .. }) => {}
            Err(SwapError::Store(error)) => return Err(error),
        }
    }
}

/// Where it is noted from where on a log is read.
fn floor_key(log: &Key) -> Key {
    format!("_retired/{log}").parse().unwrap_or_else(|_| log.clone())
}

/// A log's last message, whoever wrote it.
async fn last(connection: &Connection, log: &Key) -> Result<Option<StreamMessage>, StoreError> {
    let stream = connection.logs().await?;
    let subject = subjects::any_of_log(&connection.options, log);
    found(log, again_if_late(|| stream.get_last_raw_message_by_subject(&subject)).await)
}

/// A log's first message from a sequence on, asked of the server that leads, so that nothing which was
/// answered for is overlooked.
async fn following(connection: &Connection, log: &Key, from: u64) -> Result<Option<StreamMessage>, StoreError> {
    let stream = connection.logs().await?;
    let subject = subjects::any_of_log(&connection.options, log);
    let ask = || stream.raw_message_builder().sequence(from.max(1)).next_by_subject(&subject).send();
    found(log, again_if_late(ask).await)
}

fn found(
    log: &Key,
    asked: Result<StreamMessage, async_nats::jetstream::stream::RawMessageError>,
) -> Result<Option<StreamMessage>, StoreError> {
    match asked {
        Ok(message) => Ok(Some(message)),
        Err(error) => match error.kind() {
            RawMessageErrorKind::NoMessageFound => Ok(None),
            _ => Err(trouble("could not read", log)(error.into())),
        },
    }
}

fn position(sequence: u64, entry: u64) -> Position {
    Position((sequence << ENTRY_BITS) + entry)
}

/// The position after a message's last entry.
fn after(sequence: u64) -> Position {
    position(sequence + 1, 0)
}

/// The message that a position lies in or before, and the entry.
fn place(position: Position) -> (u64, u64) {
    (position.0 >> ENTRY_BITS, position.0 & ((1 << ENTRY_BITS) - 1))
}
