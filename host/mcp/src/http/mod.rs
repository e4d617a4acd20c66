//! MCP over streamable HTTP: one server for every client of the machine.
//!
//! Protocol eras with a handshake have sessions, and a session is a connection of the mesh; 2026-07-28 has
//! none, and each of its calls stands alone. Every request is first checked for its origin (see `admission.rs`);
//! every response is watched until it is flushed (see `reply` and `flush`).

mod admission;
mod body;
mod cors;
mod era;
mod flush;
pub mod identity;
mod kept_stream;
mod replay;
pub(crate) mod reply;
mod sessions;
mod settings;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use mesh::messages::LONGEST_BODY;
use rmcp::model::ErrorCode;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::settings::{BindError, HttpSettings, Reach};

use self::admission::Admission;
use self::flush::{FlushingListener, HttpConnection};
use self::replay::ResumeError;
use self::reply::{CountedBody, PendingResponse, WatchedBody};
use self::sessions::Sessions;
use crate::lease_tracker::LeaseTracker;
use crate::server::{self, Server, Service};

/// The path that clients post to.
const MCP_PATH: &str = "/mcp";
/// The longest request: JSON writes a byte of text in at most six.
const LONGEST_REQUEST: usize = 6 * LONGEST_BODY + 64 * 1024;
/// How long open responses may take to end once the server is told to stop.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(3);

/// A bound port that is not served yet.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    settings: HttpSettings,
    pages: Router,
}

/// Why serving ended before it was stopped.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP server failed")]
pub struct ServeError(#[from] std::io::Error);

impl Listener {
    /// Binds the port. Clients that connect from now on wait until it is served.
    pub async fn bind(settings: HttpSettings) -> Result<Listener, BindError> {
        settings.check()?;
        let address = settings.listen;
        let listener = TcpListener::bind(address).await.map_err(|source| BindError::of(address, source))?;
        let address = listener.local_addr().map_err(|source| BindError::of(address, source))?;
        Ok(Listener { listener, address, settings, pages: Router::new() })
    }

    /// Answers further paths, for browsers. A request gets there only if it names this server as its host, and if it comes
    /// from a page, from one of this server; who asks is for `pages` to find out.
    #[must_use]
    pub fn with_pages(self, pages: Router) -> Listener {
        Listener { pages, ..self }
    }

    /// The bound address; if port 0 was asked for, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients on this machine.
    pub fn url(&self) -> String {
        format!("http://{}{MCP_PATH}", self.address)
    }

    /// Serves until `stop` is cancelled.
    pub async fn serve(self, service: impl Into<Service>, stop: CancellationToken) -> Result<(), ServeError> {
        let service = service.into();
        let leases = LeaseTracker::new(Arc::clone(&service.mesh));
        let router = router(service, &leases, &self.settings, self.pages, stop.child_token());
        let listener = FlushingListener::new(self.listener, leases.clone(), self.settings.timeout);
        let asked = stop.clone();
        let serving = axum::serve(listener, router.into_make_service_with_connect_info::<HttpConnection>())
            .with_graceful_shutdown(async move { asked.cancelled().await });
        let shutdown_grace = async {
            stop.cancelled().await;
            tokio::time::sleep(SHUTDOWN_GRACE).await;
        };
        let outcome = tokio::select! {
            outcome = serving => outcome,
            () = shutdown_grace => {
                tracing::info!("some responses were still open and were cut off");
                Ok(())
            }
        };
        leases.finish().await;
        Ok(outcome?)
    }
}

#[derive(Clone)]
struct AppState {
    admission: Arc<Admission>,
    leases: LeaseTracker,
    service: StreamableHttpService<Server, Sessions>,
    sessions: Arc<Sessions>,
    /// How long the body of a request may take.
    timeout: Duration,
    /// The secret by which this server proves whose it is.
    identity: Option<Arc<str>>,
}

fn router(
    served: Service,
    leases: &LeaseTracker,
    settings: &HttpSettings,
    pages: Router,
    stop: CancellationToken,
) -> Router {
    let mesh = Arc::clone(&served.mesh);
    let server = Server::new(served, leases.clone(), server::origin_of_http(), settings.profile);
    let sessions = Arc::new(Sessions::new(mesh, leases.clone(), settings.idle, settings.most_sessions));
    // The admission has checked Host and Origin already. JSON rather than events if one message is the
    // whole answer. The streams of sessions begin with an event of ours, which names them (see `replay`).
    let mut config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_sse_retry(None)
        .with_max_request_body_bytes(LONGEST_REQUEST);
    config.cancellation_token = stop;
    let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::clone(&sessions), config);
    let state = AppState {
        admission: Arc::new(Admission::new(settings)),
        leases: leases.clone(),
        service,
        sessions,
        timeout: settings.timeout,
        identity: settings.identity.as_deref().map(Arc::from),
    };
    Router::new()
        .route(MCP_PATH, any(mcp))
        .route("/healthz", get(healthz))
        .route("/identity/{nonce}", get(prove_identity))
        .fallback(elsewhere)
        .with_state(state.clone())
        .merge(pages.layer(axum::middleware::from_fn_with_state(state, own_pages_only)))
        .layer(axum::middleware::from_fn(counted))
}

/// Tells the connection when a request's head has come, and when its response is over.
async fn counted(request: Request, next: Next) -> Response {
    let connection = request.extensions().get::<ConnectInfo<HttpConnection>>();
    let open = connection.map(|ConnectInfo(connection)| connection.begin());
    next.run(request).await.map(|body| Body::new(CountedBody::new(body, open)))
}

/// Lets through what this server's own page asks for. A page that the user allows to call may not act as the user.
async fn own_pages_only(State(state): State<AppState>, request: Request, next: Next) -> Response {
    match state.admission.comes_from_own_page(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(rejection) => rejection.into_response(),
    }
}

async fn mcp(State(state): State<AppState>, request: Request) -> Response {
    // A browser asks without the token whether its page may send one.
    if let Some(allowed) = cors::preflight(&state.admission, &request) {
        return allowed;
    }
    if let Err(rejection) = state.admission.admit(request.headers()) {
        return rejection.into_response();
    }
    let page = cors::page(&state.admission, request.headers());
    cors::readable_by(page, answer(state, request).await)
}

async fn answer(state: AppState, mut request: Request) -> Response {
    let connection =
        request.extensions().get::<ConnectInfo<HttpConnection>>().map(|ConnectInfo(connection)| connection.clone());
    let ends_session = request.method() == Method::DELETE;
    if let Some(refusal) = refuses_to_resume(&state.sessions, &request) {
        return refused(ErrorCode::INVALID_PARAMS, &refusal.to_string());
    }
    let response = PendingResponse::new(state.leases.clone(), connection);
    request.extensions_mut().insert(response.reply());
    let claims_json = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.to_str().is_ok_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("application/json"))
    });
    let (head, body) = request.into_parts();
    let body = match body::whole(body, LONGEST_REQUEST, state.timeout).await {
        Ok(body) => body,
        Err(told) => return told,
    };
    if let Some(refusal) = era::refusal(&head.headers, &body) {
        return json(StatusCode::NOT_FOUND, refusal);
    }
    let request = Request::from_parts(head, Body::from(body));
    let (head, body) = state.service.handle(request).await.into_parts();
    match head.status {
        StatusCode::OK => Response::from_parts(head, Body::new(WatchedBody::new(body, response))),
        // rmcp answers 202 although the session has ended, and some clients complain about anything but 204.
        StatusCode::ACCEPTED if ends_session => StatusCode::NO_CONTENT.into_response(),
        // rmcp answers an invalid body with an unsupported media type; it is malformed.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if claims_json => malformed(),
        _ => Response::from_parts(head, Body::new(body)),
    }
}

/// Why a client that asks for the rest of a stream does not get it. rmcp would answer with an empty stream, as if nothing
/// had been missed.
fn refuses_to_resume(sessions: &Sessions, request: &Request) -> Option<ResumeError> {
    let word = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let last = word("last-event-id").filter(|_| request.method() == Method::GET)?;
    sessions.refuses(word("mcp-session-id")?, last)
}

/// The answer to a body that is not a JSON-RPC message.
fn malformed() -> Response {
    refused(ErrorCode::PARSE_ERROR, "the body is not a JSON-RPC message")
}

fn refused(code: ErrorCode, message: &str) -> Response {
    let error = serde_json::json!({"code": code.0, "message": message});
    json(StatusCode::BAD_REQUEST, serde_json::json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string())
}

/// Health check for everyone who can reach the port. It reveals nothing about agents.
async fn healthz(State(state): State<AppState>, request: Request) -> Response {
    if let Err(rejection) = state.admission.comes_from_here(request.headers()) {
        return rejection.into_response();
    }
    json(StatusCode::OK, format!(r#"{{"name":"relay-mesh","version":"{}"}}"#, env!("CARGO_PKG_VERSION")))
}

/// Proves to everyone who can reach the port whose server this is. It reveals nothing about the token.
async fn prove_identity(State(state): State<AppState>, Path(nonce): Path<String>, request: Request) -> Response {
    if let Err(rejection) = state.admission.comes_from_here(request.headers()) {
        return rejection.into_response();
    }
    let connection = request.extensions().get::<ConnectInfo<HttpConnection>>();
    let at = connection.and_then(|ConnectInfo(connection)| connection.reached_at());
    let proof = state.identity.as_deref().zip(at).and_then(|(secret, at)| identity::proof(secret, at, &nonce));
    match proof {
        Some(proof) => json(
            StatusCode::OK,
            format!(r#"{{"name":"relay-mesh","version":"{}","proof":"{proof}"}}"#, env!("CARGO_PKG_VERSION")),
        ),
        None => (StatusCode::NOT_FOUND, "a nonce has 16 to 128 letters and digits\n").into_response(),
    }
}

async fn elsewhere(State(state): State<AppState>, request: Request) -> Response {
    match state.admission.comes_from_here(request.headers()) {
        Ok(()) => (StatusCode::NOT_FOUND, format!("nothing is here; MCP is at {MCP_PATH}\n")).into_response(),
        Err(rejection) => rejection.into_response(),
    }
}

fn json(status: StatusCode, body: String) -> Response {
    let mut response = (status, body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
