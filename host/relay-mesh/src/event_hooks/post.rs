//! Webhooks: one signed request, over TLS or to this machine alone. Redirects are not followed.

use std::str::FromStr;
use std::time::Duration;

use fetch::{Connector, host, is_loopback, target};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HeaderValue;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use mesh::event_hooks::Attempt;
use mesh::ports::machine::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;

use super::sign::signature;

/// How long a request may take, from the connection to the answer's head.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest head of an answer, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;

/// Where a webhook goes: `https`, or `http` to this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebhookUrl(Url);

/// A text is no address for a webhook.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidUrl {
    #[error("`{0}` is no URL: {1}")]
    NoUrl(String, String),
    #[error("`{0}` would go over the network in the clear: a webhook is https, or http to 127.0.0.1, ::1 or localhost")]
    InTheClear(String),
    #[error("a webhook's URL holds no user and no password: its requests are signed")]
    Login,
}

impl FromStr for WebhookUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<WebhookUrl, InvalidUrl> {
        let url = Url::parse(text).map_err(|error| InvalidUrl::NoUrl(text.to_owned(), error.to_string()))?;
        if url.host().is_none() {
            return Err(InvalidUrl::NoUrl(text.to_owned(), "it names no host".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidUrl::Login);
        }
        match url.scheme() {
            "https" => Ok(WebhookUrl(url)),
            "http" if is_loopback(&url) => Ok(WebhookUrl(url)),
            _ => Err(InvalidUrl::InTheClear(text.to_owned())),
        }
    }
}

/// Posts a body. Never takes longer than ten seconds.
pub(super) async fn post(url: &str, secret: Option<&str>, id: &str, now: Instant, body: Vec<u8>) -> Attempt {
    let url: WebhookUrl = match url.parse() {
        Ok(url) => url,
        Err(error) => return Attempt::Failed(error.to_string()),
    };
    match tokio::time::timeout(TIMEOUT, exchange(&url.0, secret, id, now, body)).await {
        Ok(Ok(status)) => judge(status),
        Ok(Err(why)) => Attempt::TryAgain(why),
        Err(_) => Attempt::TryAgain(format!("it did not answer within {} s", TIMEOUT.as_secs())),
    }
}

fn judge(status: StatusCode) -> Attempt {
    match status.as_u16() {
        200..300 => Attempt::Done(format!("answered {status}")),
        300..400 => Attempt::Failed(format!("it answered {status}, and redirects are not followed")),
        410 => Attempt::Failed(format!("it answered {status}")),
        _ => Attempt::TryAgain(format!("it answered {status}")),
    }
}

async fn exchange(
    url: &Url,
    secret: Option<&str>,
    id: &str,
    now: Instant,
    body: Vec<u8>,
) -> Result<StatusCode, String> {
    let request = request(url, secret, id, now, body)?;
    let stream = Connector::direct().map_err(|error| error.to_string())?.connect(url).await;
    send(stream.map_err(|error| error.to_string())?, request).await
}

fn request(
    url: &Url,
    secret: Option<&str>,
    id: &str,
    now: Instant,
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, String> {
    let seconds = now.0 / 1_000;
    let mut request = Request::post(target(url))
        .header("host", host(url))
        .header("content-type", "application/json")
        .header("user-agent", concat!("relay-mesh/", env!("CARGO_PKG_VERSION")))
        .header("webhook-id", id)
        .header("webhook-timestamp", seconds);
    if let Some(secret) = secret {
        let mut signed = HeaderValue::try_from(signature(secret, id, seconds, &body)).map_err(|e| e.to_string())?;
        signed.set_sensitive(true);
        request = request.header("webhook-signature", signed);
    }
    request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())
}

/// Sends a request and waits for the head of the answer. The rest of it is of no use.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<Full<Bytes>>,
) -> Result<StatusCode, String> {
    let broken = |error: hyper::Error| format!("the exchange broke off: {error}");
    let mut client = http1::Builder::new();
    client.max_buf_size(LARGEST_HEAD);
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let answer = sender.send_request(request);
    // The connection is polled here and ends with this exchange: no task outlives the call.
    tokio::pin!(connection);
    tokio::pin!(answer);
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            answered = &mut answer => return answered.map(|response| response.status()).map_err(broken),
            _ = &mut connection, if is_open => is_open = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_goes_over_tls_or_stays_on_this_machine() {
        let check = |text: &str, expected: &str| {
            let outcome = match text.parse::<WebhookUrl>() {
                Ok(url) => format!("goes to {}", url.0),
                Err(error) => error.to_string(),
            };
            assert!(outcome.contains(expected), "{text}: {outcome}");
        };
        check("https://example.org/hook?a=b", "goes to https://example.org/hook?a=b");
        check("http://127.0.0.1:8080/x", "goes to");
        check("http://[::1]:8080/x", "goes to");
        check("http://localhost/x", "goes to");
        check("http://example.org/hook", "in the clear");
        check("http://127.0.0.1.example.org/", "in the clear");
        check("http://localhost.example.org/", "in the clear");
        check("http://10.0.0.1/", "in the clear");
        check("ftp://127.0.0.1/", "in the clear");
        check("https://user:secret@example.org/", "no user and no password");
        check("example.org/hook", "is no URL");
        check("https://", "is no URL");
        check("data:text/plain,x", "names no host");
    }

    #[test]
    fn every_answer_but_a_good_one_a_redirect_and_an_end_is_tried_again() {
        let status = |code: u16| judge(StatusCode::from_u16(code).expect("a status"));
        assert!(matches!(status(204), Attempt::Done(_)));
        assert!(matches!(status(302), Attempt::Failed(why) if why.contains("redirects are not followed")));
        assert!(matches!(status(410), Attempt::Failed(_)));
        for code in [400, 404, 429, 500, 503] {
            assert!(matches!(status(code), Attempt::TryAgain(_)), "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_costs_ten_seconds_and_is_tried_again() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", server.local_addr().expect("an address"));
        let began = tokio::time::Instant::now();
        let attempt = post(&url, None, "h1-0-7", Instant(0), b"{}".to_vec()).await;
        assert_eq!(attempt, Attempt::TryAgain("it did not answer within 10 s".to_owned()));
        assert_eq!(began.elapsed(), TIMEOUT);
    }

    #[tokio::test]
    async fn a_server_that_speaks_no_tls_gets_nothing() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}/", server.local_addr().expect("an address"));
        let serves = tokio::spawn(async move {
            let (stream, _) = server.accept().await.expect("a client");
            stream.readable().await.expect("it says something");
            let mut bytes = [0; 4096];
            let read = stream.try_read(&mut bytes).unwrap_or_default();
            bytes[..read].to_vec()
        });
        let body = b"the secret of alice".to_vec();
        let attempt = post(&url, Some("whsec_c2VjcmV0"), "h1-0-7", Instant(0), body).await;
        assert!(matches!(&attempt, Attempt::TryAgain(why) if why.contains("TLS")), "{attempt:?}");
        let heard = serves.await.expect("it ran");
        assert!(!String::from_utf8_lossy(&heard).contains("secret"));
    }
}
