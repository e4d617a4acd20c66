//! Watches: a consumer of each stream that hands on whatever the server has kept, after it has kept it.
//! One that loses its connection goes on where it was.

use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy};
use async_nats::jetstream::stream::Stream;
use async_trait::async_trait;
use futures::StreamExt;
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::task::JoinSet;

use super::connection::Connection;
use super::subjects;
use super::trouble::trouble;
use crate::{Key, StoreError, Watch};

/// Watches logs and values at or under some keys, from now on.
pub(super) async fn watch(connection: &Connection, under: &[Key]) -> Result<Box<dyn Watch>, StoreError> {
    let options = &connection.options;
    let bucket = options.map_bucket();
    let (news, seen) = watch::channel(0_u64);
    let mut tasks = JoinSet::new();
    let logs = under.iter().flat_map(|key| subjects::logs_under(options, key)).collect();
    follow(connection, connection.logs().await?, logs, &news, &mut tasks).await?;
    let values = under.iter().flat_map(|key| subjects::values_under(&bucket, key)).collect();
    follow(connection, connection.map().await?, values, &news, &mut tasks).await?;
    Ok(Box::new(NatsWatch { seen, _tasks: tasks }))
}

/// Hands on that something came to a stream.
async fn follow(
    connection: &Connection,
    stream: &Stream,
    subjects: Vec<String>,
    news: &Sender<u64>,
    tasks: &mut JoinSet<()>,
) -> Result<(), StoreError> {
    let client = connection.jetstream().await?.client();
    let name = stream.cached_info().config.name.clone();
    let config = OrderedConfig {
        deliver_subject: client.new_inbox().to_string(),
        description: Some(format!("relay-mesh on {} watches", connection.options.host)),
        filter_subjects: subjects,
        replay_policy: ReplayPolicy::Instant,
        headers_only: true,
        deliver_policy: DeliverPolicy::New,
        ..OrderedConfig::default()
    };
    let told = |error: Box<dyn std::error::Error + Send + Sync>| trouble("could not watch", &name)(error);
    let consumer = stream.create_consumer(config).await.map_err(|error| told(error.into()))?;
    let mut messages = consumer.messages().await.map_err(|error| told(error.into()))?;
    let news = news.clone();
    tasks.spawn(async move {
        while let Some(message) = messages.next().await {
            // Whatever was missed is behind this too: a reader looks at everything that is there.
            if let Err(error) = message {
                tracing::debug!(%error, "a watch was interrupted and goes on");
            }
            news.send_modify(|count| *count += 1);
        }
    });
    Ok(())
}

/// Wakes whenever one of its consumers was given something.
struct NatsWatch {
    seen: Receiver<u64>,
    // Ended when it is dropped, and their consumers with them.
    _tasks: JoinSet<()>,
}

#[async_trait]
impl Watch for NatsWatch {
    async fn changed(&mut self) -> Result<(), StoreError> {
        self.seen.changed().await.map_err(|_| StoreError::Server {
            doing: "could not go on watching",
            what: "the server".to_owned(),
            source: std::io::Error::other("its streams ended"),
        })
    }
}
