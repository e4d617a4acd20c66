//! The sessions of clients with a handshake: each is a connection of the mesh.
//!
//! rmcp keeps them; this file gives each a name in the mesh, watches what is sent, tells the mesh when one
//! ends, and ends the quietest if there are too many.
//!
//! Few clients say that they leave. But most keep a stream open for messages of the server. A client whose
//! stream broke, and that opens no other and sends nothing more, has left: its agent counts as offline, so
//! that it gets its name back when it is started again. If a client never opened a stream, its calls are the
//! only sign of life: after ten quiet minutes it counts as away.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::request::Parts;

use futures::{Stream, StreamExt};
use mesh::Mesh;
use mesh::sessions::Sign;
use rmcp::model::{
    ClientJsonRpcMessage, GetExtensions, JsonRpcResponse, ProtocolVersion, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::WorkerTransport;
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, LocalSessionWorker, SessionConfig, SessionError,
};
use rmcp::transport::streamable_http_server::{SessionId, SessionManager};
use tokio::time::Instant;

use super::replay::{Replays, ResumeError};
use super::reply::Reply;
use crate::connection::Connection;
use crate::lease_tracker::LeaseTracker;
use crate::stdio::fresh_connection;
use crate::watched_transport::WatchedTransport;

/// Sessions, by the id that their clients send.
pub(super) struct Sessions {
    inner: LocalSessionManager,
    mesh: Arc<Mesh>,
    leases: LeaseTracker,
    most: usize,
    open: Arc<Mutex<OpenSessions>>,
    /// The answers that a client may still ask for.
    replays: Replays,
}

/// The sessions that are open. Behind a std mutex: nothing is awaited while it is held.
type OpenSessions = HashMap<SessionId, OpenSession>;

/// How long a client may have no stream and send nothing before it counts as gone.
const LEFT_AFTER: Duration = Duration::from_secs(60);

struct OpenSession {
    /// Its connection. Set when the session is created.
    connection: Connection,
    /// When its client last sent a message. Written by every message.
    heard: Instant,
    /// Number of its client's open streams. Written when one opens or breaks.
    streams: usize,
    /// Whether its client knows events without data. Written by the handshake.
    is_primed: bool,
}

impl Sessions {
    /// At most `most` sessions, each of which may be quiet for `idle`.
    pub(super) fn new(mesh: Arc<Mesh>, leases: LeaseTracker, idle: Duration, most: usize) -> Sessions {
        let mut config = SessionConfig::default();
        config.keep_alive = Some(idle);
        // rmcp keeps no answer for resumption: `Replays` does.
        config.sse_retry = None;
        config.completed_cache_ttl = Duration::ZERO;
        let mut inner = LocalSessionManager::default();
        inner.session_config = config;
        let replays = Replays::new(Arc::clone(&mesh));
        Sessions { inner, mesh, leases, most: most.max(1), open: Arc::default(), replays }
    }

    /// Why the client of a session cannot go on after this event, if it cannot. Whether the session is there, rmcp says.
    pub(super) fn refuses(&self, id: &str, last: &str) -> Option<ResumeError> {
        let id = SessionId::from(id);
        if self.open().contains_key(&id) { self.replays.look(&id, last).err() } else { None }
    }

    fn hear(&self, id: &SessionId) {
        if let Some(open) = self.open().get_mut(id) {
            open.heard = Instant::now();
        }
    }

    /// The longest quiet session, if there is no room for one more. One whose client holds a stream open is in use, and
    /// ends only if all others are too.
    fn one_too_many(&self) -> Option<SessionId> {
        let open = self.open();
        if open.len() < self.most {
            return None;
        }
        open.iter().min_by_key(|(_, open)| (open.streams > 0, open.heard)).map(|(id, _)| SessionId::clone(id))
    }

    /// Counts a stream of a session for as long as the returned value lives.
    async fn hold_open(&self, id: &SessionId) -> OpenStream {
        let first = match self.open().get_mut(id) {
            Some(open) => {
                open.streams += 1;
                (open.streams == 1).then(|| open.connection.clone())
            }
            None => None,
        };
        // Made before anything is awaited: the caller may be dropped there.
        let stream =
            OpenStream { id: SessionId::clone(id), open: Arc::clone(&self.open), mesh: Arc::clone(&self.mesh) };
        if let Some(connection) = first {
            show(&self.mesh, &connection, Sign::Stream).await;
        }
        stream
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, OpenSession>> {
        self.open.lock().expect("no holder of this lock panics")
    }
}

/// The HTTP response that will hold the answer to a message.
fn reply_of(message: &ClientJsonRpcMessage) -> Option<Reply> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    request.request.extensions().get::<Parts>()?.extensions.get().cloned()
}

/// The era that a handshake has agreed on.
fn negotiated(answer: &ServerJsonRpcMessage) -> Option<ProtocolVersion> {
    match answer {
        ServerJsonRpcMessage::Response(JsonRpcResponse { result: ServerResult::InitializeResult(result), .. }) => {
            Some(result.protocol_version.clone())
        }
        _ => None,
    }
}

/// A stream that a client holds open.
struct OpenStream {
    id: SessionId,
    open: Arc<Mutex<OpenSessions>>,
    mesh: Arc<Mesh>,
}

impl OpenStream {
    /// Does nothing. A closure that calls it owns the stream until then.
    fn keep_alive(&self) {}
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let connection = match self.open.lock().expect("no holder of this lock panics").get_mut(&self.id) {
            Some(open) => {
                open.streams -= 1;
                (open.streams == 0).then(|| open.connection.clone())
            }
            None => None,
        };
        if let (Some(connection), Ok(runtime)) = (connection, tokio::runtime::Handle::try_current()) {
            let (open, mesh, id) = (Arc::clone(&self.open), Arc::clone(&self.mesh), SessionId::clone(&self.id));
            runtime.spawn(async move {
                show(&mesh, &connection, Sign::Calls).await;
                // The client may have opened a stream meanwhile, and reported it before we reported the loss.
                if streams_of(&open, &id) > 0 {
                    return show(&mesh, &connection, Sign::Stream).await;
                }
                let found = tokio::select! {
                    () = connection.closing.cancelled() => Whereabouts::Settled,
                    found = whereabouts(&open, &id) => found,
                };
                match found {
                    Whereabouts::Left => forget(&mesh, &connection).await,
                    Whereabouts::Settled => {}
                }
            });
        }
    }
}

fn streams_of(open: &Mutex<OpenSessions>, id: &SessionId) -> usize {
    open.lock().expect("no holder of this lock panics").get(id).map_or(0, |open| open.streams)
}

/// Tells the mesh which sign of life a client shows. Only its presence depends on it.
async fn show(mesh: &Mesh, connection: &Connection, sign: Sign) {
    if let Err(error) = mesh.note_stream(&connection.id, sign).await {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "the mesh could not be told of a client's stream");
    }
}

/// What a client did after its last stream broke.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whereabouts {
    /// It has left: no stream, no call and no message for long enough.
    Left,
    /// It has a stream again, or its session has ended.
    Settled,
}

/// Waits until it is clear whether a client has left.
async fn whereabouts(open: &Mutex<OpenSessions>, id: &SessionId) -> Whereabouts {
    let look = || {
        let open = open.lock().expect("no holder of this lock panics");
        open.get(id).map(|open| (open.streams, open.heard, open.connection.ledger.is_quiet()))
    };
    let mut before = look();
    loop {
        tokio::time::sleep(LEFT_AFTER).await;
        let now = look();
        match (before, now) {
            (Some((0, heard, _)), Some((0, still, true))) if heard == still => return Whereabouts::Left,
            (_, Some((0, _, _))) => before = now,
            (_, Some(_) | None) => return Whereabouts::Settled,
        }
    }
}

async fn forget(mesh: &Mesh, connection: &Connection) {
    if let Err(error) = mesh.disconnect(&connection.id).await {
        let error: &dyn std::error::Error = &error;
        tracing::warn!(error, "the mesh could not be told that a client has left");
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = WatchedTransport<WorkerTransport<LocalSessionWorker>>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        while let Some(quiet) = self.one_too_many() {
            tracing::info!("a session ends to make room for another");
            self.close_session(&quiet).await?;
        }
        let (id, transport) = self.inner.create_session().await?;
        // Not the session's own id, which is as good as a password: connection names are listed.
        let connection = Connection::new(fresh_connection(&self.mesh), self.leases.clone());
        self.open().insert(
            SessionId::clone(&id),
            OpenSession { connection: connection.clone(), heard: Instant::now(), streams: 0, is_primed: false },
        );
        Ok((id, WatchedTransport::new(transport, connection, self.leases.clone())))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let closed = self.open().remove(id);
        self.replays.forget(id);
        if let Some(OpenSession { connection, .. }) = closed {
            connection.closing.cancel();
            connection.ledger.close();
            forget(&self.mesh, &connection).await;
        }
        self.inner.close_session(id).await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let answer = self.inner.initialize_session(id, message).await?;
        if let Some(open) = self.open().get_mut(id) {
            open.is_primed = negotiated(&answer).is_some_and(|era| era >= ProtocolVersion::V_2025_11_25);
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.hear(id);
        let reply = reply_of(&message);
        let is_primed = self.open().get(id).is_some_and(|open| open.is_primed);
        let answer = self.inner.create_stream(id, message).await?;
        Ok(self.replays.keep(id, answer, reply, is_primed))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.hear(id);
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.hear(id);
        let stream = self.inner.create_standalone_stream(id).await?;
        let holds_open = self.hold_open(id).await;
        // Its events have no ids: a client that opens it again is given them anyway.
        Ok(stream.map(move |event| {
            holds_open.keep_alive();
            let mut unnamed = event;
            unnamed.event_id = None;
            unnamed
        }))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.hear(id);
        // The request was looked at before, and refused with the reason. If the event was dropped since, the stream is
        // empty.
        self.replays.resume(id, &last_event_id).map_err(|_| SessionError::InvalidEventId.into())
    }
}
