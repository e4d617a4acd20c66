//! Pages of the server.

use std::path::Path;
use std::time::{Duration, Instant};

use bench::sampling::{Compared, median};
use bench::{Failure, process, report::Report};
use serde_json::{Value, json};
use test_support::{Host, HttpClient, Stage, StdioClient};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::talk::Talkers;

/// So many pages are open.
pub(crate) const OPEN: usize = 100;
/// What delivering a message may take with them.
const BUDGET: f64 = 1.05;
/// What is measured in turns is measured so many times each.
const TURNS: usize = 8;
/// Two messages are so far apart.
const APART: Duration = Duration::from_millis(50);

/// A browser that has signed in.
struct Browser {
    port: u16,
    cookie: String,
    key: String,
}

impl Browser {
    fn sign_in(stage: &Stage, port: u16) -> Result<Browser, Failure> {
        let said: Value = serde_json::from_str(&stage.relay_ok(&["ui", "--web", "--no-open", "--json"]))?;
        let address = said["address"].as_str().ok_or("no address")?;
        let code = address.split_once("#code=").ok_or("no code")?.1;
        let mut client = HttpClient::new(port, None);
        client.header("origin", Some(&format!("http://127.0.0.1:{port}")));
        let answer = client.post("/ui/session", &json!({ "code": code }).to_string());
        let cookie = answer.headers.get("set-cookie").and_then(|cookie| cookie.split(';').next()).ok_or("no cookie")?;
        let key: Value = serde_json::from_str(&answer.body)?;
        Ok(Browser { port, cookie: cookie.to_owned(), key: key["key"].as_str().ok_or("no key")?.to_owned() })
    }

    /// Opens a page on a conversation and reads it until it is dropped.
    async fn page(&self) -> Result<JoinSet<()>, Failure> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let request = format!(
            "GET /ui/data/events?thread=bench HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncookie: {}\r\nx-relay-mesh-key: {}\r\n\
             accept: text/event-stream\r\n\r\n",
            self.port, self.cookie, self.key
        );
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = vec![0; 16 * 1024];
        let count = stream.read(&mut bytes).await?;
        if !bytes[..count].starts_with(b"HTTP/1.1 200") {
            return Err(format!("no page: {}", String::from_utf8_lossy(&bytes[..count])).into());
        }
        let mut reading = JoinSet::new();
        reading.spawn(async move { while let Ok(1..) = stream.read(&mut bytes).await {} });
        Ok(reading)
    }
}

/// One agent sends to another one, which waits for it.
struct Pair {
    alice: StdioClient,
    bob: HttpClient,
    sent: usize,
}

impl Pair {
    /// How long a message takes until it is stored, and until its recipient has it, a client of the server that waits
    /// for it.
    fn delivered(&mut self) -> Result<(Duration, Duration), Failure> {
        self.sent += 1;
        let body = format!("message {}", self.sent);
        let bob = &mut self.bob;
        let (sent, began, stored, got, came) = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let got = bob.call("fetch_messages", json!({"wait_seconds": 10, "acknowledge": true}));
                (got, Instant::now())
            });
            std::thread::sleep(APART);
            let began = Instant::now();
            let sent = self.alice.call("send_message", json!({"to": "bob", "body": body, "thread": "bench"}));
            let stored = began.elapsed();
            let (got, came) = waiting.join().map_err(|_| "it panicked")?;
            Ok::<_, Failure>((sent, began, stored, got, came))
        })?;
        if sent.failed || got.structured["messages"][0]["body"] != body.as_str() {
            return Err(format!("{body} did not come: {sent:?} {got:?}").into());
        }
        Ok((stored, came.duration_since(began)))
    }
}

pub(crate) fn measure(relay_mesh: &Path, messages: usize, report: &Report) -> Result<(), Failure> {
    let stage = Stage::new(&relay_mesh.display().to_string());
    let _talkers = Talkers::join(&stage);
    let host = Host::start(&stage);
    let process = stage.relay(&["mcp"]).start(&stage.folder.join("alice.log"));
    let mut alice = StdioClient::connected(process, "a-plain-client");
    alice.call("register_agent", json!({"name": "alice"}));
    let mut bob = host.client("a-plain-client");
    bob.call("register_agent", json!({"name": "bob"}));
    let mut pair = Pair { alice, bob, sent: 0 };
    pair.delivered()?;
    let browser = Browser::sign_in(&stage, host.port)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let server = host.process.child.id();
    let (mut with, mut without) = (Measured::default(), Measured::default());
    for _ in 0..TURNS {
        without.measure(&mut pair, messages / TURNS, server)?;
        let pages = runtime.block_on(async {
            let mut pages = Vec::new();
            for _ in 0..OPEN {
                pages.push(browser.page().await?);
            }
            Ok::<_, Failure>(pages)
        })?;
        // Each is sent everything at first.
        std::thread::sleep(Duration::from_secs(2));
        with.measure(&mut pair, messages / TURNS, server)?;
        drop(pages);
        std::thread::sleep(Duration::from_secs(2));
    }
    let compared = |with: Vec<Duration>, without| Compared { subject: median(with), baseline: median(without) };
    report.ratio("until it is stored", &compared(with.stored, without.stored), BUDGET);
    report.ratio("until its recipient has it", &compared(with.delivered, without.delivered), BUDGET);
    report.note("processor time of the server, with them", with.used);
    report.note("and without", without.used);
    Ok(())
}

#[derive(Default)]
struct Measured {
    stored: Vec<Duration>,
    delivered: Vec<Duration>,
    used: Duration,
}

impl Measured {
    fn measure(&mut self, pair: &mut Pair, messages: usize, server: u32) -> Result<(), Failure> {
        let before = process::processor_time(server)?;
        for _ in 0..messages {
            let (stored, delivered) = pair.delivered()?;
            self.stored.push(stored);
            self.delivered.push(delivered);
        }
        self.used += process::processor_time(server)? - before;
        Ok(())
    }
}
