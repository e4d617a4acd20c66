//! Reads a log from a position on, several messages per request if that cannot miss one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::Stream;
use futures::{StreamExt, TryStreamExt};
use store::{Batch, Damage, Entry, Key, Position, StoreError, backend};

use crate::connection::Connection;
use crate::direct::{self, Answers};
use crate::errors::{again_if_late, found};
use crate::logs::{after, end, floor_of, place, position, writers_of};
use crate::{ownership, subjects};

/// How far each log was seen to reach, with the number of breaks of the connection before. Written by [`read`].
pub(crate) type KnownEnds = Mutex<BTreeMap<Key, (u64, Position)>>;

/// Reads from a position on. If the log ends before that, the server lost its end: then `next` is where it ends now,
/// because what is appended next gets positions that were read already.
pub(crate) async fn read(
    connection: &Connection,
    log: &Key,
    from: Position,
    limit: usize,
) -> Result<Batch, StoreError> {
    let breaks = connection.breaks();
    let mut batch = read_from(connection, log, from, limit).await?;
    if batch.next > from {
        let mut ends = connection.ends.lock().expect("no holder of this lock panics");
        let known = ends.entry(log.clone()).or_default();
        *known = (*known).max((breaks, batch.next));
    } else if batch.at_end && from > Position::START && !is_known_to_reach(connection, log, (breaks, from)) {
        let end = end(connection, log).await?;
        connection.ends.lock().expect("no holder of this lock panics").insert(log.clone(), (breaks, end));
        batch.next = end.min(from);
    }
    Ok(batch)
}

/// Whether a log was seen to reach this position since the connection broke last.
fn is_known_to_reach(connection: &Connection, log: &Key, (breaks, from): (u64, Position)) -> bool {
    let ends = connection.ends.lock().expect("no holder of this lock panics");
    ends.get(log).is_some_and(|(since, end)| *since == breaks && *end >= from)
}

/// The same, except that `next` is `from` if there is nothing, also behind the log's end.
async fn read_from(connection: &Connection, log: &Key, from: Position, limit: usize) -> Result<Batch, StoreError> {
    let mut batch = Batch { next: from, ..Batch::default() };
    let mut bytes = 0;
    let mut messages = Messages::of(connection, log, limit).await?;
    // The floor is read together with the first message if one server answers both.
    let (first, floor) = match messages.answers {
        Answers::Leader => {
            let (first, floor) = tokio::join!(messages.next(place(from).0), floor_of(connection, log));
            (first?, Some(floor?.0))
        }
        Answers::AnyCopy | Answers::Nobody => (messages.next(place(from).0).await?, None),
    };
    let Some(mut message) = first else {
        batch.at_end = true;
        return Ok(batch);
    };
    let floor = match floor {
        Some(floor) => floor,
        None => floor_of(connection, log).await?.0,
    };
    loop {
        for MessageLine { at, next, text } in lines(&message) {
            if at < from.max(floor) {
                continue;
            }
            if !counts(connection, log, &message, text).await? {
                batch.damage.push(Damage { at, bytes: text.len() as u64 });
            } else if bytes >= limit && !batch.entries.is_empty() {
                return Ok(batch);
            } else {
                bytes += text.len();
                batch.entries.push(Entry { at, next, bytes: text.to_vec() });
            }
            batch.next = next;
        }
        batch.next = after(message.sequence);
        if bytes >= limit && messages.must_ask() {
            return Ok(batch);
        }
        match messages.next(place(batch.next).0).await? {
            Some(next) => message = next,
            None => {
                batch.at_end = true;
                return Ok(batch);
            }
        }
    }
}

/// A line of a message: an entry, or damage.
pub(crate) struct MessageLine<'a> {
    pub(crate) at: Position,
    /// Where the next one begins.
    pub(crate) next: Position,
    pub(crate) text: &'a [u8],
}

pub(crate) fn lines(message: &StreamMessage) -> Vec<MessageLine<'_>> {
    let texts: Vec<&[u8]> = message.payload.split(|byte| *byte == b'\n').collect();
    let last = texts.len() - 1;
    let line = |(index, text)| {
        let at = position(message.sequence, index as u64);
        MessageLine { at, next: if index == last { after(message.sequence) } else { Position(at.0 + 1) }, text }
    };
    texts.into_iter().enumerate().map(line).collect()
}

/// Whether a line is an entry, of a machine that may write it.
pub(crate) async fn counts(
    connection: &Connection,
    log: &Key,
    message: &StreamMessage,
    line: &[u8],
) -> Result<bool, StoreError> {
    Ok(backend::check_entry(line).is_ok() && may_speak(connection, log, message, line).await?)
}

/// How many messages are asked for at once, each by its sequence.
const AT_ONCE: usize = 32;

/// Reads the entries at some positions. Each message is asked for by its sequence: a request for several counts all
/// that follow, so it costs more the longer the log is.
pub(crate) async fn entries_at(connection: &Connection, log: &Key, at: &[Position]) -> Result<Vec<Entry>, StoreError> {
    if at.is_empty() {
        return Ok(Vec::new());
    }
    let stream = connection.logs().await?;
    let subjects = writers_of(connection, log).await?.filter(connection, log);
    let sequences: BTreeSet<u64> = at.iter().map(|at| place(*at).0).collect();
    let messages = futures::stream::iter(sequences).map(|sequence| message_at(connection, &stream, log, sequence));
    let messages = messages.buffered(AT_ONCE).try_collect::<Vec<Option<StreamMessage>>>();
    let (messages, (floor, _)) = tokio::try_join!(messages, floor_of(connection, log))?;
    let wanted: BTreeSet<Position> = at.iter().copied().filter(|at| *at >= floor).collect();
    let mut found = Vec::new();
    for message in messages.into_iter().flatten().filter(|message| subjects::includes(&subjects, &message.subject)) {
        for MessageLine { at, next, text } in lines(&message).into_iter().filter(|line| wanted.contains(&line.at)) {
            if counts(connection, log, &message, text).await? {
                found.push(Entry { at, next, bytes: text.to_vec() });
            }
        }
    }
    Ok(found)
}

/// See [`store::Store::is_written_by`]: the server lets a machine write at subjects of its own alone.
pub(crate) async fn is_written_by(
    connection: &Connection,
    log: &Key,
    before: Position,
    machine: &str,
) -> Result<bool, StoreError> {
    let (sequence, line) = place(before);
    let sequence = if line == 0 { sequence.saturating_sub(1) } else { sequence };
    let stream = connection.logs().await?;
    let found = message_at(connection, &stream, log, sequence).await?;
    let own = subjects::of_log(&connection.options, machine, log);
    Ok(found.is_some_and(|message| message.subject.as_str() == own))
}

/// The message with a sequence, of whichever log; none if it is gone.
pub(crate) async fn message_at(
    connection: &Connection,
    stream: &Stream,
    log: &Key,
    sequence: u64,
) -> Result<Option<StreamMessage>, StoreError> {
    if let Some(message) = direct::at(connection, stream, sequence).await {
        return Ok(message);
    }
    let ask = || stream.raw_message_builder().sequence(sequence).send();
    found(log, again_if_late(ask).await)
}

/// The first message at some subjects from a sequence on; none if there is none.
pub(crate) async fn first_from(
    connection: &Connection,
    stream: &Stream,
    (what, subject): (&Key, &str),
    from: u64,
) -> Result<Option<StreamMessage>, StoreError> {
    if let Some(first) = direct::first(connection, stream, subject, from).await {
        return Ok(first);
    }
    first_by_leader(stream, (what, subject), from).await
}

/// The same from the leader, which has every acknowledged message.
async fn first_by_leader(
    stream: &Stream,
    (what, subject): (&Key, &str),
    from: u64,
) -> Result<Option<StreamMessage>, StoreError> {
    let ask = || stream.raw_message_builder().sequence(from.max(1)).next_by_subject(subject).send();
    found(what, again_if_late(ask).await)
}

/// How many messages of the stream the first look back covers. Other logs' messages are among them.
const FIRST_LOOK_BACK: u64 = 256;
/// A look back that found fewer bytes goes further back.
const ENOUGH: usize = 16 * 1024;

/// Reads the last entries before a position. A server has no way to read backwards, so this reads forwards from ever
/// further back until it has some: as far as the entries found so far lie apart.
pub(crate) async fn read_back(
    connection: &Connection,
    log: &Key,
    before: Position,
    limit: usize,
) -> Result<Batch, StoreError> {
    let mut last = Batch { next: before, ..Batch::default() };
    let after = place(before).0 + 1;
    let (mut end, mut span) = (after, FIRST_LOOK_BACK);
    loop {
        let found = last.entries.iter().map(|entry| entry.bytes.len()).sum::<usize>();
        let wanted = limit.clamp(1, ENOUGH);
        if end == 0 || found >= wanted {
            break;
        }
        if end < after {
            span = next_look_back((after - end, found), wanted, span);
        }
        let start = end.saturating_sub(span);
        let upto = before.min(position(end, 0));
        let (mut earlier, mut from) = (Batch::default(), position(start, 0));
        loop {
            let batch = read_from(connection, log, from, limit.max(ENOUGH)).await?;
            earlier.damage.extend(batch.damage.into_iter().filter(|damage| damage.at < upto));
            earlier.entries.extend(batch.entries.into_iter().filter(|entry| entry.next <= upto));
            if batch.at_end || batch.next >= upto || batch.next == from {
                break;
            }
            from = batch.next;
        }
        earlier.entries.append(&mut last.entries);
        earlier.damage.append(&mut last.damage);
        (last.entries, last.damage) = (earlier.entries, earlier.damage);
        end = start;
    }
    last.at_end = !backend::keep_last(&mut last.entries, limit) && end == 0;
    last.next = last.entries.first().map_or(before, |first| first.at);
    Ok(last)
}

/// How many messages the next look back covers, if so many were looked at and so many bytes found. A little more than
/// what is likely to be enough, and at most eight times the last look.
fn next_look_back((looked, found): (u64, usize), wanted: usize, last: u64) -> u64 {
    let most = last.saturating_mul(8);
    let missing = u64::try_from(wanted.saturating_sub(found)).unwrap_or(u64::MAX);
    match u64::try_from(found).unwrap_or(u64::MAX) {
        0 => most,
        found => looked.saturating_mul(missing).div_ceil(found).saturating_mul(5).div_ceil(4).clamp(64.min(most), most),
    }
}

/// Iterates over a log's messages.
pub(crate) struct Messages<'a> {
    connection: &'a Connection,
    log: &'a Key,
    stream: Arc<Stream>,
    /// The subjects that count.
    subject: String,
    /// The servers that answer direct reads, which return several messages at once.
    answers: Answers,
    /// Number of bytes to read, and of messages.
    limit: (usize, usize),
    /// Messages read ahead.
    ahead: VecDeque<StreamMessage>,
    /// Whether `ahead` reaches the log's end.
    complete: bool,
    /// Whether there was any message.
    any: bool,
}

impl Messages<'_> {
    async fn of<'a>(connection: &'a Connection, log: &'a Key, bytes: usize) -> Result<Messages<'a>, StoreError> {
        let subject = writers_of(connection, log).await?.filter(connection, log);
        Ok(Messages { limit: (direct::MOST, bytes), ..Messages::at(connection, log, &subject, 1).await? })
    }

    /// At these subjects, so many of them.
    pub(crate) async fn at<'a>(
        connection: &'a Connection,
        log: &'a Key,
        subject: &str,
        most: usize,
    ) -> Result<Messages<'a>, StoreError> {
        let stream = connection.logs().await?;
        let answers = direct::answers(connection, &stream).await;
        Ok(Messages {
            connection,
            log,
            stream,
            subject: subject.to_owned(),
            answers,
            limit: (most.clamp(1, direct::MOST), direct::MOST_BYTES),
            ahead: VecDeque::new(),
            complete: false,
            any: false,
        })
    }

    /// Whether the next message needs a request.
    fn must_ask(&self) -> bool {
        self.ahead.is_empty() && !self.complete
    }

    /// The next message, from a sequence on.
    pub(crate) async fn next(&mut self, from: u64) -> Result<Option<StreamMessage>, StoreError> {
        if self.must_ask() {
            // A lagging replica does not know where the log ends.
            let several = match self.answers {
                Answers::Leader => true,
                Answers::AnyCopy => self.any,
                Answers::Nobody => false,
            };
            if several {
                self.ask_for_several(from).await?;
            }
            if self.must_ask() {
                self.ahead.extend(first_by_leader(&self.stream, (self.log, &self.subject), from).await?);
                self.complete = self.ahead.is_empty();
            }
            self.any |= !self.ahead.is_empty();
        }
        Ok(self.ahead.pop_front())
    }

    async fn ask_for_several(&mut self, from: u64) -> Result<(), StoreError> {
        let asked = direct::stretch(self.connection, &self.stream, &self.subject, from, self.limit).await?;
        match (asked, self.answers) {
            (Some(stretch), Answers::Leader) => {
                self.complete = stretch.at_end;
                self.ahead.extend(stretch.messages);
            }
            (Some(stretch), Answers::AnyCopy | Answers::Nobody) => {
                if stretch.at_end {
                    self.answers = Answers::Nobody;
                }
                self.ahead.extend(stretch.messages);
            }
            (None, _) => self.answers = Answers::Nobody,
        }
        Ok(())
    }
}

/// Whether the machine that wrote an entry may write on behalf of the home that the entry names.
async fn may_speak(
    connection: &Connection,
    log: &Key,
    message: &StreamMessage,
    entry: &[u8],
) -> Result<bool, StoreError> {
    let Some(rule) = connection.homes.as_ref().filter(|rule| rule.is_open(log)) else { return Ok(true) };
    let Some(home) = rule.speaker(log, entry) else { return Ok(true) };
    let having = ownership::having(connection, &home).await?;
    let machine = subjects::machine_of_entry(&connection.options, &message.subject);
    Ok(having.zip(machine).is_some_and(|(having, machine)| having.spoke(machine, message.sequence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_back_goes_as_far_as_is_likely_to_be_enough() {
        assert_eq!(next_look_back((256, 0), 16_384, 256), 2_048, "nothing was found");
        assert_eq!(next_look_back((256, 4_096), 16_384, 256), 960, "a quarter was found");
        assert_eq!(next_look_back((2_304, 100), 16_384, 2_048), 16_384, "hardly anything was found");
        assert_eq!(next_look_back((2_304, 16_383), 16_384, 2_048), 64, "nearly all was found");
    }
}
