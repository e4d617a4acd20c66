//! Watches: the server announces each message once it is stored (a republish), and the watcher reads for itself. A
//! stream that an operator created without republish is followed by a consumer instead.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::stream::Stream;
use async_trait::async_trait;
use futures::StreamExt;
use store::{Key, ServerTrouble, StoreError, Watch};
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::errors::server_error;
use crate::{stream_check, subjects};

/// How long a subscription may take to reach the other servers of a cluster.
const SPREADS: Duration = Duration::from_secs(2);

/// How often to look although nothing was announced: a leaf node may have lost its hub, and this connection lived on.
const LOOKS_AGAIN: Duration = Duration::from_secs(60);

/// How long a listener outlives its last watch, so that a caller that waits for mail in a loop need not subscribe each
/// time.
const LINGERS: Duration = Duration::from_secs(30);

/// The listeners by their keys, each with the time of its last use. Written by [`watch`].
pub(crate) type Listeners = Mutex<BTreeMap<Vec<Key>, (Arc<Listener>, Instant)>>;

/// Watches logs and values at or under some keys, from now on.
pub(crate) async fn watch(connection: &Connection, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
    connection.jetstream().await?;
    let listening = match heard_already(connection, under) {
        Some(listening) => listening,
        None => {
            let listening = Arc::new(begin(connection, under).await?);
            let mut watched = connection.watched.lock().expect("no holder of this lock panics");
            watched.insert(under.to_vec(), (Arc::clone(&listening), Instant::now()));
            listening
        }
    };
    let mut seen = listening.seen.clone();
    seen.mark_unchanged();
    Ok(Box::new(NatsWatch { seen, _listening: listening }))
}

/// The listener for exactly these keys. Drops listeners that are no longer used.
fn heard_already(connection: &Connection, under: &[Key]) -> Option<Arc<Listener>> {
    let mut watched = connection.watched.lock().expect("no holder of this lock panics");
    let found = watched.get_mut(under).filter(|(listening, _)| listening.seen.has_changed().is_ok());
    let found = found.map(|(listening, since)| {
        *since = Instant::now();
        Arc::clone(listening)
    });
    watched.retain(|_, (listening, since)| Arc::strong_count(listening) > 1 || since.elapsed() < LINGERS);
    found
}

/// Starts a listener.
async fn begin(connection: &Connection, under: &[Key]) -> Result<Listener, StoreError> {
    let options = &connection.options;
    let (news, seen) = watch::channel(0_u64);
    let mut tasks = JoinSet::new();
    let (logs, map) = (connection.logs().await?, connection.map().await?);
    let tells = |stream: &Stream| stream_check::tells(options, &stream.cached_info().config);
    if tells(&logs) && tells(&map) {
        let subjects = under.iter().flat_map(|key| subjects::news_under(options, key)).collect();
        listen(connection, subjects, &news, &mut tasks).await?;
    } else {
        let bucket = options.map_bucket();
        let of_logs = under.iter().flat_map(|key| subjects::logs_under(options, key)).collect();
        follow(connection, &logs, of_logs, &news, &mut tasks).await?;
        let of_values = under.iter().flat_map(|key| subjects::values_under(&bucket, key)).collect();
        follow(connection, &map, of_values, &news, &mut tasks).await?;
    }
    Ok(Listener { seen, _tasks: tasks })
}

/// Subscribes to the server's announcements.
async fn listen(
    connection: &Connection,
    subjects: Vec<String>,
    news: &Sender<u64>,
    tasks: &mut JoinSet<()>,
) -> Result<(), StoreError> {
    let client = connection.client().await?;
    let told = |error: Box<dyn std::error::Error + Send + Sync>| server_error("could not watch", "the server")(error);
    for subject in subjects {
        let mut subscriber = client.subscribe(subject).await.map_err(|error| told(error.into()))?;
        let news = news.clone();
        tasks.spawn(async move {
            while subscriber.next().await.is_some() {
                news.send_modify(|count| *count += 1);
            }
        });
    }
    let mut made = connection.made.subscribe();
    // Once our own message comes back, the server has processed the subscriptions before it.
    let echo = client.new_inbox();
    let mut heard = client.subscribe(echo.clone()).await.map_err(|error| told(error.into()))?;
    client.publish(echo, Vec::new().into()).await.map_err(|error| told(error.into()))?;
    let came = tokio::time::timeout(connection.options.timeout, heard.next()).await;
    came.map_err(|error| told(error.into()))?;
    // Behind a leaf node there is another server too.
    let server = client.server_info();
    let of_many = server.cluster.is_some() || connection.options.domain.is_some() || !server.jetstream;
    let news = news.clone();
    tasks.spawn(async move {
        if of_many {
            // Another server may not know of the subscription yet, and have sent nothing.
            tokio::time::sleep(SPREADS).await;
            news.send_modify(|count| *count += 1);
        }
        loop {
            tokio::select! {
                reconnected = made.changed() => {
                    if reconnected.is_err() {
                        return;
                    }
                    news.send_modify(|count| *count += 1);
                    if of_many {
                        tokio::time::sleep(SPREADS).await;
                        news.send_modify(|count| *count += 1);
                    }
                }
                () = tokio::time::sleep(LOOKS_AGAIN), if of_many => news.send_modify(|count| *count += 1),
            }
        }
    });
    Ok(())
}

/// Follows a stream with a consumer.
async fn follow(
    connection: &Connection,
    stream: &Stream,
    subjects: Vec<String>,
    news: &Sender<u64>,
    tasks: &mut JoinSet<()>,
) -> Result<(), StoreError> {
    let client = connection.client().await?;
    let name = stream.cached_info().config.name.clone();
    let config = OrderedConfig {
        deliver_subject: client.new_inbox().to_string(),
        description: Some(format!("relay-mesh on {} watches", connection.options.machine)),
        filter_subjects: subjects,
        replay_policy: ReplayPolicy::Instant,
        headers_only: true,
        deliver_policy: DeliverPolicy::New,
        ..OrderedConfig::default()
    };
    let told = |error: Box<dyn std::error::Error + Send + Sync>| server_error("could not watch", &name)(error);
    let consumer = stream.create_consumer(config).await.map_err(|error| told(error.into()))?;
    let mut messages = consumer.messages().await.map_err(|error| told(error.into()))?;
    let news = news.clone();
    tasks.spawn(async move {
        while let Some(message) = messages.next().await {
            // Nothing is lost: the watcher reads everything stored.
            if let Err(error) = message {
                tracing::debug!(%error, "a watch was interrupted and goes on");
            }
            news.send_modify(|count| *count += 1);
        }
    });
    Ok(())
}

/// Subscriptions that end when this is dropped.
pub(crate) struct Listener {
    seen: Receiver<u64>,
    /// Aborted on drop, which ends their subscriptions and consumers.
    _tasks: JoinSet<()>,
}

/// Wakes at each announcement.
struct NatsWatch {
    seen: Receiver<u64>,
    _listening: Arc<Listener>,
}

#[async_trait]
impl Watch for NatsWatch {
    async fn changed(&mut self) -> Result<(), StoreError> {
        self.seen.changed().await.map_err(|_| {
            StoreError::server("could not go on watching", "the server", ServerTrouble::Other, "its streams ended")
        })
    }
}
