//! Direct reads: any server with a replica of the stream answers, without asking the leader. One request brings
//! several messages, and none is wrapped in JSON.
//!
//! With one replica the leader itself answers, so nothing is missed. With several, a lagging replica may answer: it is
//! asked only for messages between ones that are known to exist, never for the end of a log. A login that may not read
//! directly, or gets no answer, asks the leader.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_nats::header::{HeaderName, NATS_LAST_SEQUENCE};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Config, DirectGetError, DirectGetErrorKind, Stream};
use async_nats::{HeaderMap, StatusCode};
use futures::StreamExt;
use store::StoreError;
use tokio::time::Instant;

use crate::connection::Connection;

/// The most messages per request.
pub(crate) const MOST: usize = 1_000;
/// About the most bytes per request.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// The header with the number of messages that follow.
const PENDING: HeaderName = HeaderName::from_static("Nats-Num-Pending");
/// How long [`Answers`] is cached: an operator may change the number of replicas.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The servers that answer direct reads of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The only server with a copy.
    Leader,
    /// Any of several servers; some may lag.
    AnyCopy,
    /// No server, or none for our login.
    Nobody,
}

/// The answering servers by stream, as known to this process. Written by [`answers`].
pub(crate) type AnswersCache = Mutex<BTreeMap<String, (Answers, Instant)>>;

/// Some of a log's messages, in order and without a gap.
pub(crate) struct Stretch {
    pub(crate) messages: Vec<StreamMessage>,
    /// Whether the server had no more of them.
    pub(crate) at_end: bool,
}

/// The servers that answer direct reads of a stream, from the cache or from the server.
pub(crate) async fn answers(connection: &Connection, stream: &Stream) -> Answers {
    let name = &stream.cached_info().config.name;
    let known = {
        let known = connection.answers.lock().expect("no holder of this lock panics");
        known.get(name).filter(|(_, since)| since.elapsed() < REMEMBERED).map(|(answers, _)| *answers)
    };
    if let Some(answers) = known {
        return answers;
    }
    let answers = match stream.get_info().await {
        Ok(now) => of(&now.config),
        // The request to the leader that follows reports what is wrong.
        Err(error) => {
            tracing::debug!(%error, stream = %name, "it is not known who answers for the stream");
            Answers::Nobody
        }
    };
    remember(connection, name, answers);
    answers
}

/// Caches the answering servers of a stream whose configuration was just read.
pub(crate) fn seen(connection: &Connection, config: &Config) {
    remember(connection, &config.name, of(config));
}

/// A stream's messages at some subjects, from a sequence on. None if no server answered completely.
pub(crate) async fn stretch(
    connection: &Connection,
    stream: &Stream,
    subject: &str,
    from: u64,
    (most, bytes): (usize, usize),
) -> Result<Option<Stretch>, StoreError> {
    let several = several(connection, stream, subject, from, (most, bytes.clamp(1, MOST_BYTES))).await?;
    Ok(several.map(|(messages, more)| Stretch { messages, at_end: more == 0 }))
}

/// How many messages a stream has at some subjects. None if no server answered.
pub(crate) async fn count(connection: &Connection, stream: &Stream, subject: &str) -> Result<Option<u64>, StoreError> {
    let first = several(connection, stream, subject, 1, (1, MOST_BYTES)).await?;
    Ok(first.map(|(messages, more)| messages.len() as u64 + more))
}

/// Messages from a sequence on, up to a number and a size, and how many more follow.
async fn several(
    connection: &Connection,
    stream: &Stream,
    subject: &str,
    from: u64,
    (most, bytes): (usize, usize),
) -> Result<Option<(Vec<StreamMessage>, u64)>, StoreError> {
    let name = &stream.cached_info().config.name;
    let client = connection.client().await?;
    let question = serde_json::json!({
        "seq": from.max(1), "next_by_subj": subject, "batch": most, "max_bytes": bytes,
    });
    let inbox = client.new_inbox();
    let Ok(mut answer) = client.subscribe(inbox.clone()).await else { return Ok(None) };
    let asked = format!("{}.DIRECT.GET.{name}", connection.options.api());
    if client.publish_with_reply(asked, inbox, question.to_string().into()).await.is_err() {
        return Ok(None);
    }
    let mut messages: Vec<StreamMessage> = Vec::new();
    loop {
        let came = tokio::time::timeout(connection.options.timeout, answer.next()).await;
        // The connection broke, or no answer came in time: the caller asks the leader instead.
        let Ok(Some(message)) = came else { return Ok(None) };
        match message.status {
            Some(StatusCode::NOT_FOUND) => return Ok(Some((messages, 0))),
            Some(StatusCode::NO_RESPONDERS) => {
                remember(connection, name, Answers::Nobody);
                return Ok(None);
            }
            Some(_) => {
                // The end-of-batch message. Anything else is a refusal and has no such headers.
                let headers = message.headers.unwrap_or_default();
                let last = messages.last().map(|message| message.sequence);
                let (said, pending) = (number(&headers, NATS_LAST_SEQUENCE), number(&headers, PENDING));
                return Ok(pending.filter(|_| said == last).map(|pending| (messages, pending)));
            }
            None => {
                let before = messages.last().map_or(0, |message| message.sequence);
                let follows =
                    message.headers.as_ref().is_some_and(|headers| number(headers, NATS_LAST_SEQUENCE) == Some(before));
                match StreamMessage::try_from(message) {
                    // Each message names its predecessor, which shows a message lost with a broken connection.
                    Ok(message) if follows => messages.push(message),
                    Ok(_) | Err(_) => return Ok(None),
                }
            }
        }
    }
}

/// The newest message at one subject. The outer option is none if the leader has to be asked.
pub(crate) async fn newest(connection: &Connection, stream: &Stream, subject: &str) -> Option<Option<StreamMessage>> {
    // The subject becomes part of the request's subject, which may have no wildcard.
    if subject.contains('*') {
        return None;
    }
    match answers(connection, stream).await {
        Answers::Leader => one(connection, stream, stream.direct_get_last_for_subject(subject).await),
        Answers::AnyCopy | Answers::Nobody => None,
    }
}

/// The first message at some subjects from a sequence on. The outer option is none if the leader has to be asked.
pub(crate) async fn first(
    connection: &Connection,
    stream: &Stream,
    subject: &str,
    from: u64,
) -> Option<Option<StreamMessage>> {
    match answers(connection, stream).await {
        Answers::Leader => {
            let ask = stream.direct_get_builder().sequence(from.max(1)).next_by_subject(subject).send();
            one(connection, stream, ask.await)
        }
        Answers::AnyCopy | Answers::Nobody => None,
    }
}

/// The message with a sequence. The outer option is none if the leader has to be asked: a lagging copy may lack it.
pub(crate) async fn at(connection: &Connection, stream: &Stream, sequence: u64) -> Option<Option<StreamMessage>> {
    let answers = answers(connection, stream).await;
    if answers == Answers::Nobody {
        return None;
    }
    let ask = stream.direct_get_builder().sequence(sequence.max(1)).send();
    one(connection, stream, ask.await).filter(|message| message.is_some() || answers == Answers::Leader)
}

fn one(
    connection: &Connection,
    stream: &Stream,
    answer: Result<StreamMessage, DirectGetError>,
) -> Option<Option<StreamMessage>> {
    let error = match answer {
        Ok(message) => return Some(Some(message)),
        Err(error) => error,
    };
    match error.kind() {
        DirectGetErrorKind::NotFound => Some(None),
        DirectGetErrorKind::ErrorResponse(StatusCode::NO_RESPONDERS, _) => {
            remember(connection, &stream.cached_info().config.name, Answers::Nobody);
            None
        }
        _ => None,
    }
}

fn of(config: &Config) -> Answers {
    match (config.allow_direct, config.num_replicas) {
        (true, 0 | 1) => Answers::Leader,
        (true, _) => Answers::AnyCopy,
        (false, _) => Answers::Nobody,
    }
}

fn remember(connection: &Connection, stream: &str, answers: Answers) {
    let mut known = connection.answers.lock().expect("no holder of this lock panics");
    known.insert(stream.to_owned(), (answers, Instant::now()));
}

fn number(headers: &HeaderMap, name: HeaderName) -> Option<u64> {
    headers.get_last(name)?.as_str().parse().ok()
}
