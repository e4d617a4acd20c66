//! Questions that any server answers which has the stream, without the one that leads being asked: several
//! messages by one question, and none of them wrapped in JSON.
//!
//! A stream that lies on one server alone is answered for by the server that leads it, so nothing is
//! overlooked. Where it lies on several, a copy that lags may answer: it is asked for what lies between
//! things that are known to be there, and never where a log ends. Who may not ask so, or finds nobody who
//! answers, asks the server that leads.

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

/// How many messages one question brings at most.
const MOST: usize = 1_000;
/// How many bytes it brings at most, or hardly more.
const MOST_BYTES: usize = 1 << 20;
/// By which header a server says how many more there are.
const PENDING: HeaderName = HeaderName::from_static("Nats-Num-Pending");
/// How long it is remembered who answers for a stream: an operator may have it kept on more servers.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Who answers for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The only server that has it.
    Leader,
    /// Any of several, of which one may lag.
    AnyCopy,
    /// Nobody, or not to us.
    Nobody,
}

/// Who answers for which stream, as far as this process has found out. Written by whoever asks.
pub(crate) type AnswersCache = Mutex<BTreeMap<String, (Answers, Instant)>>;

/// Some of a log's messages, in order and without a gap.
pub(crate) struct Stretch {
    pub(crate) messages: Vec<StreamMessage>,
    /// Whether the server had no more of them.
    pub(crate) at_end: bool,
}

/// Who answers for a stream.
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
        // Whoever asks the server that leads learns what is wrong.
        Err(error) => {
            tracing::debug!(%error, stream = %name, "it is not known who answers for the stream");
            Answers::Nobody
        }
    };
    remember(connection, name, answers);
    answers
}

/// Notes who answers for a stream that was looked at just now.
pub(crate) fn seen(connection: &Connection, config: &Config) {
    remember(connection, &config.name, of(config));
}

/// A stream's messages at some subjects, from a sequence on. None where nobody answered for all of it.
pub(crate) async fn stretch(
    connection: &Connection,
    stream: &Stream,
    subject: &str,
    from: u64,
    bytes: usize,
) -> Result<Option<Stretch>, StoreError> {
    let several = several(connection, stream, subject, from, (MOST, bytes.clamp(1, MOST_BYTES))).await?;
    Ok(several.map(|(messages, more)| Stretch { messages, at_end: more == 0 }))
}

/// How many messages a stream has at some subjects. None where nobody said.
pub(crate) async fn count(connection: &Connection, stream: &Stream, subject: &str) -> Result<Option<u64>, StoreError> {
    let first = several(connection, stream, subject, 1, (1, MOST_BYTES)).await?;
    Ok(first.map(|(messages, more)| messages.len() as u64 + more))
}

/// Some messages from a sequence on, at most so many and so many bytes, and how many more there are.
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
        let came = tokio::time::timeout(connection.options.patience, answer.next()).await;
        // The connection broke, or the server did not answer in time: the one that leads is asked instead.
        let Ok(Some(message)) = came else { return Ok(None) };
        match message.status {
            Some(StatusCode::NOT_FOUND) => return Ok(Some((messages, 0))),
            Some(StatusCode::NO_RESPONDERS) => {
                remember(connection, name, Answers::Nobody);
                return Ok(None);
            }
            Some(_) => {
                // The mark after the last one; anything else is a refusal, and has none of this.
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
                    // Each says which one came before it: what was lost on a connection that broke is noticed.
                    Ok(message) if follows => messages.push(message),
                    Ok(_) | Err(_) => return Ok(None),
                }
            }
        }
    }
}

/// The newest message at one subject, if somebody says whether there is one.
pub(crate) async fn newest(connection: &Connection, stream: &Stream, subject: &str) -> Option<Option<StreamMessage>> {
    // The subject is part of the question's own, where nothing may stand for something else.
    if subject.contains('*') {
        return None;
    }
    match answers(connection, stream).await {
        Answers::Leader => one(connection, stream, stream.direct_get_last_for_subject(subject).await),
        Answers::AnyCopy | Answers::Nobody => None,
    }
}

/// The first message at some subjects from a sequence on, if somebody says whether there is one.
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
