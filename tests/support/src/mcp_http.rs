//! A plain MCP client over streamable HTTP, one connection per request. Every header can be set, so that a test can
//! also be an unwelcome client.

use std::collections::BTreeMap;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::rpc::{self, ToolAnswer};

/// An HTTP response.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// The status code.
    pub status: u16,
    /// The headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// A client of one server.
pub struct HttpClient {
    runtime: Runtime,
    authority: String,
    headers: BTreeMap<String, String>,
    last_id: u64,
}

impl HttpClient {
    /// A client of the server at `127.0.0.1:port` with this token. Sends nothing yet.
    pub fn new(port: u16, token: Option<&str>) -> HttpClient {
        let authority = format!("127.0.0.1:{port}");
        let mut headers = BTreeMap::from([
            ("host".to_owned(), authority.clone()),
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ]);
        if let Some(token) = token {
            headers.insert("authorization".to_owned(), format!("Bearer {token}"));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        HttpClient { runtime, authority, headers, last_id: 0 }
    }

    /// As `new`, after a handshake in the newest protocol era that has one.
    pub fn connected(port: u16, token: &str, name: &str) -> HttpClient {
        let mut client = HttpClient::new(port, Some(token));
        client.request("initialize", &rpc::handshake("2025-11-25", name));
        client.post("/mcp", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    /// Sends this header from now on; none removes it.
    pub fn header(&mut self, name: &str, value: Option<&str>) {
        match value {
            Some(value) => self.headers.insert(name.to_owned(), value.to_owned()),
            None => self.headers.remove(name),
        };
    }

    /// Calls a tool and waits for its answer.
    pub fn call(&mut self, tool: &str, arguments: Value) -> ToolAnswer {
        rpc::tool_answer(&self.request("tools/call", &json!({"name": tool, "arguments": arguments})))
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Panics
    /// If the server does not answer with a message.
    pub fn request(&mut self, method: &str, parameters: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let answer = self.post("/mcp", &rpc::request(id, method, parameters).to_string());
        if let Some(session) = answer.headers.get("mcp-session-id") {
            self.headers.insert("mcp-session-id".to_owned(), session.clone());
        }
        messages(&answer)
            .into_iter()
            .find(|message| message["id"] == json!(id))
            .unwrap_or_else(|| panic!("{method} was answered with {answer:?}"))
    }

    /// Posts a body unchanged.
    ///
    /// # Panics
    /// If nothing listens there.
    pub fn post(&self, path: &str, body: &str) -> HttpAnswer {
        self.runtime.block_on(exchange(&self.authority, "POST", path, &self.headers, body)).expect("the server answers")
    }

    /// Gets a path; none if nothing listens there.
    pub fn get(&self, path: &str) -> Option<HttpAnswer> {
        self.runtime.block_on(exchange(&self.authority, "GET", path, &self.headers, "")).ok()
    }
}

/// The messages in a response, whether one body or a stream of events.
fn messages(answer: &HttpAnswer) -> Vec<Value> {
    let streamed = answer.headers.get("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let texts: Vec<&str> = if streamed {
        answer.body.lines().filter_map(|line| line.strip_prefix("data:")).collect()
    } else {
        vec![answer.body.as_str()]
    };
    texts.into_iter().filter_map(|text| serde_json::from_str(text.trim()).ok()).collect()
}

async fn exchange(
    authority: &str,
    method: &str,
    path: &str,
    headers: &BTreeMap<String, String>,
    body: &str,
) -> Result<HttpAnswer, Box<dyn std::error::Error>> {
    let stream = tokio::net::TcpStream::connect(authority).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let carried = tokio::spawn(connection);
    let mut request = hyper::Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let answer = sender.send_request(request.body(Full::new(Bytes::from(body.to_owned())))?).await?;
    let status = answer.status().as_u16();
    let headers = answer
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let body = String::from_utf8_lossy(&answer.into_body().collect().await?.to_bytes()).into_owned();
    drop(sender);
    carried.abort();
    Ok(HttpAnswer { status, headers, body })
}
