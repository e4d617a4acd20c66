//! The processes that stay: a session's MCP server, and `serve`.

use std::process::Stdio;
use std::time::{Duration, Instant};

use bench::Failure;
use bench::client::StdioClient;
use bench::process::{Running, processor_time, resident};
use serde_json::{Value, json};

use crate::folder::AgedFolder;

/// How long `serve` is watched. One that is not calm by then is told with what it used so far.
const PATIENCE: Duration = Duration::from_secs(60);
/// A server that used no more than this much processor time within a while is calm.
const CALM: Duration = Duration::from_millis(1_500);
const CALM_TIME: Duration = Duration::from_millis(20);

/// One tool of a fresh server, without its start.
pub(crate) fn tool(folder: &AgedFolder, name: &str, arguments: &Value) -> Result<f64, Failure> {
    let mut client = start(folder)?;
    let began = Instant::now();
    client.call_tool(name, arguments)?;
    let took = began.elapsed();
    client.finish()?;
    Ok(took.as_secs_f64() * 1e3)
}

/// The memory of its own that a server has after a fetch and a question, in megabytes. What it maps of the program's
/// file is as much at every age, and would hide a growth.
pub(crate) fn resident_after_use(folder: &AgedFolder) -> Result<f64, Failure> {
    let mut client = start(folder)?;
    client.call_tool("fetch_messages", &json!({ "peek": true }))?;
    client.call_tool("message_status", &json!({ "id": folder.samples.sent_by_session.one()? }))?;
    let kept = resident(client.pid())?;
    client.finish()?;
    Ok(kept.own)
}

fn start(folder: &AgedFolder) -> Result<StdioClient, Failure> {
    StdioClient::start(&mut folder.relay_in(&folder.speaker_session(), &["mcp"]), "claude-code")
}

/// The processor time of `serve` until it is calm, in seconds.
pub(crate) fn serve_until_calm(folder: &AgedFolder) -> Result<f64, Failure> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut serve = folder.relay(&["serve", "--http", &format!("127.0.0.1:{port}")]);
    serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Running(serve.spawn()?);
    let began = Instant::now();
    let (mut since, mut used) = (Instant::now(), Duration::ZERO);
    while since.elapsed() < CALM && began.elapsed() < PATIENCE {
        if let Some(outcome) = server.0.try_wait()? {
            return Err(format!("`serve` ended with {outcome}").into());
        }
        std::thread::sleep(Duration::from_millis(50));
        let now = processor_time(server.0.id())?;
        if now.saturating_sub(used) > CALM_TIME {
            (since, used) = (Instant::now(), now);
        }
    }
    Ok(used.as_secs_f64())
}
