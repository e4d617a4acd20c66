//! Sending one message so that it is kept once, whatever happens to the answer.

use std::io;
use std::time::Duration;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::Stream;
use async_nats::{HeaderMap, Subject};
use store::StoreError;
use tokio::time::Instant;

use crate::connection::Connection;

/// Names the subjects whose last message a message expects: those of all hosts at once.
pub(crate) const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
/// For how many times the patience of one answer a message is sent again whose answer did not come: a
/// cluster that has lost its leader answers nobody until it has another.
const LONGER: u32 = 4;
/// How long to wait before a message is sent again that nobody was there for.
const PAUSE: Duration = Duration::from_millis(200);
/// How often in a row nobody may be there for a message while the stream that it is for answers, before that is
/// taken for a refusal: who has just been elected to lead answers, and may have missed the message before.
const OVERHEARD: u32 = 3;

/// Sends a message until the server has answered for it, and gives its sequence. It carries an id by
/// which the server knows it again. None where the message that it was to follow is not the last one.
pub(crate) async fn send(
    connection: &Connection,
    stream: &Stream,
    subject: String,
    mut headers: HeaderMap,
    body: Vec<u8>,
) -> Result<Result<Option<u64>, PublishError>, StoreError> {
    let (jetstream, client) = (connection.jetstream().await?, connection.client().await?);
    headers.insert(NATS_MESSAGE_ID, client.new_inbox().as_str());
    let subject = Subject::from(connection.options.way_to(&subject));
    let until = Instant::now() + connection.options.patience * LONGER;
    let mut overheard = 0;
    loop {
        let asked = async {
            jetstream.publish_with_headers(subject.clone(), headers.clone(), body.clone().into()).await?.await
        };
        let outcome = connection.unless_refused(&subject, asked).await.unwrap_or_else(|why| Err(refused(why)));
        let error = match outcome {
            Ok(answer) => return Ok(Ok(Some(answer.sequence))),
            Err(error) => error,
        };
        match error.kind() {
            PublishErrorKind::WrongLastSequence => return Ok(Ok(None)),
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe if Instant::now() < until => {}
            PublishErrorKind::StreamNotFound if Instant::now() < until => {
                overheard = if stream.get_info().await.is_ok() { overheard + 1 } else { 0 };
                if overheard == OVERHEARD {
                    return Ok(Err(unheard(&connection.options.host)));
                }
                tokio::time::sleep(PAUSE).await;
            }
            _ => return Ok(Err(error)),
        }
    }
}

/// That a server does not allow a message.
pub(crate) fn refused(why: String) -> PublishError {
    PublishError::with_source(PublishErrorKind::Other, why)
}

/// That the stream is there, and nobody listens at the place where this host writes.
fn unheard(host: &str) -> PublishError {
    let why = format!("nobody takes what `{host}` writes: this login is another machine's, or may write nothing");
    PublishError::with_source(PublishErrorKind::Other, io::Error::new(io::ErrorKind::PermissionDenied, why))
}
