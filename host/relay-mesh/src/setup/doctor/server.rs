//! Asks the long-lived server for its health, at the address that MCP clients use.

use std::time::{Duration, Instant};

use mesh::ports::harness::Finding;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{broken, fine, shown};

/// Timeout for a server on the same machine.
const PATIENCE: Duration = Duration::from_secs(2);
/// Our server's answer is shorter, in bytes.
const LONGEST_ANSWER: u64 = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It reported that it is healthy, after this time.
    Well(Duration),
    /// No process listens there.
    Silence,
    /// This machine cannot reach the address.
    NoWay(String),
    /// A process listens, but does not answer as our server does.
    Strange(String),
}

/// Asks `/healthz` at an address such as `127.0.0.1:7423`.
pub(crate) async fn ask(address: &str) -> Heard {
    let began = Instant::now();
    let stream = match timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Heard::Silence,
        // The connection failed, so no other process answered.
        Ok(Err(error)) => return Heard::NoWay(error.to_string()),
        Err(_) => return Heard::Strange("it does not accept the connection".to_owned()),
    };
    match timeout(PATIENCE, exchange(stream, address)).await {
        Ok(Ok(answer)) => understand(&answer, began.elapsed()),
        Ok(Err(error)) => Heard::Strange(error.to_string()),
        Err(_) => Heard::Strange(format!("it does not answer within {}", shown(PATIENCE))),
    }
}

/// The finding. No server is fine: only HTTP needs one.
pub(crate) fn finding(address: &str, heard: &Heard) -> Finding {
    match heard {
        Heard::Well(took) => fine(format!("the server at {address} is well and answered in {}", shown(*took))),
        Heard::Silence => {
            fine(format!("no server runs at {address}; only clients over HTTP need one (`relay-mesh up`)"))
        }
        Heard::NoWay(why) => broken(
            format!("this machine does not reach {address}, where a server would listen: {why}"),
            "look at its network: is the loopback interface up (`ip link show lo`), or does `http.listen` in the \
             configuration name an address of another machine?",
        ),
        Heard::Strange(why) => broken(
            format!("what listens at {address} does not answer as a server does: {why}"),
            "end the other program, or choose another address by `http.listen` in the configuration",
        ),
    }
}

async fn exchange(mut stream: TcpStream, address: &str) -> std::io::Result<String> {
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn understand(answer: &str, took: Duration) -> Heard {
    let status = answer.lines().next().unwrap_or_default().trim_end();
    let ok = status.starts_with("HTTP/1.1 200") || status.starts_with("HTTP/1.0 200");
    if ok { Heard::Well(took) } else { Heard::Strange(format!("`{}`", status.escape_debug())) }
}

#[cfg(test)]
mod tests {
    use mesh::ports::harness::Severity;
    use tokio::net::TcpListener;

    use super::*;

    async fn check(reply: &'static str, severity: Severity, expected: &str) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let mut request = [0; 1024];
            let _read = stream.read(&mut request).await.expect("a request");
            stream.write_all(reply.as_bytes()).await.expect("written");
        });
        let found = finding(&address, &ask(&address).await);
        server.await.expect("the server ended");
        assert_eq!(found.severity, severity, "{}", found.what);
        assert!(found.what.contains(expected), "{}", found.what);
    }

    #[tokio::test]
    async fn a_host_is_believed_when_it_says_that_it_is_well() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Severity::Ok, "is well").await;
        check("HTTP/1.1 404 Not ScopeSurvey\r\n\r\n", Severity::Broken, "404").await;
        check("220 mail.example ESMTP\r\n", Severity::Broken, "220 mail").await;
        check("", Severity::Broken, "does not answer").await;
    }

    #[test]
    fn an_address_that_cannot_be_reached_is_nobodys() {
        let found = finding("127.0.0.1:7423", &Heard::NoWay("Network is unreachable (os error 101)".to_owned()));
        assert_eq!(found.severity, Severity::Broken);
        assert!(found.what.starts_with("this machine does not reach 127.0.0.1:7423"), "{}", found.what);
    }

    #[tokio::test]
    async fn no_host_is_no_fault() {
        let free =
            TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address").to_string();
        let heard = ask(&free).await;
        assert_eq!(heard, Heard::Silence);
        assert_eq!(finding(&free, &heard).severity, Severity::Ok);
    }
}
