//! Checks the servers step by step, for `doctor --store`. Creates streams that are missing if the login may.

use std::time::Duration;

use store::{Expect, Key, Position, StoreError, SwapError};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::options::NatsOptions;
use crate::stream_check::{StreamWarning, warnings};
use crate::{logs, values};

/// The result of one step. Steps that depend on one that failed are left out.
#[derive(Debug)]
pub enum ServerCheck {
    /// A server was reached, and accepted the login.
    Reached {
        /// Its name and version.
        server: String,
        /// How long the connection took.
        took: Duration,
        /// Whether the connection uses TLS.
        encrypted: bool,
        /// Whether JetStream is enabled.
        jetstream: bool,
    },
    /// No server could be reached.
    Unreached(StoreError),
    /// The most bytes that a message may have there.
    Payload {
        /// The server's `max_payload`.
        most: usize,
    },
    /// A stream can be used.
    Stream(StreamReport),
    /// A stream is missing and could not be created, or belongs to another program.
    NoStream {
        name: String,
        /// Why it cannot be used.
        error: StoreError,
    },
    /// A test entry was stored, read back and removed.
    Kept {
        /// How long that took.
        took: Duration,
        /// The server's clock, in milliseconds since 1970.
        server_clock: u64,
    },
    /// The test entry could not be stored.
    NotKept(StoreError),
}

/// A stream and how full it is.
#[derive(Clone, Debug)]
pub struct StreamReport {
    pub name: String,
    /// How many messages it has.
    pub messages: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// The most bytes it takes; none if only the disk limits it.
    pub most_bytes: Option<u64>,
    /// The most messages it takes; none without a limit.
    pub most_messages: Option<u64>,
    /// How many servers have a copy of each message.
    pub replicas: usize,
    /// How it is worse than a stream that we create.
    pub warnings: Vec<StreamWarning>,
}

/// Runs all steps.
pub(crate) async fn examine(connection: &Connection, nonce: &str) -> Vec<ServerCheck> {
    let mut seen = Vec::new();
    let began = Instant::now();
    let context = match connection.jetstream().await {
        Ok(context) => context,
        Err(error) => return vec![ServerCheck::Unreached(error)],
    };
    let server = context.client().server_info();
    seen.push(ServerCheck::Reached {
        server: format!("{} (nats-server {})", server.server_name, server.version),
        took: began.elapsed(),
        encrypted: server.tls_required || connection.options.servers.iter().all(|server| server.starts_with("tls://")),
        // With a domain, another server has JetStream.
        jetstream: server.jetstream || connection.options.domain.is_some(),
    });
    seen.push(ServerCheck::Payload { most: server.max_payload });
    let mut all_there = true;
    let names = [connection.options.log_stream(), format!("KV_{}", connection.options.map_bucket())];
    for (name, stream) in names.into_iter().zip([connection.logs().await, connection.map().await]) {
        let found = match stream {
            Ok(stream) => stream
                .get_info()
                .await
                .map_err(|error| crate::errors::server_error("could not look at the stream", &name)(error.into())),
            Err(error) => Err(error),
        };
        match found {
            Ok(info) => seen.push(ServerCheck::Stream(StreamReport::of(&connection.options, name, &info))),
            Err(error) => {
                all_there = false;
                seen.push(ServerCheck::NoStream { name, error });
            }
        }
    }
    if all_there {
        let began = Instant::now();
        seen.push(match keep(connection, nonce).await {
            Ok(server_clock) => ServerCheck::Kept { took: began.elapsed(), server_clock },
            Err(error) => ServerCheck::NotKept(error),
        });
    }
    seen
}

impl StreamReport {
    fn of(options: &NatsOptions, name: String, info: &async_nats::jetstream::stream::Info) -> StreamReport {
        let config = &info.config;
        StreamReport {
            name,
            messages: info.state.messages,
            bytes: info.state.bytes,
            most_bytes: u64::try_from(config.max_bytes).ok().filter(|most| *most > 0),
            most_messages: u64::try_from(config.max_messages).ok().filter(|most| *most > 0),
            replicas: config.num_replicas,
            warnings: warnings(options, config),
        }
    }
}

/// Writes an entry and a value, reads them back and removes them. Returns the server's time.
async fn keep(connection: &Connection, nonce: &str) -> Result<u64, StoreError> {
    let name = format!("_doctor/{}", connection.options.machine);
    let key: Key =
        name.parse().map_err(|error: store::InvalidKey| StoreError::Damaged { what: name, why: error.to_string() })?;
    let entry = format!("{{\"doctor\":\"{nonce}\"}}").into_bytes();
    let end = match logs::append(connection, &key, std::slice::from_ref(&entry), Expect::Any).await {
        Ok(end) => end,
        Err(store::AppendError::Store(error)) => return Err(error),
        Err(store::AppendError::Moved) => Position::START,
    };
    let (message, read) = logs::newest(connection, &key).await?;
    logs::retire(connection, &key, end).await?;
    let revision = values::get(connection, &key).await?.map(|value| value.revision);
    let stored = |outcome: Result<Option<store::Revision>, SwapError>| match outcome {
        Ok(revision) => Ok(revision),
        Err(SwapError::Store(error)) => Err(error),
        // Another `doctor` runs on this machine, and tests the same.
        Err(SwapError::Changed { current }) => Ok(current),
    };
    let revision = stored(values::swap(connection, &key, revision, Some(&entry)).await)?;
    stored(values::swap(connection, &key, revision, None).await)?;
    if read == entry {
        Ok(message)
    } else {
        let why = "the entry read back differs from the one written".to_owned();
        Err(StoreError::Damaged { what: key.to_string(), why })
    }
}
