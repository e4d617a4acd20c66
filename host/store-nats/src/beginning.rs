//! Where a time begins in a log, by when the server stored each message.
//!
//! A server is asked for the first message since a time, and what it says is looked into: of a stream from which much
//! was deleted, servers up to 2.15 at least may name a message that is hours late, because their search among the files
//! of the stream does not expect files without messages. What an honest server says costs one more question.

use async_nats::datetime::from_nanos;
use async_nats::jetstream::response::Response;
use serde::Deserialize;
use store::{Key, Position, StoreError};

use crate::connection::Connection;
use crate::errors::server_error;
use crate::logs::{after, last, place, position, stored_at, writers_of};
use crate::reading::first_from;

/// How far the clock of a machine may be from the servers', in milliseconds. Machines correct their clocks by the
/// servers' (see `clock.rs`), to within seconds.
pub(crate) const CLOCKS_DIFFER_BY: u64 = 3_600_000;
/// The server's code for a request that no message answers.
const NOTHING: u16 = 404;
/// How many messages of the stream, of whichever log, the first look back covers, and how much further each next one
/// goes.
const FIRST_LOOK: u64 = 256;
const FURTHER: u64 = 64;
/// A beginning that is known to so many messages of the stream is close enough.
const CLOSE: u64 = 1_024;

/// A position before which nothing is of that time or later, in milliseconds since 1970.
pub(crate) async fn begins(connection: &Connection, log: &Key, since: u64) -> Result<Position, StoreError> {
    // Asked first: what is stored meanwhile comes after it.
    let Some(last) = last(connection, log).await? else { return Ok(Position::START) };
    let end = after(last.sequence);
    let since = since.saturating_sub(CLOCKS_DIFFER_BY);
    if stored_at(&last) < since {
        return Ok(end);
    }
    let Some(time) = rfc3339(since) else { return Ok(Position::START) };
    let stream = connection.logs().await?;
    let subject = writers_of(connection, log).await?.filter(connection, log);
    let request = serde_json::json!({ "start_time": time, "next_by_subj": subject });
    let asked = format!("STREAM.MSG.GET.{}", stream.cached_info().config.name);
    let jetstream = connection.jetstream().await?;
    let answer: Result<Response<MessageResponse>, _> = jetstream.request(asked, &request).await;
    let said = match answer {
        Ok(Response::Ok(answer)) => answer.message.seq,
        Ok(Response::Err { error }) if u16::try_from(error.code()) == Ok(NOTHING) => place(end).0,
        // An older server: everything is read.
        Ok(Response::Err { error }) => {
            tracing::debug!(%log, %error, "the server does not say where a time begins");
            return Ok(Position::START);
        }
        Err(error) => return Err(server_error("could not search", log)(error.into())),
    };
    let (stream, subject) = (&stream, &subject);
    let first = |from| async move {
        let found = first_from(connection, stream, (log, subject), from).await?;
        Ok::<_, StoreError>(found.map(|message| Stored { sequence: message.sequence, at: stored_at(&message) }))
    };
    let begin = no_later_than(said, since, first).await?;
    if begin + CLOSE < said {
        tracing::debug!(%log, said, begin, "the server is wrong about where a time begins");
    }
    Ok(position(begin, 0))
}

/// A message of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    sequence: u64,
    /// In milliseconds since 1970. Messages are stored in the order of time.
    at: u64,
}

/// The sequence that is said to be the first of a time, or one before it if there are such messages before: none below it
/// is of that time or later. `first` gives the first message of the log from a sequence on.
async fn no_later_than<F>(said: u64, time: u64, first: impl Fn(u64) -> F) -> Result<u64, StoreError>
where
    F: Future<Output = Result<Option<Stored>, StoreError>>,
{
    // All from `begin` on is of that time or later, nothing is between `looked` and `begin`, all below `old` is older.
    let (mut begin, mut looked) = (said, said);
    let mut look = FIRST_LOOK;
    let mut old = loop {
        if looked <= 1 {
            return Ok(begin);
        }
        let from = looked.saturating_sub(look).max(1);
        match first(from).await?.filter(|found| found.sequence < begin) {
            Some(older) if older.at < time => break older.sequence + 1,
            Some(found) => begin = found.sequence,
            None => {}
        }
        looked = from;
        look = look.saturating_mul(FURTHER);
    };
    while looked.saturating_sub(old) > CLOSE.max(begin - looked) {
        let middle = old + (looked - old) / 2;
        match first(middle).await?.filter(|found| found.sequence < looked) {
            Some(older) if older.at < time => old = older.sequence + 1,
            Some(found) => (begin, looked) = (found.sequence, middle),
            None => looked = middle,
        }
    }
    Ok(old.min(begin))
}

/// The only field needed of a message.
#[derive(Deserialize)]
struct MessageResponse {
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
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_time_is_written_as_servers_read_it() {
        assert_eq!(rfc3339(0).as_deref(), Some("1970-01-01T00:00:00.000Z"));
        assert_eq!(rfc3339(1_763_856_305_007).as_deref(), Some("2025-11-23T00:05:05.007Z"));
        assert_eq!(rfc3339(u64::MAX), None);
    }

    /// The beginning, and how many questions that took.
    fn begin_of(log: &BTreeMap<u64, u64>, said: u64, time: u64) -> (u64, usize) {
        let asked = Cell::new(0);
        let first = |from| {
            asked.set(asked.get() + 1);
            let found = log.range(from..).next().map(|(sequence, at)| Stored { sequence: *sequence, at: *at });
            std::future::ready(Ok(found))
        };
        let begin = futures::executor::block_on(no_later_than(said, time, first)).expect("nothing fails");
        (begin, asked.get())
    }

    /// A log among others: by sequence, when each message was stored.
    fn logs() -> impl Strategy<Value = BTreeMap<u64, u64>> {
        let gaps = prop_oneof![1_u64..4, 1_u64..400, 1_u64..200_000];
        proptest::collection::vec((gaps, 0_u64..3), 1..200).prop_map(|steps| {
            let sums = steps.into_iter().scan((0, 0), |(sequence, at), (gap, later)| {
                *sequence += gap;
                *at += later;
                Some((*sequence, *at))
            });
            sums.collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn whatever_the_server_says_nothing_of_the_time_is_before_the_beginning(
            (log, time, place) in (logs(), 0_u64..400, any::<prop::sample::Index>())
        ) {
            let end = log.last_key_value().expect("a message").0 + 1;
            let truth = log.iter().find(|(_, at)| **at >= time).map_or(end, |(sequence, _)| *sequence);
            let later: Vec<u64> = log.range(truth..).map(|(sequence, _)| *sequence).chain([end]).collect();
            let (begin, _) = begin_of(&log, *place.get(&later), time);
            prop_assert!(begin <= truth, "{begin} of {truth}");
            let (begin, asked) = begin_of(&log, truth, time);
            prop_assert!(begin <= truth && asked <= 10, "{begin} of {truth} after {asked}");
        }
    }

    #[test]
    fn an_honest_server_is_asked_once_more() {
        let log: BTreeMap<u64, u64> = (1..100_000).map(|number| (number * 3, number)).collect();
        assert_eq!(begin_of(&log, 150_000, 50_000), (149_746, 1));
        assert_eq!(begin_of(&log, 3, 1), (3, 1), "from the start");
        let (begin, asked) = begin_of(&log, 299_997, 50_000);
        assert!((150_000 - 2_000..=150_000).contains(&begin) && asked < 20, "one that is wrong: {begin} after {asked}");
    }
}
