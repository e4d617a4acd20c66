//! What grows with a number and not with age: acknowledging ten thousand messages and four times as many, and a
//! server's work for one message with no session on record and with fifty thousand. Both are to be linear, or flat.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::client::StdioClient;
use bench::process::{Running, processor_time};
use bench::report::Report;
use bench::{Failure, programs};
use serde_json::json;
use test_support::NatsServer;

use crate::folder::{self, Backend};
use crate::records;

/// How many messages are acknowledged.
const UNREAD: [u64; 2] = [10_000, 40_000];
/// How many sessions are on record.
const SESSIONS: [u64; 2] = [0, 50_000];
/// The longest time in which sessions that ended are put away.
const PUT_AWAY_WITHIN: Duration = Duration::from_secs(60);
/// How many messages a server delivers while it is watched.
const SENT: usize = 30;
/// By how much the cost of one may grow.
const ALLOWANCE: f64 = 1.5;
/// Less processor time than this a message cannot be told apart: the system counts in hundredths of a second.
const LEAST: f64 = 20.0 / SENT as f64;

/// Measures both on one store. Returns what is over, in words.
pub(crate) fn measure(backend: Backend, program: &Path, root: &Path, report: &Report) -> Result<Vec<String>, Failure> {
    let mut over = Vec::new();
    let mut row = |name: &str, counts: [u64; 2], values: [f64; 2], least: f64| {
        let [few, many] = values;
        let ratio = many.max(least) / few.max(least);
        report.row(&format!(
            "{name}, of {} and of {}: {few:.2} ms and {many:.2} ms each, {ratio:.1} ×",
            counts[0], counts[1]
        ));
        if ratio > ALLOWANCE {
            over.push(format!("{name}: {ratio:.1} × for each of {} as for each of {}", counts[1], counts[0]));
        }
    };
    let mut taken = [(0.0, 0.0); 2];
    for (count, taken) in UNREAD.into_iter().zip(&mut taken) {
        *taken = acknowledging(&CountedFolder::new(backend, program, root, &format!("unread-{count}"))?, count)?;
    }
    row("acknowledging over MCP, 50 at a time", UNREAD, taken.map(|(each, _)| each), 0.0);
    row("the same, processor time", UNREAD, taken.map(|(_, used)| used), 0.0);
    let mut used = [0.0; 2];
    for (count, used) in SESSIONS.into_iter().zip(&mut used) {
        *used = serving(&CountedFolder::new(backend, program, root, &format!("sessions-{count}"))?, count)?;
    }
    row("`serve` for a message beside sessions on record, processor time", SESSIONS, used, LEAST);
    Ok(over)
}

/// An empty data folder, and its server.
struct CountedFolder {
    path: PathBuf,
    program: PathBuf,
    server: Option<NatsServer>,
}

impl CountedFolder {
    fn new(backend: Backend, program: &Path, root: &Path, name: &str) -> Result<CountedFolder, Failure> {
        let path = root.join(format!("counts-{name}"));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(path.join("project"))?;
        let server = match backend {
            Backend::Files => None,
            Backend::Nats => Some(NatsServer::start()),
        };
        Ok(CountedFolder { path, program: program.to_owned(), server })
    }

    fn relay(&self, arguments: &[&str]) -> Command {
        let mut relay = programs::relay_mesh(&self.program, &self.path.join("data"));
        if let Some(server) = &self.server {
            relay.env("RELAY_STORE", server.url());
        }
        relay.current_dir(self.path.join("project")).args(arguments);
        relay
    }

    fn client(&self, name: &str) -> Result<StdioClient, Failure> {
        let mut client = StdioClient::start(&mut self.relay(&["mcp"]), "a-plain-client")?;
        client.call_tool("register_agent", &json!({ "name": name }))?;
        Ok(client)
    }
}

impl Drop for CountedFolder {
    fn drop(&mut self) {
        // The next run removes what stays.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

/// Acknowledges that many messages, as our instructions tell agents to. Milliseconds and processor time for each.
fn acknowledging(place: &CountedFolder, count: u64) -> Result<(f64, f64), Failure> {
    let mut reader = place.client("reader")?;
    let mut writer = place.client("writer")?;
    for number in 0..count {
        writer
            .call_tool("send_message", &json!({ "to": ["reader"], "body": format!("The build {number} is green.") }))?;
    }
    writer.finish()?;
    let (began, before) = (Instant::now(), processor_time(reader.pid())?);
    let mut taken = 0;
    while taken < count {
        let fetched = reader.call_tool("fetch_messages", &json!({ "limit": 50, "acknowledge": true }))?;
        let some = fetched["structuredContent"]["messages"].as_array().map_or(0, Vec::len);
        if some == 0 {
            return Err(format!("only {taken} of {count} messages came").into());
        }
        taken += some as u64;
    }
    let (took, used) = (began.elapsed(), processor_time(reader.pid())?.saturating_sub(before));
    reader.finish()?;
    Ok((took.as_secs_f64() * 1e3 / count as f64, used.as_secs_f64() * 1e3 / count as f64))
}

/// The processor time, in milliseconds, that a server uses for each message that is sent while that many sessions that
/// ended are on record.
fn serving(place: &CountedFolder, sessions: u64) -> Result<f64, Failure> {
    programs::output(&mut place.relay(&["register", "reader"]), "")?;
    let folder = place.path.join("data/sessions").join(records::HARNESS);
    std::fs::create_dir_all(&folder)?;
    let ended = folder::now() - 3_600_000;
    for number in 0..sessions {
        let id = records::session_id(1, number);
        let record = records::session(&id, 1, "/work", (ended, ended), true);
        std::fs::write(folder.join(format!("{id}.json")), format!("{{\"revision\":1,\"value\":{record}}}\n"))?;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut serve = place.relay(&["serve", "--http", &format!("127.0.0.1:{port}")]);
    serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running(serve.spawn()?);
    calm(&server)?;
    // Each delivery round puts some of those that ended away; what is measured begins when that is over.
    let began = Instant::now();
    while sessions > 0 && std::fs::read_dir(&folder)?.count() > SENT && began.elapsed() < PUT_AWAY_WITHIN {
        programs::output(&mut place.relay(&["send", "reader", "one more round"]), "")?;
    }
    calm(&server)?;
    let before = processor_time(server.0.id())?;
    for number in 0..SENT {
        programs::output(&mut place.relay(&["send", "reader", &format!("message {number}")]), "")?;
    }
    calm(&server)?;
    let used = processor_time(server.0.id())?.saturating_sub(before);
    Ok(used.as_secs_f64() * 1e3 / SENT as f64)
}

/// Waits until a server uses next to no processor time for a second.
fn calm(server: &Running) -> Result<(), Failure> {
    let (mut since, mut used) = (Instant::now(), Duration::ZERO);
    while since.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(50));
        let now = processor_time(server.0.id())?;
        if now.saturating_sub(used) > Duration::from_millis(10) {
            (since, used) = (Instant::now(), now);
        }
    }
    Ok(())
}
