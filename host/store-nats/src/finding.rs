//! Where to begin to look in a log. A server keeps no index of contents, but it knows when it stored each message, so
//! nothing is read that is older than what is sought.

use async_nats::datetime::from_nanos;
use async_nats::jetstream::response::Response;
use serde::Deserialize;
use store::{Entry, Key, Position, StoreError, Term, backend};

use crate::connection::Connection;
use crate::errors::server_error;
use crate::logs::{end, position, writers_of};
use crate::reading::read;

/// How far the clock of a machine may be from the servers', in milliseconds. Machines correct their clocks by the
/// servers' (see `clock.rs`), to within seconds.
const CLOCKS_DIFFER_BY: u64 = 3_600_000;
/// How many bytes of a log are read at a time.
const STEP: usize = 1 << 20;
/// The server's code for a request that no message answers.
const NOTHING: u16 = 404;

/// See [`store::Store::find`].
pub(crate) async fn find(connection: &Connection, log: &Key, terms: &[Term]) -> Result<Vec<Entry>, StoreError> {
    let since: Option<Vec<u64>> = terms.iter().map(|term| term.since).collect();
    let mut from = match since.and_then(|since| since.into_iter().min()) {
        Some(since) => begins(connection, log, since).await?,
        None => Position::START,
    };
    let mut found = Vec::new();
    loop {
        let batch = read(connection, log, from, STEP).await?;
        found.extend(batch.entries.into_iter().filter(|entry| backend::has_any(entry, terms)));
        if batch.at_end || batch.next == from {
            return Ok(found);
        }
        from = batch.next;
    }
}

/// A position before which nothing is of that time or later, in milliseconds since 1970.
pub(crate) async fn begins(connection: &Connection, log: &Key, since: u64) -> Result<Position, StoreError> {
    // Asked first: what is stored meanwhile comes after it.
    let end = end(connection, log).await?;
    if end == Position::START {
        return Ok(end);
    }
    let Some(time) = rfc3339(since.saturating_sub(CLOCKS_DIFFER_BY)) else { return Ok(Position::START) };
    let stream = connection.logs().await?;
    let subject = writers_of(connection, log).await?.filter(connection, log);
    let request = serde_json::json!({ "start_time": time, "next_by_subj": subject });
    let asked = format!("STREAM.MSG.GET.{}", stream.cached_info().config.name);
    let jetstream = connection.jetstream().await?;
    let answer: Result<Response<Answer>, _> = jetstream.request(asked, &request).await;
    match answer {
        Ok(Response::Ok(answer)) => Ok(position(answer.message.seq, 0)),
        Ok(Response::Err { error }) if u16::try_from(error.code()) == Ok(NOTHING) => Ok(end),
        // An older server: everything is read.
        Ok(Response::Err { error }) => {
            tracing::debug!(%log, %error, "the server does not say where a time begins");
            Ok(Position::START)
        }
        Err(error) => Err(server_error("could not search", log)(error.into())),
    }
}

/// The only field needed of a message.
#[derive(Deserialize)]
struct Answer {
    message: Sequence,
}

#[derive(Deserialize)]
struct Sequence {
    seq: u64,
}

/// A time in milliseconds since 1970 as servers read it; none if it is beyond every calendar.
fn rfc3339(at: u64) -> Option<String> {
    let time = from_nanos(i128::from(at) * 1_000_000).ok()?;
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second, rest) = (time.hour(), time.minute(), time.second(), time.millisecond());
    (year < 10_000).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest:03}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_servers_read_it() {
        assert_eq!(rfc3339(0).as_deref(), Some("1970-01-01T00:00:00.000Z"));
        assert_eq!(rfc3339(1_763_856_305_007).as_deref(), Some("2025-11-23T00:05:05.007Z"));
        assert_eq!(rfc3339(u64::MAX), None);
    }
}
