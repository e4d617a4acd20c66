//! MCP over streamable HTTP: one server for every client of the machine.
//!
//! The eras with a handshake have sessions, and a session is a connection of the mesh; 2026-07-28 has
//! none, and each of its calls stands for itself. Whatever comes is first checked for where it comes
//! from (see `guard`); what goes out is watched until it is flushed (see `reply` and `flush`).

mod flush;
mod guard;
pub(crate) mod reply;
mod sessions;
mod settings;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use mesh::Mesh;
use mesh::message::LONGEST_BODY;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::settings::{BindError, HttpSettings, Reach};

use self::flush::{Conversation, FlushingListener};
use self::guard::Guard;
use self::reply::{Delivering, Expected};
use self::sessions::Sessions;
use crate::keeper::Keeper;
use crate::server::{self, Server};

/// Where clients post.
const PATH: &str = "/mcp";
/// JSON writes a byte of text in at most six.
const LONGEST_REQUEST: usize = 6 * LONGEST_BODY + 64 * 1024;
/// How long open responses may take to end once the server is told to stop.
const FAREWELL: Duration = Duration::from_secs(3);

/// A port that is bound, and not served yet.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
    settings: HttpSettings,
}

/// Why serving ended before it was asked to.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP server broke off")]
pub struct ServeError(#[from] std::io::Error);

impl Listener {
    /// Binds the port. Whoever connects from now on waits until it is served.
    pub async fn bind(settings: HttpSettings) -> Result<Listener, BindError> {
        settings.check()?;
        let address = settings.listen;
        let listener = TcpListener::bind(address).await.map_err(|source| BindError::of(address, source))?;
        let address = listener.local_addr().map_err(|source| BindError::of(address, source))?;
        Ok(Listener { listener, address, settings })
    }

    /// The address that it is bound to; with the port that the system chose, where none was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients on this machine.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Serves until `stop` is cancelled.
    pub async fn serve(self, mesh: Arc<Mesh>, stop: CancellationToken) -> Result<(), ServeError> {
        let keeper = Keeper::new(Arc::clone(&mesh));
        let router = router(&mesh, &keeper, &self.settings, stop.child_token());
        let listener = FlushingListener::new(self.listener, keeper.clone());
        let asked = stop.clone();
        let serving = axum::serve(listener, router.into_make_service_with_connect_info::<Conversation>())
            .with_graceful_shutdown(async move { asked.cancelled().await });
        let farewell = async {
            stop.cancelled().await;
            tokio::time::sleep(FAREWELL).await;
        };
        let outcome = tokio::select! {
            outcome = serving => outcome,
            () = farewell => {
                tracing::info!("some responses were still open and are broken off");
                Ok(())
            }
        };
        keeper.finish().await;
        Ok(outcome?)
    }
}

/// What every request needs.
#[derive(Clone)]
struct Desk {
    guard: Arc<Guard>,
    keeper: Keeper,
    service: StreamableHttpService<Server, Sessions>,
}

fn router(mesh: &Arc<Mesh>, keeper: &Keeper, settings: &HttpSettings, stop: CancellationToken) -> Router {
    let server = Server::new(Arc::clone(mesh), keeper.clone(), server::shared(), settings.profile);
    let sessions = Arc::new(Sessions::new(Arc::clone(mesh), keeper.clone(), settings.idle, settings.most_sessions));
    // Our guard has looked at Host and Origin by then. JSON rather than events where one message is
    // the whole answer. No priming events: an answer that broke off is not resumed, its mail is
    // fetched again.
    let mut config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_sse_retry(None)
        .with_max_request_body_bytes(LONGEST_REQUEST);
    config.cancellation_token = stop;
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let desk = Desk { guard: Arc::new(Guard::new(settings)), keeper: keeper.clone(), service };
    Router::new().route(PATH, any(mcp)).route("/healthz", get(healthz)).fallback(elsewhere).with_state(desk)
}

/// One request to the MCP server.
async fn mcp(State(desk): State<Desk>, mut request: Request) -> Response {
    if let Err(turned_away) = desk.guard.admit(request.headers()) {
        return turned_away.into_response();
    }
    let conversation =
        request.extensions().get::<ConnectInfo<Conversation>>().map(|ConnectInfo(conversation)| conversation.clone());
    let ends_session = request.method() == Method::DELETE;
    let expected = Expected::new(desk.keeper.clone(), conversation);
    request.extensions_mut().insert(expected.reply());
    let claims_json = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
        kind.to_str().is_ok_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("application/json"))
    });
    let (head, body) = desk.service.handle(request).await.into_parts();
    match head.status {
        StatusCode::OK => Response::from_parts(head, Body::new(Delivering::new(body, expected))),
        // What rmcp has only accepted is done by then, and some clients complain of anything less.
        StatusCode::ACCEPTED if ends_session => StatusCode::NO_CONTENT.into_response(),
        // rmcp says of a body that is no message that its type is not supported; it is malformed.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if claims_json => malformed(),
        _ => Response::from_parts(head, Body::new(body)),
    }
}

/// The answer to what is no JSON-RPC message.
fn malformed() -> Response {
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the body is not a JSON-RPC message"}}"#;
    json(StatusCode::BAD_REQUEST, error.to_owned())
}

/// Whether somebody is there, for whoever may reach the port. Says nothing of whom it serves.
async fn healthz(State(desk): State<Desk>, request: Request) -> Response {
    if let Err(turned_away) = desk.guard.comes_from_here(request.headers()) {
        return turned_away.into_response();
    }
    json(StatusCode::OK, format!(r#"{{"name":"relay-mesh","version":"{}"}}"#, env!("CARGO_PKG_VERSION")))
}

async fn elsewhere(State(desk): State<Desk>, request: Request) -> Response {
    match desk.guard.comes_from_here(request.headers()) {
        Ok(()) => (StatusCode::NOT_FOUND, format!("nothing is here; MCP is at {PATH}\n")).into_response(),
        Err(turned_away) => turned_away.into_response(),
    }
}

fn json(status: StatusCode, body: String) -> Response {
    let mut response = (status, body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
