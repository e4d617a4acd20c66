//! Sends one message so that it is stored once, even if the answer is lost.

use std::time::Duration;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::stream::{ClusterInfo, Stream};
use async_nats::{HeaderMap, Subject};
use store::{Key, ServerTrouble, StoreError};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::errors::{is_lost_race, is_no_stream, server_error};

/// The header with the subjects whose last message must be the expected one: those of all machines at once.
pub(crate) const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
/// How many timeouts long a message is sent again if no answer comes: a cluster that has lost its leader does not
/// answer until it has elected another.
const LONGER: u32 = 4;
/// The pause before a message is sent again that no stream took.
const PAUSE: Duration = Duration::from_millis(200);
/// How often in a row no stream may take a message although it has a leader, before that counts as a refusal. A leader
/// that was just elected answers, and may have missed the message before.
const OVERHEARD: u32 = 5;

/// Sends a message until the server has answered, and returns its sequence. The message carries an id by which the
/// server recognises a repetition. None if another message was faster. `doing` and `key` are for the error.
pub(crate) async fn send(
    connection: &Connection,
    stream: &Stream,
    subject: String,
    mut headers: HeaderMap,
    body: Vec<u8>,
    (doing, key): (&'static str, &Key),
) -> Result<Option<u64>, StoreError> {
    let (jetstream, client) = (connection.jetstream().await?, connection.client().await?);
    headers.insert(NATS_MESSAGE_ID, client.new_inbox().as_str());
    let subject = Subject::from(connection.options.way_to(&subject));
    let until = Instant::now() + connection.options.timeout * LONGER;
    let mut overheard = 0;
    let mut is_told = false;
    loop {
        let asked = async {
            jetstream.publish_with_headers(subject.clone(), headers.clone(), body.clone().into()).await?.await
        };
        let outcome = connection.unless_refused(&subject, asked).await.unwrap_or_else(|why| Err(refused(why)));
        let error = match outcome {
            Ok(answer) => return Ok(Some(answer.sequence)),
            Err(error) if is_lost_race(&error) => return Ok(None),
            Err(error) => error,
        };
        if matches!(error.kind(), PublishErrorKind::TimedOut | PublishErrorKind::StreamNotFound) && !is_told {
            is_told = true;
            let seconds = until.saturating_duration_since(Instant::now()).as_secs();
            tracing::warn!("the servers have no leader that answers: waiting up to {seconds} s for an election");
        }
        match error.kind() {
            PublishErrorKind::TimedOut | PublishErrorKind::BrokenPipe if Instant::now() < until => {}
            PublishErrorKind::StreamNotFound if Instant::now() < until => {
                overheard = match stream.get_info().await {
                    Ok(info) if has_a_leader(info.cluster.as_ref()) => overheard + 1,
                    // A server that has lost the others still tells what it knows of the stream.
                    Ok(_) => 0,
                    Err(error) => {
                        if is_no_stream(&error) {
                            // It was deleted while the connection stands.
                            connection.reopen();
                            let _made = tokio::join!(connection.logs(), connection.map());
                        }
                        0
                    }
                };
                if overheard == OVERHEARD {
                    // The stream exists, but does not listen at the subject where this machine writes.
                    let machine = &connection.options.machine;
                    let why = format!(
                        "no stream takes what `{machine}` writes: this login is another machine's, or may write nothing"
                    );
                    return Err(StoreError::server(doing, key, ServerTrouble::Denied, why));
                }
                tokio::time::sleep(PAUSE).await;
            }
            _ => return Err(server_error(doing, key)(error.into())),
        }
    }
}

/// Whether the stream has a leader that most of its servers follow. A stream on a single server has no cluster.
fn has_a_leader(cluster: Option<&ClusterInfo>) -> bool {
    cluster.is_none_or(|cluster| {
        let online = 1 + cluster.replicas.iter().filter(|server| !server.offline).count();
        cluster.leader.as_ref().is_some_and(|name| !name.is_empty()) && online * 2 > cluster.replicas.len() + 1
    })
}

/// The error for a message that the server does not allow, in the server's words.
pub(crate) fn refused(why: String) -> PublishError {
    PublishError::with_source(PublishErrorKind::Other, why)
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream::stream::PeerInfo;

    use super::*;

    /// A stream's cluster as one of three servers sees it.
    fn cluster(leader: Option<&str>, offline: [bool; 2]) -> ClusterInfo {
        let replicas = offline.map(|offline| PeerInfo { offline, ..PeerInfo::default() }).to_vec();
        ClusterInfo { leader: leader.map(str::to_owned), replicas, ..ClusterInfo::default() }
    }

    #[test]
    fn a_leader_without_a_majority_is_none() {
        assert!(has_a_leader(None));
        assert!(has_a_leader(Some(&cluster(Some("a"), [false, true]))));
        assert!(!has_a_leader(Some(&cluster(Some("a"), [true, true]))));
        assert!(!has_a_leader(Some(&cluster(None, [false, false]))));
        assert!(!has_a_leader(Some(&cluster(Some(""), [false, false]))));
    }
}
