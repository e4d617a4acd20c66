//! Reads a log from a position on, several messages per request if that cannot miss one.

use std::collections::VecDeque;

use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::Stream;
use store::{Batch, Damage, Entry, Key, Position, StoreError, backend};

use crate::connection::Connection;
use crate::direct::{self, Answers};
use crate::errors::{again_if_late, found};
use crate::logs::{after, floor_of, place, position, writers_of};
use crate::{ownership, subjects};

/// Reads from a position on.
pub(crate) async fn read(
    connection: &Connection,
    log: &Key,
    from: Position,
    limit: usize,
) -> Result<Batch, StoreError> {
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
        let lines: Vec<&[u8]> = message.payload.split(|byte| *byte == b'\n').collect();
        for (index, line) in lines.iter().enumerate() {
            let at = position(message.sequence, index as u64);
            let next = if index + 1 == lines.len() { after(message.sequence) } else { Position(at.0 + 1) };
            if at < from.max(floor) {
                continue;
            }
            let counts = backend::check_entry(line).is_ok() && may_speak(connection, log, &message, line).await?;
            if !counts {
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

/// Iterates over a log's messages.
struct Messages<'a> {
    connection: &'a Connection,
    log: &'a Key,
    stream: &'a Stream,
    /// The subjects that count.
    subject: String,
    /// Who answers direct reads, which bring several at once.
    answers: Answers,
    /// How many bytes are wanted.
    limit: usize,
    /// Messages that were read ahead.
    ahead: VecDeque<StreamMessage>,
    /// Whether `ahead` reaches the log's end.
    complete: bool,
    /// Whether there was any message.
    any: bool,
}

impl Messages<'_> {
    async fn of<'a>(connection: &'a Connection, log: &'a Key, limit: usize) -> Result<Messages<'a>, StoreError> {
        let stream = connection.logs().await?;
        let subject = writers_of(connection, log).await?.filter(connection, log);
        let answers = direct::answers(connection, stream).await;
        let ahead = VecDeque::new();
        Ok(Messages { connection, log, stream, subject, answers, limit, ahead, complete: false, any: false })
    }

    /// Whether the next message takes a request.
    fn must_ask(&self) -> bool {
        self.ahead.is_empty() && !self.complete
    }

    /// The next message, from a sequence on.
    async fn next(&mut self, from: u64) -> Result<Option<StreamMessage>, StoreError> {
        if self.must_ask() {
            // A replica that lags does not know where the log ends.
            let several = match self.answers {
                Answers::Leader => true,
                Answers::AnyCopy => self.any,
                Answers::Nobody => false,
            };
            if several {
                self.ask_for_several(from).await?;
            }
            if self.must_ask() {
                self.ahead.extend(self.ask_the_leader(from).await?);
                self.complete = self.ahead.is_empty();
            }
            self.any |= !self.ahead.is_empty();
        }
        Ok(self.ahead.pop_front())
    }

    async fn ask_for_several(&mut self, from: u64) -> Result<(), StoreError> {
        let asked = direct::stretch(self.connection, self.stream, &self.subject, from, self.limit).await?;
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

    /// Asks the leader, which has every message that was acknowledged.
    async fn ask_the_leader(&self, from: u64) -> Result<Option<StreamMessage>, StoreError> {
        let ask = || self.stream.raw_message_builder().sequence(from.max(1)).next_by_subject(&self.subject).send();
        found(self.log, again_if_late(ask).await)
    }
}

/// Whether the host that wrote an entry may speak for the home in whose name the entry speaks.
async fn may_speak(
    connection: &Connection,
    log: &Key,
    message: &StreamMessage,
    entry: &[u8],
) -> Result<bool, StoreError> {
    let Some(rule) = connection.homes.as_ref().filter(|rule| rule.is_open(log)) else { return Ok(true) };
    let Some(home) = rule.speaker(log, entry) else { return Ok(true) };
    let having = ownership::having(connection, &home).await?;
    let host = subjects::host_of_entry(&connection.options, &message.subject);
    Ok(having.zip(host).is_some_and(|(having, host)| having.spoke(host, message.sequence)))
}
