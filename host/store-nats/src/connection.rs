//! One connection and its streams, opened at first use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, StorageType, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{AuthError, Client, ConnectOptions, Event};
use store::{IndexRule, Ownership, ServerTrouble, StoreError, StoreIdentity};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OnceCell, broadcast, watch};
use tokio::time::Instant;

use crate::errors::{again_if_late, server_error};
use crate::login::{self, Credentials};
use crate::options::{NatsAuth, NatsOptions};
use crate::ownership::OwnerCache;
use crate::stream_cell::StreamCell;
use crate::stream_check::{self, StreamMisfit};
use crate::{children, clock, direct, reading, subjects, watching};

/// The first server version that can check the end of a log that several machines write.
const OLDEST: (u64, u64) = (2, 12);
/// How long the server recognises an append that is sent again.
const KNOWN_AGAIN: Duration = Duration::from_secs(120);
/// Poll interval for a broken connection to come back.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How many refusals are buffered for the requests that wait for an answer.
const REFUSALS: usize = 64;
/// How long servers that have not told their time are not asked again, unless the connection is made anew.
const ASKED_AGAIN: Duration = Duration::from_secs(600);
/// A hold that is not renewed expires after this time.
pub(crate) const HOLD_LASTS: Duration = Duration::from_secs(15);

/// A connection, opened at its first use, which reconnects by itself.
pub(crate) struct Connection {
    pub(crate) options: NatsOptions,
    /// The ownership rule, if there is one.
    pub(crate) homes: Option<Arc<dyn Ownership>>,
    /// What the catalogs of logs are made of, if there is such a rule.
    pub(crate) rule: Option<Arc<dyn IndexRule>>,
    pub(crate) known: OwnerCache,
    pub(crate) answers: direct::AnswersCache,
    pub(crate) watched: watching::Listeners,
    pub(crate) children: children::ChildrenCache,
    pub(crate) ends: reading::KnownEnds,
    /// Counts connections: a watch wakes after each, because it may have missed something before.
    pub(crate) made: Arc<watch::Sender<u64>>,
    /// Since when the connection is broken. Written by the client's event callback.
    lost: Arc<Mutex<Option<Instant>>>,
    /// The server's refusals, for the requests that wait for an answer.
    refused: broadcast::Sender<String>,
    reached: OnceCell<OpenConnection>,
    /// When the servers were last asked for their time, if they have not told it. Also written by the client's event
    /// callback.
    asked: Arc<Mutex<Option<Instant>>>,
    /// How often the connection has broken. Written by the client's event callback.
    breaks: Arc<AtomicU64>,
    logs: StreamCell,
    map: StreamCell,
    holds: StreamCell,
}

impl Connection {
    pub(crate) fn new(
        options: NatsOptions,
        homes: Option<Arc<dyn Ownership>>,
        rule: Option<Arc<dyn IndexRule>>,
    ) -> Connection {
        Connection {
            options,
            homes,
            rule,
            known: OwnerCache::default(),
            answers: direct::AnswersCache::default(),
            watched: watching::Listeners::default(),
            children: children::ChildrenCache::default(),
            ends: reading::KnownEnds::default(),
            asked: Arc::default(),
            made: Arc::new(watch::Sender::new(0)),
            lost: Arc::default(),
            refused: broadcast::Sender::new(REFUSALS),
            reached: OnceCell::new(),
            breaks: Arc::default(),
            logs: StreamCell::default(),
            map: StreamCell::default(),
            holds: StreamCell::default(),
        }
    }

    pub(crate) async fn jetstream(&self) -> Result<&Context, StoreError> {
        Ok(&self.reached().await?.jetstream)
    }

    pub(crate) async fn client(&self) -> Result<&Client, StoreError> {
        Ok(&self.reached().await?.client)
    }

    async fn reached(&self) -> Result<&OpenConnection, StoreError> {
        let reached = self.reached.get_or_try_init(|| self.connect()).await?;
        if reached.client.connection_state() == State::Disconnected {
            self.is_up(&reached.client).await?;
        }
        self.ask_for_time(&reached.jetstream);
        Ok(reached)
    }

    /// Asks for the servers' time if the timekeeper wants it. Nobody waits for the answer.
    fn ask_for_time(&self, jetstream: &Context) {
        let Some(timekeeper) = self.options.timekeeper.as_ref().filter(|timekeeper| timekeeper.asks()) else { return };
        {
            let mut asked = self.asked.lock().expect("no holder of this lock panics");
            if asked.is_some_and(|at| at.elapsed() < ASKED_AGAIN) {
                return;
            }
            *asked = Some(Instant::now());
        }
        let (timekeeper, jetstream) = (Arc::clone(timekeeper), jetstream.clone());
        let (asked, stream) = (Arc::clone(&self.asked), self.options.log_stream());
        tokio::spawn(async move {
            clock::tell(timekeeper.as_ref(), &jetstream, &stream).await;
            if !timekeeper.asks() {
                *asked.lock().expect("no holder of this lock panics") = None;
            }
        });
    }

    /// How often the connection has broken.
    pub(crate) fn breaks(&self) -> u64 {
        self.breaks.load(Ordering::Relaxed)
    }

    /// Waits for the answer to a request at a subject that ends with `subject`. A server does not answer a forbidden
    /// request, but reports it to the connection: then this returns the server's words.
    pub(crate) async fn unless_refused<T>(&self, subject: &str, asked: impl Future<Output = T>) -> Result<T, String> {
        let mut refused = self.refused.subscribe();
        let refusal = async {
            loop {
                match refused.recv().await {
                    Ok(why) if why.contains(&format!("{subject}\"")) => return why,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    // No further refusals can come: wait only for the answer.
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        tokio::select! {
            answer = asked => Ok(answer),
            why = refusal => Err(why),
        }
    }

    /// Waits half the timeout for a broken connection to come back, counted from when it broke, so that later callers
    /// fail at once.
    async fn is_up(&self, client: &Client) -> Result<(), StoreError> {
        let up = async {
            while client.connection_state() == State::Disconnected {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let since = *self.lost.lock().expect("no holder of this lock panics");
        let until = since.unwrap_or_else(Instant::now) + self.options.timeout / 2;
        tokio::time::timeout_at(until, up).await.map_err(|_| {
            let servers = self.options.servers.join(", ");
            StoreError::server("could not reach", servers, ServerTrouble::OutOfReach, "the connection is broken")
        })
    }

    /// The stream of logs.
    pub(crate) async fn logs(&self) -> Result<Arc<Stream>, StoreError> {
        let config = || Config {
            name: self.options.log_stream(),
            description: Some("relay-mesh: messages, receipts and other logs".to_owned()),
            subjects: vec![subjects::all_logs(&self.options)],
            max_age: self.options.kept_for,
            // A full stream refuses new messages; it never drops unread ones.
            discard: DiscardPolicy::New,
            republish: Some(self.news()),
            ..self.common()
        };
        self.jetstream().await?;
        self.opened(&self.logs, config).await
    }

    /// The bucket of values.
    pub(crate) async fn map(&self) -> Result<Arc<Stream>, StoreError> {
        let bucket = self.options.map_bucket();
        let config = || Config {
            description: Some("relay-mesh: agents, reservations, commands and other values".to_owned()),
            republish: Some(self.news()),
            ..self.bucket(&bucket)
        };
        self.jetstream().await?;
        self.opened(&self.map, config).await
    }

    /// The bucket of holds. A hold that is not renewed expires.
    pub(crate) async fn holds(&self) -> Result<Arc<Stream>, StoreError> {
        let bucket = self.options.hold_bucket();
        let config = || Config {
            description: Some("relay-mesh: held keys".to_owned()),
            max_age: HOLD_LASTS,
            duplicate_window: HOLD_LASTS,
            ..self.bucket(&bucket)
        };
        self.opened(&self.holds, config).await
    }

    async fn opened(&self, cell: &StreamCell, config: impl Fn() -> Config + Send) -> Result<Arc<Stream>, StoreError> {
        let breaks = self.breaks();
        cell.opened(breaks, async || self.stream(config()).await).await
    }

    /// Opens the streams anew at their next use: one of them is gone, though the connection stands.
    pub(crate) fn reopen(&self) {
        self.breaks.fetch_add(1, Ordering::Relaxed);
    }

    /// The streams that this process has opened, with the times at which they were made.
    pub(crate) fn identities(&self) -> Vec<StoreIdentity> {
        let mut servers = self.options.servers.clone();
        servers.sort();
        let servers = servers.join(",");
        let opened = [&self.logs, &self.map].into_iter().filter_map(StreamCell::last);
        let identity = |stream: Arc<Stream>| {
            let info = stream.cached_info();
            let made = u64::try_from(info.created.unix_timestamp_nanos() / 1_000_000).unwrap_or_default();
            StoreIdentity { place: format!("{servers} {}", info.config.name), made }
        };
        opened.map(identity).collect()
    }

    fn bucket(&self, bucket: &str) -> Config {
        Config {
            name: format!("KV_{bucket}"),
            subjects: vec![format!("$KV.{bucket}.>")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            // With rollups, a login that may write one value could remove all others.
            allow_rollup: false,
            allow_message_ttl: true,
            ..self.common()
        }
    }

    /// The server announces each stored message by its subject, for the watches.
    fn news(&self) -> Republish {
        Republish { source: ">".to_owned(), destination: subjects::news(&self.options), headers_only: true }
    }

    fn common(&self) -> Config {
        Config {
            storage: StorageType::File,
            num_replicas: self.options.replicas,
            duplicate_window: KNOWN_AGAIN,
            allow_direct: true,
            max_bytes: -1,
            max_messages: -1,
            ..Config::default()
        }
    }

    /// Opens a stream, or creates it with this configuration. One that an operator created may have other limits.
    async fn stream(&self, config: Config) -> Result<Stream, StoreError> {
        let name = config.name.clone();
        let wanted = config.subjects.clone();
        let OpenConnection { jetstream, client } = self.reached().await?;
        let asked = again_if_late(|| jetstream.get_or_create_stream(config.clone()));
        let made = self.unless_refused(&format!(".{name}"), asked).await;
        let made = made.map_err(|why| server_error("could not open the stream", &name)(why.into()))?;
        let stream = made.map_err(|error| {
            let failure = server_error("could not open the stream", &name)(error.into());
            // "No responders" may be temporary, unless this server has no JetStream at all.
            let keeps = client.server_info().jetstream || self.options.domain.is_some();
            match failure {
                StoreError::Server { doing, what, trouble: ServerTrouble::NoLeader, source } if !keeps => {
                    StoreError::Server { doing, what, trouble: ServerTrouble::Unsupported, source }
                }
                failure => failure,
            }
        })?;
        direct::seen(self, &stream.cached_info().config);
        match stream_check::check(&stream.cached_info().config, &wanted) {
            Ok(()) => Ok(stream),
            Err(misfit) => {
                let (trouble, why) = match misfit {
                    StreamMisfit::SomebodyElses(why) => (ServerTrouble::NotOurs, why),
                    StreamMisfit::KeepsNothing(why) => (ServerTrouble::Unusable, why),
                };
                Err(StoreError::server("could not use the stream", name, trouble, why))
            }
        }
    }

    async fn connect(&self) -> Result<OpenConnection, StoreError> {
        let options = &self.options;
        let servers = options.servers.join(", ");
        let told =
            |error: Box<dyn std::error::Error + Send + Sync>| server_error("could not connect to", &servers)(error);
        options.check().map_err(|error| told(error.into()))?;
        let mut connect = match &options.auth {
            NatsAuth::Nobody => ConnectOptions::new(),
            NatsAuth::Password { user, password } => {
                ConnectOptions::with_user_and_password(user.clone(), password.clone())
            }
            NatsAuth::Token(token) => ConnectOptions::with_token(token.clone()),
            NatsAuth::NKey(seed) => ConnectOptions::with_nkey(seed.clone()),
            NatsAuth::Credentials(file) => {
                Credentials::read(file)?;
                let file = file.clone();
                ConnectOptions::with_auth_callback(move |asked| {
                    let answer = Credentials::read(&file).map_err(AuthError::new);
                    async move { answer?.answer(&asked).map_err(AuthError::new) }
                })
            }
        };
        let (made, refused, lost) = (Arc::clone(&self.made), self.refused.clone(), Arc::clone(&self.lost));
        let (breaks, asked) = (Arc::clone(&self.breaks), Arc::clone(&self.asked));
        connect = connect
            .event_callback(move |event| {
                let (made, refused) = (Arc::clone(&made), refused.clone());
                if let Event::Disconnected = event {
                    breaks.fetch_add(1, Ordering::Relaxed);
                    // The first request after that asks for the time, if it is wanted.
                    *asked.lock().expect("no holder of this lock panics") = None;
                }
                if let Event::Connected | Event::Disconnected = event {
                    let is_lost = matches!(event, Event::Disconnected).then(Instant::now);
                    *lost.lock().expect("no holder of this lock panics") = is_lost;
                }
                async move {
                    match event {
                        // The watches may have missed announcements.
                        Event::Connected | Event::SlowConsumer(_) => made.send_modify(|count| *count += 1),
                        Event::Disconnected | Event::LameDuckMode | Event::Draining | Event::Closed => {}
                        Event::ServerError(error) => {
                            tracing::warn!(%error, "the server objects");
                            // An error means that no request is waiting.
                            let _waiting = refused.send(error.to_string());
                        }
                        Event::ClientError(error) => tracing::debug!(%error, "the connection is in trouble"),
                    }
                }
            })
            .name(format!("relay-mesh on {}", options.machine))
            // A cut cable shows only after two pings without an answer.
            .ping_interval(options.timeout / 2)
            .connection_timeout(options.timeout)
            .request_timeout(Some(options.timeout));
        if let Some(file) = &options.root_certificates {
            connect = connect.add_root_certificates(file.clone());
        }
        if let Some((certificate, key)) = &options.client_certificate {
            connect = connect.add_client_certificate(certificate.clone(), key.clone());
        }
        let client = connect.connect(options.servers.clone()).await.map_err(|error| match &options.auth {
            NatsAuth::Credentials(file) => login::refused(file, &servers, error.into()),
            NatsAuth::Nobody | NatsAuth::Password { .. } | NatsAuth::Token(_) | NatsAuth::NKey(_) => told(error.into()),
        })?;
        let version = client.server_info().version;
        if !is_new_enough(&version) {
            let (major, minor) = OLDEST;
            let why = format!("the server has version {version}, and at least {major}.{minor} is needed");
            return Err(StoreError::server("could not use", servers, ServerTrouble::Unsupported, why));
        }
        let mut builder = jetstream::context::ContextBuilder::new();
        builder = builder.timeout(options.timeout).ack_timeout(options.timeout);
        let jetstream = match &options.domain {
            Some(domain) => builder.domain(domain.clone()).build(client.clone()),
            None => builder.build(client.clone()),
        };
        if let Some(timekeeper) = &options.timekeeper {
            let stream = options.log_stream();
            let told = clock::tell(timekeeper.as_ref(), &jetstream, &stream);
            if let Err(why) = self.unless_refused(&format!(".{stream}"), told).await {
                tracing::debug!(%why, "the servers' time is not known");
            }
            let waits = timekeeper.asks().then(Instant::now);
            *self.asked.lock().expect("no holder of this lock panics") = waits;
        }
        Ok(OpenConnection { jetstream, client })
    }
}

/// An open connection. The client stands beside the context because the context hands out only copies, and a copy
/// costs more than the rest of a request.
struct OpenConnection {
    jetstream: Context,
    client: Client,
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().unwrap_or_default());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) >= OLDEST
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn an_old_server_is_known_by_its_version() {
        for (version, fits) in
            [("2.15.1", true), ("2.12.0-RC.1", true), ("3.0.0", true), ("2.9.25", false), ("", false)]
        {
            assert_eq!(is_new_enough(version), fits, "{version}");
        }
    }
}
