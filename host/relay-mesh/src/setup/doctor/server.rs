//! Asks the long-lived server at an address for a proof that it is this data folder's, before anything that it says is
//! believed.

use std::path::Path;
use std::time::{Duration, Instant};

use mcp::http::identity::{IDENTITY, proves};
use mesh::ports::harness::{Finding, Severity};
use mesh::ports::machine::Machine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{broken, fine, shown};
use crate::server::{ServerError, token};

/// Timeout for a server on the same machine.
const PATIENCE: Duration = Duration::from_secs(2);
/// Our server's answer is shorter, in bytes.
const LONGEST_ANSWER: u64 = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It proved that it knows this folder's token, after this time.
    Ours(Duration),
    /// It answers as a relay-mesh server does, and does not prove that it is this folder's.
    NotOurs,
    /// No process listens there.
    Silence,
    /// This machine cannot reach the address.
    NoWay(String),
    /// A process listens, but does not answer as our server does.
    Strange(String),
}

/// Asks what listens at an address for its proof that it is this data folder's server.
pub(crate) async fn ask_for_proof(address: &str, dir: &Path, machine: &dyn Machine) -> Result<Heard, ServerError> {
    let nonce = hex::encode(machine.random());
    let token = token::existing(dir)?;
    Ok(ask(address, token.as_deref(), &nonce).await)
}

/// Asks at an address such as `127.0.0.1:7423`, and never sends the token there. `nonce` is random.
async fn ask(address: &str, token: Option<&str>, nonce: &str) -> Heard {
    let began = Instant::now();
    let stream = match timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Heard::Silence,
        // The connection failed, so no other process answered.
        Ok(Err(error)) => return Heard::NoWay(error.to_string()),
        Err(_) => return Heard::Strange("it does not accept the connection".to_owned()),
    };
    // As the other end sees it: the server proves itself for the address at which it was reached.
    let Ok(reached) = stream.peer_addr() else { return Heard::Strange("it ended the connection".to_owned()) };
    let answer = match timeout(PATIENCE, exchange(stream, address, &format!("{IDENTITY}{nonce}"))).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Heard::Strange(error.to_string()),
        Err(_) => return Heard::Strange(format!("it does not answer within {}", shown(PATIENCE))),
    };
    let proof = is_ok(&answer).then(|| proof_in(&answer)).flatten();
    if proof.zip(token).is_some_and(|(proof, token)| proves(token, reached, nonce, &proof)) {
        return Heard::Ours(began.elapsed());
    }
    // An earlier version of ours knows no such question.
    match health(address).await {
        Some(answer) if is_ok(&answer) && answer.contains(r#""name":"relay-mesh""#) => Heard::NotOurs,
        _ => Heard::Strange(format!("`{}`", answer.lines().next().unwrap_or_default().trim_end().escape_debug())),
    }
}

async fn health(address: &str) -> Option<String> {
    let stream = timeout(PATIENCE, TcpStream::connect(address)).await.ok()?.ok()?;
    timeout(PATIENCE, exchange(stream, address, "/healthz")).await.ok()?.ok()
}

/// What is to be said of the server that this folder's record names, and that of the address which the settings name.
pub(crate) fn of_record(running: &str, set: &str, heard: &Heard) -> Finding {
    let instead = if running == set { String::new() } else { format!(", and not at {set} as the settings say") };
    match heard {
        Heard::Ours(took) => {
            fine(format!("the server of this data folder runs at {running}{instead}; it answered in {}", shown(*took)))
        }
        Heard::Silence => broken(
            format!("the server of this data folder runs, and does not listen at {running}"),
            "start it again: `relay-mesh down`, then `relay-mesh up`",
        ),
        Heard::NotOurs => broken(
            format!("what listens at {running} does not prove that it is the server of this data folder"),
            "if the server is of an earlier version, `relay-mesh down` and `relay-mesh up` replace it; else another \
             user's server has its port: choose another address by `http.listen` in the configuration",
        ),
        Heard::NoWay(_) | Heard::Strange(_) => finding(running, heard),
    }
}

/// The finding if this folder's record names no running server. No server is fine: many
/// sessions are woken by their own hooks.
pub(crate) fn finding(address: &str, heard: &Heard) -> Finding {
    match heard {
        Heard::Ours(took) => fine(format!("the server at {address} is well and answered in {}", shown(*took))),
        Heard::NotOurs => Finding {
            severity: Severity::Warning,
            what: format!(
                "this data folder has no running server, and the one at {address} is another folder's or another user's"
            ),
            fix: Some(
                "clients that are set up for this address would show it your token: choose another address by \
                 `http.listen` in the configuration, and install them again; `relay-mesh token` prints the token only \
                 if the server is yours"
                    .to_owned(),
            ),
        },
        Heard::Silence => fine(format!(
            "no server of this data folder runs, and none at {address}; clients over HTTP need one, and \
             sessions that nothing else wakes (`relay-mesh up`)"
        )),
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

async fn exchange(mut stream: TcpStream, address: &str, path: &str) -> std::io::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn is_ok(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.0 200")
}

/// The proof in an answer's body.
fn proof_in(answer: &str) -> Option<String> {
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let told: serde_json::Value = serde_json::from_str(body.trim()).ok()?;
    Some(told["proof"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::{Arc, Mutex};

    use mcp::http::identity::proof;
    use tokio::net::TcpListener;

    use super::*;

    const TOKEN: &str = "a-token";
    const NONCE: &str = "0123456789abcdef";

    /// Listens, and answers each request by its path and the address at which it came. Returns what it was sent.
    async fn check(answer: fn(&str, SocketAddr) -> String, expected: impl Fn(&Heard) -> bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let sent = Arc::new(Mutex::new(String::new()));
        let noted = Arc::clone(&sent);
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let read = stream.read(&mut request).await.expect("a request");
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                noted.lock().expect("a lock").push_str(&request);
                let path = request.split(' ').nth(1).unwrap_or_default();
                stream.write_all(answer(path, address).as_bytes()).await.expect("written");
            }
        });
        let heard = ask(&address.to_string(), Some(TOKEN), NONCE).await;
        assert!(expected(&heard), "{heard:?}");
        server.abort();
        sent.lock().expect("a lock").clone()
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    fn nowhere() -> String {
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()
    }

    fn proven(token: &str, at: SocketAddr) -> String {
        ok(&format!(r#"{{"name":"relay-mesh","proof":"{}"}}"#, proof(token, at, NONCE).expect("a proof")))
    }

    #[tokio::test]
    async fn only_who_knows_the_token_and_listens_there_is_believed() {
        check(|_, at| proven(TOKEN, at), |heard| matches!(heard, Heard::Ours(_))).await;
        let another_users = |path: &str, at: SocketAddr| match path {
            "/healthz" => ok(r#"{"name":"relay-mesh","version":"0.1.0"}"#),
            _ => proven("another-token", at),
        };
        let sent = check(another_users, |heard| *heard == Heard::NotOurs).await;
        assert!(!sent.contains(TOKEN), "it was shown the token: {sent}");
        let an_earlier_version = |path: &str, _: SocketAddr| match path {
            "/healthz" => ok(r#"{"name":"relay-mesh","version":"0.1.0"}"#),
            _ => nowhere(),
        };
        check(an_earlier_version, |heard| *heard == Heard::NotOurs).await;
        check(|_, _| nowhere(), |heard| matches!(heard, Heard::Strange(why) if why.contains("404"))).await;
        check(|_, _| "220 mail.example ESMTP\r\n".to_owned(), |heard| matches!(heard, Heard::Strange(_))).await;
        check(|_, _| String::new(), |heard| matches!(heard, Heard::Strange(_))).await;
    }

    #[test]
    fn what_is_said_of_a_server_names_whose_it_is() {
        let (running, set) = ("127.0.0.1:7500", "127.0.0.1:7423");
        let ours = Heard::Ours(Duration::from_millis(3));
        let check = |found: Finding, severity: Severity, says: &str| {
            assert_eq!(found.severity, severity, "{}", found.what);
            assert!(found.what.contains(says), "{}", found.what);
        };
        check(of_record(running, set, &ours), Severity::Ok, "runs at 127.0.0.1:7500, and not at 127.0.0.1:7423");
        check(of_record(set, set, &ours), Severity::Ok, "runs at 127.0.0.1:7423; it answered");
        check(of_record(running, set, &Heard::NotOurs), Severity::Broken, "does not prove");
        check(of_record(running, set, &Heard::Silence), Severity::Broken, "does not listen at 127.0.0.1:7500");
        check(finding(set, &Heard::NotOurs), Severity::Warning, "another user's");
        let unreachable = Heard::NoWay("Network is unreachable (os error 101)".to_owned());
        check(finding(set, &unreachable), Severity::Broken, "this machine does not reach 127.0.0.1:7423");
    }

    #[tokio::test]
    async fn no_host_is_no_fault() {
        let free =
            TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address").to_string();
        let heard = ask(&free, Some(TOKEN), NONCE).await;
        assert_eq!(heard, Heard::Silence);
        assert_eq!(finding(&free, &heard).severity, Severity::Ok);
    }
}
