//! An HTTP client that sends whatever a test tells it to.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::{HeaderMap, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::World;
use super::lines::{hello, modern, text};
use crate::http::{HttpSettings, Listener, ServeError};

/// The token that the server requires.
pub(super) const TOKEN: &str = "a-token";

/// A server on a port that the system chose.
pub(super) struct Web {
    pub(super) address: SocketAddr,
    pub(super) stop: CancellationToken,
    pub(super) serving: JoinHandle<Result<(), ServeError>>,
    ids: AtomicU64,
}

/// An answer as received.
#[derive(Debug)]
pub(super) struct WebAnswer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Web {
    pub(super) async fn start(world: &World) -> Web {
        Web::with(world, HttpSettings { token: Some(TOKEN.to_owned()), ..HttpSettings::default() }).await
    }

    pub(super) async fn with(world: &World, settings: HttpSettings) -> Web {
        let settings = HttpSettings { listen: ([127, 0, 0, 1], 0).into(), ..settings };
        let listener = Listener::bind(settings).await.expect("a free port");
        let address = listener.address();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(std::sync::Arc::clone(&world.mesh), stop.clone()));
        Web { address, stop, serving, ids: AtomicU64::new(1) }
    }

    fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// A connection on which requests can be sent.
    pub(super) async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect(self.address).await.expect("somebody listens");
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        // Ends when its sender is dropped.
        tokio::spawn(connection);
        sender
    }

    /// A good request, with these headers replaced.
    pub(super) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Request<Full<Bytes>> {
        let host = self.address.to_string();
        let authorization = format!("Bearer {TOKEN}");
        let usual = [
            ("host", host.as_str()),
            ("authorization", authorization.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in usual.iter().filter(|(name, _)| headers.iter().all(|(other, _)| other != name)) {
            request = request.header(*name, *value);
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        request.body(Full::new(Bytes::from(body))).expect("a request")
    }

    pub(super) async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: String) -> WebAnswer {
        let mut sender = self.connect().await;
        let answer = sender.send_request(self.request(method, path, headers, body)).await.expect("an answer");
        let (head, body) = answer.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        let body = String::from_utf8(body.to_vec()).expect("text");
        WebAnswer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// One request of 2026-07-28.
    pub(super) async fn stateless(&self, method: &str, mut params: Value) -> Value {
        params["_meta"] = modern();
        let body = json!({"jsonrpc": "2.0", "id": self.next_id(), "method": method, "params": params});
        let name = params["name"].as_str().unwrap_or_default();
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name)];
        let answer = self.send("POST", "/mcp", &headers, body.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.headers["content-type"], "application/json", "one message is the whole answer");
        serde_json::from_str(&answer.body).expect("JSON")
    }

    /// A session in an era that has them.
    pub(super) async fn session(&self, era: &str) -> WebSession<'_> {
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello(era)});
        let answer = self.send("POST", "/mcp", &[], body.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.headers["mcp-session-id"].to_str().expect("text").to_owned();
        let session = WebSession { web: self, id, era: era.to_owned() };
        let said = session.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(said.status, 202, "{said:?}");
        session
    }
}

pub(super) struct WebSession<'a> {
    web: &'a Web,
    pub(super) id: String,
    era: String,
}

impl WebSession<'_> {
    pub(super) fn headers(&self) -> [(&str, &str); 2] {
        [("mcp-session-id", &self.id), ("mcp-protocol-version", &self.era)]
    }

    pub(super) async fn post(&self, body: Value) -> WebAnswer {
        self.web.send("POST", "/mcp", &self.headers(), body.to_string()).await
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.web.next_id();
        let answer = self.post(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let events = answer.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut messages = events.filter_map(|event| serde_json::from_str::<Value>(event.trim()).ok());
        messages.find(|message| message["id"] == id).unwrap_or_else(|| panic!("{answer:?}"))
    }

    /// Calls a tool; returns its text.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> String {
        text(&self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await)
    }
}
