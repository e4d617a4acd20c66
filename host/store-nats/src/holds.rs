//! Holds as keys with an expiry: the owner renews its key, and the server drops a key that is not renewed. A process
//! that is killed, or a machine that is disconnected, loses its holds within seconds.

use std::sync::Arc;

use async_nats::HeaderMap;
use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use store::{Hold, Key, StoreError};
use tokio::task::JoinHandle;

use crate::connection::{Connection, HOLD_LASTS};
use crate::errors::{is_lost_race, server_error};
use crate::sending::refused;
use crate::subjects;

/// Takes a key; none if it is held.
pub(crate) async fn take(connection: &Arc<Connection>, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
    let subject = subjects::of_hold(&connection.options.hold_bucket(), key);
    connection.holds().await?;
    match renew(connection, &subject, 0).await {
        Ok(sequence) => Ok(Some(Box::new(NatsHold::new(connection, key, subject, sequence)))),
        Err(error) if is_lost_race(&error) => Ok(None),
        Err(error) => Err(server_error("could not take", key)(error.into())),
    }
}

/// Writes the hold, if the last message of the key still is `after`.
async fn renew(connection: &Connection, subject: &str, after: u64) -> Result<u64, PublishError> {
    let jetstream =
        connection.jetstream().await.map_err(|error| PublishError::with_source(PublishErrorKind::BrokenPipe, error))?;
    let mut headers = HeaderMap::new();
    headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, after.to_string().as_str());
    let body = connection.options.machine.clone().into_bytes();
    let subject = connection.options.way_to(subject);
    let asked = async { jetstream.publish_with_headers(subject.clone(), headers, body.into()).await?.await };
    let answered = connection.unless_refused(&subject, asked).await.unwrap_or_else(|why| Err(refused(why)));
    answered.map(|answer| answer.sequence)
}

/// A key, held until this is dropped.
struct NatsHold {
    key: Key,
    /// Releases the key once `stop` is dropped.
    renewal: Option<JoinHandle<()>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

impl NatsHold {
    fn new(connection: &Arc<Connection>, key: &Key, subject: String, sequence: u64) -> NatsHold {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let renewal = tokio::spawn(keep(Arc::clone(connection), key.clone(), subject, sequence, stopped));
        NatsHold { key: key.clone(), renewal: Some(renewal), stop: Some(stop) }
    }
}

impl Hold for NatsHold {
    fn key(&self) -> &Key {
        &self.key
    }
}

impl Drop for NatsHold {
    fn drop(&mut self) {
        drop(self.stop.take());
        // Detached: the task releases the key on its own.
        drop(self.renewal.take());
    }
}

/// Renews a hold until it is dropped, and then releases it.
async fn keep(
    connection: Arc<Connection>,
    key: Key,
    subject: String,
    mut sequence: u64,
    mut stopped: tokio::sync::oneshot::Receiver<()>,
) {
    let mut tick = tokio::time::interval(HOLD_LASTS / 4);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    tick.tick().await;
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            _ = tick.tick() => match renew(&connection, &subject, sequence).await {
                Ok(next) => sequence = next,
                Err(error) => tracing::warn!(%key, %error, "a hold could not be renewed, and may soon be lost"),
            },
        }
    }
    let given_back = async {
        let stream = connection.holds().await.ok()?;
        stream.delete_message(sequence).await.err()
    };
    if let Some(error) = given_back.await {
        tracing::debug!(%key, %error, "a hold was not given back, and lapses by itself");
    }
}
