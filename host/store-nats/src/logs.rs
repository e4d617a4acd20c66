//! Logs as messages of one stream. One append is one message with an entry per line, so that no other entry comes in
//! between. A position is the sequence of a message and the number of an entry in it.
//!
//! Retiring keeps a log's last message, by which the server checks the log's end, and writes to the map where reading
//! starts (its floor). If the login may not delete messages, the floor alone hides them, and the stream drops them by
//! age.
//!
//! A log in a home consists of what the home's machine wrote. An open log takes entries from every machine; an entry
//! counts if its machine may write on behalf of the home that the entry names.

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::message::StreamMessage;
use store::{AppendError, Expect, Key, Position, ServerTrouble, StoreError, SwapError};

use crate::connection::Connection;
use crate::errors::{again_if_late, found, server_error};
use crate::sending::{EXPECTED_SUBJECT, send};
use crate::{catalog_cleanup, ownership, subjects, values};

/// Prefix of the keys that hold the floors of logs.
pub(crate) const RETIRED: &str = "_retired/";
/// The low bits of a position: the number of the entry in its message.
const ENTRY_BITS: u32 = 16;

/// Appends some entries as one message.
pub(crate) async fn append(
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
    if let LogWriters::OfMachine(_) | LogWriters::Nobodys = writers_of(connection, log).await?
        && let Some(home) = ownership::home_of(connection, log)
    {
        ownership::ours(connection, &home).await?;
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
            // A log never ends between two entries of one append.
            (_, _) => return Err(AppendError::Moved),
        },
    };
    if let Some(sequence) = publish(connection, log, body.clone(), Some(expected)).await? {
        return Ok(after(sequence));
    }
    // Its home may have been moved while this machine was away: then only the new machine may append.
    if let Some(home) = ownership::home_of(connection, log) {
        ownership::forget(connection, &home);
        if let LogWriters::OfMachine(_) = writers_of(connection, log).await? {
            ownership::ours(connection, &home).await?;
        }
    }
    // A log that was removed, or whose messages expired, has nothing after that end.
    if expected > 0 && last(connection, log).await?.is_none() {
        return Ok(after(publish(connection, log, body, Some(0)).await?.ok_or(AppendError::Moved)?));
    }
    Err(AppendError::Moved)
}

/// Sends one message. None if the log's last message is not the expected one.
async fn publish(
    connection: &Connection,
    log: &Key,
    body: Vec<u8>,
    expected: Option<u64>,
) -> Result<Option<u64>, StoreError> {
    // Creates the stream if it is missing, before anything is sent to it.
    let stream = connection.logs().await?;
    let options = &connection.options;
    let mut headers = HeaderMap::new();
    if let Some(expected) = expected {
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string().as_str());
        let filter = writers_of(connection, log).await?.filter(connection, log);
        headers.insert(EXPECTED_SUBJECT, filter.as_str());
    }
    let subject = subjects::of_log(options, &options.machine, log);
    send(connection, &stream, subject, headers, body, ("could not append to", log)).await
}

/// The newest message of a log: the time at which the server stored it, in milliseconds since 1970, and its text.
pub(crate) async fn newest(connection: &Connection, log: &Key) -> Result<(u64, Vec<u8>), StoreError> {
    let newest = last(connection, log).await?;
    Ok(newest.map(|message| (stored_at(&message), message.payload.to_vec())).unwrap_or_default())
}

/// When the server stored a message, in milliseconds since 1970.
pub(crate) fn stored_at(message: &StreamMessage) -> u64 {
    u64::try_from(message.time.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
}

/// The position of the next append.
pub(crate) async fn end(connection: &Connection, log: &Key) -> Result<Position, StoreError> {
    Ok(last(connection, log).await?.map_or(Position::START, |message| after(message.sequence)))
}

/// Hides everything before a position, and deletes it except for the log's last message.
pub(crate) async fn retire(connection: &Connection, log: &Key, before: Position) -> Result<usize, StoreError> {
    let Some(last) = last(connection, log).await? else { return Ok(0) };
    let floor = before.min(after(last.sequence));
    let (old, _) = floor_of(connection, log).await?;
    raise_floor(connection, log, floor).await?;
    let sequence = place(floor).0.min(last.sequence);
    if sequence == 0 {
        return Ok(0);
    }
    // Hidden entries are gone for every reader, even if their space is not free yet.
    let gone = usize::from(floor > old);
    Ok(purge(connection, log, Some(sequence)).await?.unwrap_or(gone))
}

/// Removes a log and everything in it.
pub(crate) async fn remove(connection: &Connection, log: &Key) -> Result<(), StoreError> {
    if purge(connection, log, None).await?.is_none()
        && let Some(last) = last(connection, log).await?
    {
        raise_floor(connection, log, after(last.sequence)).await?;
    }
    catalog_cleanup::forget(connection, log).await
}

/// Deletes a log's messages, and returns their number. None if the server does not allow it.
async fn purge(connection: &Connection, log: &Key, before: Option<u64>) -> Result<Option<usize>, StoreError> {
    let stream = connection.logs().await?;
    let filter = writers_of(connection, log).await?.filter(connection, log);
    let purge = stream.purge().filter(filter);
    let purged = match before {
        Some(sequence) => purge.sequence(sequence).await,
        None => purge.await,
    };
    match purged {
        Ok(purged) => Ok(Some(usize::try_from(purged.purged).unwrap_or(usize::MAX))),
        Err(error) => match server_error("could not remove from", log)(error.into()) {
            StoreError::Server { trouble, .. } if refuses(trouble) => Ok(None),
            error => Err(error),
        },
    }
}

/// Whether the server does not allow this login to delete, or no server answers.
fn refuses(trouble: ServerTrouble) -> bool {
    matches!(
        trouble,
        ServerTrouble::Denied | ServerTrouble::Unsupported | ServerTrouble::NoLeader | ServerTrouble::OutOfReach
    )
}

/// The floor of a log, at which reading starts, with the revision of that value.
pub(crate) async fn floor_of(
    connection: &Connection,
    log: &Key,
) -> Result<(Position, Option<store::Revision>), StoreError> {
    if connection.homes.is_some() && ownership::home_of(connection, log).is_none() {
        return Ok((Position::START, None));
    }
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

/// Raises the floor of a log. Not for a log outside all homes: no machine may hide entries from all others there, and
/// the stream drops them by age.
async fn raise_floor(connection: &Connection, log: &Key, to: Position) -> Result<(), StoreError> {
    if connection.homes.is_some() && ownership::home_of(connection, log).is_none() {
        return Ok(());
    }
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

/// The key that holds the floor of a log.
fn floor_key(log: &Key) -> Key {
    format!("{RETIRED}{log}").parse().unwrap_or_else(|_| log.clone())
}

/// The machines whose messages of a log count.
pub(crate) enum LogWriters {
    /// One machine.
    OfMachine(String),
    /// All machines.
    Everybodys,
    /// No machine: the log is in a home that has no owner.
    Nobodys,
}

impl LogWriters {
    /// The subjects that count.
    pub(crate) fn filter(&self, connection: &Connection, log: &Key) -> String {
        match self {
            LogWriters::OfMachine(machine) => subjects::of_log(&connection.options, machine, log),
            LogWriters::Nobodys => subjects::of_log(&connection.options, &connection.options.machine, log),
            LogWriters::Everybodys => subjects::any_of_log(&connection.options, log),
        }
    }
}

pub(crate) async fn writers_of(connection: &Connection, log: &Key) -> Result<LogWriters, StoreError> {
    if connection.homes.as_ref().is_none_or(|homes| homes.is_open(log)) {
        return Ok(LogWriters::Everybodys);
    }
    match ownership::home_of(connection, log) {
        Some(home) => {
            Ok(ownership::machine_of(connection, &home).await?.map_or(LogWriters::Nobodys, LogWriters::OfMachine))
        }
        None => Ok(LogWriters::Everybodys),
    }
}

/// A log's last message.
pub(crate) async fn last(connection: &Connection, log: &Key) -> Result<Option<StreamMessage>, StoreError> {
    let stream = connection.logs().await?;
    let subject = writers_of(connection, log).await?.filter(connection, log);
    found(log, again_if_late(|| stream.get_last_raw_message_by_subject(&subject)).await)
}

pub(crate) fn position(sequence: u64, entry: u64) -> Position {
    Position((sequence << ENTRY_BITS) + entry)
}

/// The position after a message's last entry.
pub(crate) fn after(sequence: u64) -> Position {
    position(sequence + 1, 0)
}

/// The message at or after a position, and the entry in it.
pub(crate) fn place(position: Position) -> (u64, u64) {
    (position.0 >> ENTRY_BITS, position.0 & ((1 << ENTRY_BITS) - 1))
}
