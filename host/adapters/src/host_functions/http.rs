//! One request to an HTTP origin on this machine. Redirects are not followed, and nothing leaves loopback: the dialled
//! host comes from the manifest's template and is never resolved.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::rates::Use;
use super::{HostResult, about, failed, within};
use crate::bindings::relay::adapter::http::{Host, Request, Response};
use crate::bindings::relay::adapter::types::Error;
use crate::guest::Guest;
use crate::manifest::Login;

/// Limits of HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest body in either direction, in bytes.
    pub largest: usize,
    /// The longest wait for a whole exchange.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { largest: 4 * 1024 * 1024, timeout: Duration::from_secs(10) }
    }
}

/// Headers about framing and addressing. Only the host writes them.
const OURS: [&str; 8] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "proxy-connection"];

impl Host for Guest {
    async fn send(&mut self, request: Request) -> wasmtime::Result<HostResult<Response>> {
        if let Err(error) = self.spend(Use::Request) {
            return Ok(Err(error));
        }
        let settings = self.host_side.settings.http;
        let login = self.host_side.grants.login(&request.origin).cloned();
        let filled = self.host_side.grants.origin(&request.origin).map_err(Error::from);
        let filled = filled.and_then(|origin| origin.fill(&request.values).map_err(Error::from));
        let grant = format!("origins.{}", request.origin);
        let answered = match filled {
            Ok((host, port, prefix)) => {
                let what = format!("the request to `{}`", request.origin);
                let exchanged = async {
                    let login = match login {
                        Some(login) => authorization(login, host, port).await,
                        None => None,
                    };
                    exchange((host, port, &prefix), login, request, settings.largest).await
                };
                within(settings.timeout, &what, exchanged).await
            }
            Err(error) => Err(error),
        };
        Ok(answered.map_err(|error| about(&grant, error)))
    }
}

/// The header by which the program that listens there lets a caller in, as its own environment says. None if it was
/// started without a password: what is sent never leaves the program that has it already.
async fn authorization(login: Login, host: &'static str, port: u16) -> Option<HeaderValue> {
    let at = SocketAddr::new(host.parse().ok()?, port);
    let Login { password, user, default_user } = login;
    let found = tokio::task::spawn_blocking(move || processes::variables_of_listener(at, [&password, &user]));
    let [password, user] = found.await.ok()?;
    let (password, user) = (password.filter(|password| !password.is_empty())?, user.unwrap_or(default_user));
    let mut header = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))).ok()?;
    header.set_sensitive(true);
    Some(header)
}

async fn exchange(
    (host, port, prefix): (&str, u16, &str),
    login: Option<HeaderValue>,
    request: Request,
    largest: usize,
) -> HostResult<Response> {
    let mut request = compose(host, port, prefix, request, largest)?;
    if let Some(login) = login {
        request.headers_mut().entry(AUTHORIZATION).or_insert(login);
    }
    let address: IpAddr = host.parse().map_err(failed)?;
    let stream = TcpStream::connect((address, port)).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => Error::NotFound(format!("nothing listens on {host} port {port}")),
        _ => failed(format!("could not connect to {host} port {port}: {error}")),
    })?;
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(256 * 1024)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let answer = async move {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        let headers = headers.collect();
        let body = Limited::new(response.into_body(), largest).collect().await.map_err(broken)?;
        Ok(Response { status, headers, body: body.to_bytes().to_vec() })
    };
    // The connection is polled here and ends with this exchange: no task outlives the call.
    let mut connection = std::pin::pin!(connection);
    let mut answer = std::pin::pin!(answer);
    let mut open = true;
    loop {
        tokio::select! {
            biased;
            answered = &mut answer => return answered,
            closed = &mut connection, if open => {
                open = false;
                if let Err(error) = closed {
                    tracing::debug!(%error, "a connection that an adapter asked for broke");
                }
            }
        }
    }
}

fn compose(
    host: &str,
    port: u16,
    prefix: &str,
    request: Request,
    largest: usize,
) -> HostResult<hyper::Request<Full<Bytes>>> {
    if request.body.len() > largest {
        return Err(failed(format!("a body of {} bytes is too long: {largest} fit", request.body.len())));
    }
    let path = request.path.split(['?', '#']).next().unwrap_or_default();
    let advances = path.split('/').any(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == ".." || plain == "."
    });
    if !request.path.starts_with('/') || advances {
        return Err(Error::Denied(format!("`{}` is not a path from the origin's root", shorten(&request.path))));
    }
    let method = hyper::Method::from_bytes(request.method.as_bytes())
        .ok()
        .filter(|method| *method != hyper::Method::CONNECT)
        .ok_or_else(|| Error::Denied(format!("`{}` is not an allowed method", shorten(&request.method))))?;
    let mut composed = hyper::Request::builder().method(method).uri(format!("{prefix}{}", request.path));
    let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    composed = composed.header("host", authority);
    for (name, value) in request.headers {
        let name: HeaderName = name.parse().map_err(|_| failed(format!("`{}` is not a header", shorten(&name))))?;
        let value =
            HeaderValue::from_str(&value).map_err(|_| failed(format!("the header `{name}` has no such value")))?;
        if OURS.contains(&name.as_str()) {
            return Err(Error::Denied(format!("the header `{name}` is the host's own")));
        }
        composed = composed.header(name, value);
    }
    composed.body(Full::new(Bytes::from(request.body))).map_err(failed)
}

fn broken(error: impl std::fmt::Display) -> Error {
    failed(format!("the exchange broke off: {error}"))
}

fn shorten(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, header: (&str, &str), expected: &str) {
        let request = Request {
            origin: "api".to_owned(),
            values: Vec::new(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![(header.0.to_owned(), header.1.to_owned())],
            body: Vec::new(),
        };
        let outcome = match compose("127.0.0.1", 80, "/api", request, 10) {
            Ok(request) => format!("{} {} {:?}", request.method(), request.uri(), request.headers()),
            Err(error) => format!("{error:?}"),
        };
        assert!(outcome.contains(expected), "{method} {path}: {outcome}");
    }

    #[test]
    fn a_request_stays_with_its_origin() {
        let plain = ("accept", "text/plain");
        check("POST", "/session/1?x=..", plain, "POST /api/session/1?x=..");
        check("GET", "/", plain, "\"host\": \"127.0.0.1:80\"");
        check("GET", "/../admin", plain, "is not a path from the origin's root");
        check("GET", "/%2E%2e/admin", plain, "is not a path from the origin's root");
        check("GET", "http://evil.example/", plain, "is not a path from the origin's root");
        check("GET", "@evil.example/", plain, "is not a path from the origin's root");
        check("CONNECT", "/", plain, "is not an allowed method");
        check("GET", "/", ("Host", "evil.example"), "the header `host` is the host's own");
        check("GET", "/", ("x", "a\r\nhost: evil.example"), "has no such value");
    }
}
