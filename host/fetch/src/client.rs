//! Requests of HTTP/1.1, each over a connection of its own.

use std::future::Future;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, LOCATION, USER_AGENT};
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::connection::{ConnectError, Connector, is_loopback};

/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(15);
/// How long nothing may come, and how long a server may think.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a request may take as a whole: a server that sends a byte a minute is not waited for.
const WHOLE: Duration = Duration::from_secs(600);
/// The largest head of an answer, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;
/// The most redirects that are followed.
const MOST_REDIRECTS: usize = 5;

/// Sends requests.
#[derive(Clone, Debug)]
pub struct Client {
    connector: Connector,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The longest body of an answer that is read, in bytes.
    pub longest: u64,
}

/// What a server answered.
#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The URL that answered, after all redirects.
    pub url: Url,
}

/// A request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{host} did not answer within {} s", .after.as_secs())]
    TimedOut { host: String, after: Duration },
    #[error("the exchange with {host} broke off: {source}")]
    BrokeOff { host: String, source: hyper::Error },
    #[error("{host} answers with more than {longest} bytes")]
    TooLarge { host: String, longest: u64 },
    #[error("{host} redirects more than {MOST_REDIRECTS} times")]
    Redirects { host: String },
    #[error("{host} redirects to `{to}`, which is no address that is followed")]
    Redirect { host: String, to: String },
    /// Any answer but the wanted one.
    #[error("{host} answered {status}{}", said(.message))]
    Status {
        host: String,
        status: StatusCode,
        /// The server's own words.
        message: String,
    },
}

fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

impl FetchError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            FetchError::Connect(error) => error.hint(),
            FetchError::TimedOut { .. } | FetchError::BrokeOff { .. } => "try again; nothing was changed",
            FetchError::TooLarge { .. } => "see that the address is the right one",
            FetchError::Redirects { .. } | FetchError::Redirect { .. } => "name the address that it leads to",
            FetchError::Status { status, .. } => match status.as_u16() {
                401 | 403 => "it wants a login, or does not let yours do this",
                404 | 410 => "nothing is there by this name: see that it is written right",
                429 => "wait a while, and try again",
                500.. => "that is the server's trouble: try again later",
                _ => "see that the address is the right one",
            },
        }
    }
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: Method, url: Url, longest: u64) -> Request {
        Request { method, url, headers: HeaderMap::new(), body: Bytes::new(), longest }
    }
}

impl Response {
    /// The answer if it is a good one, else what the server said.
    pub fn good(self) -> Result<Response, FetchError> {
        if self.status.is_success() {
            return Ok(self);
        }
        let message = words(&self.body).unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        let message: String = message.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect();
        // A page for browsers says nothing on a terminal.
        let message = if message.starts_with('<') { String::new() } else { message };
        Err(FetchError::Status { host: host(&self.url), status: self.status, message })
    }
}

impl Client {
    pub fn new(connector: Connector) -> Client {
        Client { connector }
    }

    /// Sends a request, and follows redirects if it only asks for something.
    pub async fn send(&self, mut request: Request) -> Result<Response, FetchError> {
        let follows = matches!(request.method, Method::GET | Method::HEAD);
        let first = host(&request.url);
        for _ in 0..=MOST_REDIRECTS {
            let answer = within(WHOLE, &request.url, self.exchange(&request)).await??;
            if !follows || !is_redirect(answer.status) {
                return Ok(answer);
            }
            let Some(next) = answer.headers.get(LOCATION).and_then(|to| to.to_str().ok()) else { return Ok(answer) };
            let told = || FetchError::Redirect { host: host(&request.url), to: next.chars().take(200).collect() };
            let url = request.url.join(next).map_err(|_| told())?;
            if !may_follow(&request.url, &url) {
                return Err(told());
            }
            if url.origin() != request.url.origin() {
                // What is for one server is not shown to another.
                request.headers.remove(AUTHORIZATION);
            }
            request.url = url;
        }
        Err(FetchError::Redirects { host: first })
    }

    async fn exchange(&self, request: &Request) -> Result<Response, FetchError> {
        let url = &request.url;
        let broke_off = |source| FetchError::BrokeOff { host: host(url), source };
        let stream = within(CONNECTING, url, self.connector.connect(url)).await??;
        let mut connection = http1::Builder::new();
        connection.max_buf_size(LARGEST_HEAD);
        let (mut sender, connection) = connection.handshake(TokioIo::new(stream)).await.map_err(broke_off)?;
        let _ends_with_this = AbortOnDropHandle::new(tokio::spawn(connection));
        let answer = within(SILENCE, url, sender.send_request(head_of(request))).await?.map_err(broke_off)?;
        let (head, mut incoming) = answer.into_parts();
        let too_large = || FetchError::TooLarge { host: host(url), longest: request.longest };
        let announced = head.headers.get("content-length").and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if request.method != Method::HEAD && announced.is_some_and(|length| length > request.longest) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(frame) = within(SILENCE, url, incoming.frame()).await? {
            let Ok(part) = frame.map_err(broke_off)?.into_data() else { continue };
            if (body.len() + part.len()) as u64 > request.longest {
                return Err(too_large());
            }
            body.extend_from_slice(&part);
        }
        Ok(Response { status: head.status, headers: head.headers, body: body.into(), url: url.clone() })
    }
}

/// The request as it is sent: with the host, and the path alone.
fn head_of(request: &Request) -> hyper::Request<Full<Bytes>> {
    let mut sent = hyper::Request::new(Full::new(request.body.clone()));
    *sent.method_mut() = request.method.clone();
    let url = &request.url;
    let target = target(url);
    // Both are parts of a URL that was parsed, which has nothing that a head cannot hold.
    if let Ok(target) = target.parse() {
        *sent.uri_mut() = target;
    }
    *sent.headers_mut() = request.headers.clone();
    let headers = sent.headers_mut();
    if let Ok(authority) = host(url).parse() {
        headers.insert(HOST, authority);
    }
    headers
        .insert(USER_AGENT, hyper::header::HeaderValue::from_static(concat!("relay-mesh/", env!("CARGO_PKG_VERSION"))));
    sent
}

/// What the JSON of an error says, as registries and others write it.
fn words(body: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let found = value.pointer("/errors/0/message").or(value.get("message")).or(value.get("details"))?;
    found.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

async fn within<T>(time: Duration, url: &Url, work: impl Future<Output = T>) -> Result<T, FetchError> {
    tokio::time::timeout(time, work).await.map_err(|_| FetchError::TimedOut { host: host(url), after: time })
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// From the network only over TLS, and never from there to this machine: a server elsewhere has no business with it.
pub(crate) fn may_follow(from: &Url, to: &Url) -> bool {
    match to.scheme() {
        "https" => is_loopback(from) || !is_loopback(to),
        "http" => is_loopback(from) && is_loopback(to),
        _ => false,
    }
}

/// What a request to a URL asks for: its path and its query.
pub fn target(url: &Url) -> String {
    url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
}

/// The server of a URL, with its port if that is not the usual one.
pub fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_stays_with_tls_and_does_not_come_home() {
        let may = |from: &str, to: &str| may_follow(&Url::parse(from).expect("URL"), &Url::parse(to).expect("URL"));
        assert!(may("https://a.example/x", "https://b.example/y"));
        assert!(may("http://127.0.0.1:1/x", "http://localhost:2/y"));
        assert!(may("https://localhost:1/x", "https://localhost:2/y"));
        assert!(!may("https://a.example/x", "http://a.example/x"));
        assert!(!may("https://a.example/x", "http://127.0.0.1/x"));
        assert!(!may("https://a.example/x", "https://127.0.0.1/x"));
        assert!(!may("https://a.example/x", "file:///etc/passwd"));
    }

    #[test]
    fn a_page_for_browsers_is_left_out_of_an_error() {
        let told = |body: &'static str| {
            let url = Url::parse("https://a.example:5000/x").expect("URL");
            let (status, headers) = (StatusCode::NOT_FOUND, HeaderMap::new());
            Response { status, headers, body: body.into(), url }.good().expect_err("no good answer").to_string()
        };
        assert_eq!(told("<!doctype html>\n<p>no"), "a.example:5000 answered 404 Not Found");
        let of_registry = r#"{"errors":[{"code":"NAME_UNKNOWN","message":"no such name","detail":{}}]}"#;
        assert_eq!(told(of_registry), "a.example:5000 answered 404 Not Found: no such name");
        assert_eq!(told("no such\n  thing"), "a.example:5000 answered 404 Not Found: no such thing");
    }
}
