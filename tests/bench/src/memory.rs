//! What the long-lived processes keep resident.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{StdioClient, initialize};
use crate::{Failure, Subject, programs};
use bench::process::{Running, resident};
use bench::report::Report;

/// How long the host may take to listen and to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// A process that has not grown for so long has done what it does before it waits.
const STILL: Duration = Duration::from_millis(500);

/// A command that comes and goes and loads no adapter, at its largest. This one stays until there is something
/// for it, so that it can be looked at.
pub(crate) fn short_lived(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let data = subject.data_folder("memory-short");
    programs::output(programs::relay_mesh(&subject.relay_mesh, &data).args(["register", "ci"]), "")?;
    let mut take = programs::relay_mesh(&subject.relay_mesh, &data);
    take.args(["cmd", "take", "ci", "--wait"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let waiting = Running(take.spawn()?);
    let began = Instant::now();
    let mut kept = resident(waiting.0.id())?;
    // It grows until it waits, and then stays as it is.
    let mut still = Instant::now();
    while still.elapsed() < STILL {
        if began.elapsed() > PATIENCE {
            return Err("a command that waits goes on growing".into());
        }
        let next = resident(waiting.0.id())?;
        if next.all > kept.all {
            (kept, still) = (next, Instant::now());
        }
        std::thread::yield_now();
    }
    report.amount("a short-lived command, resident", kept.all, "MB", &kept.remark());
    Ok(())
}

/// `relay-mesh mcp` after an agent registered and looked for its mail.
pub(crate) fn stdio_server(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let mut server = programs::relay_mesh(&subject.relay_mesh, &subject.data_folder("memory-stdio"));
    let mut client = StdioClient::start(server.arg("mcp"), "a-client")?;
    client.call_tool("register_agent", &json!({ "name": "alice" }))?;
    client.call_tool("fetch_messages", &json!({}))?;
    let kept = resident(client.pid())?;
    client.finish()?;
    report.size("relay-mesh mcp, memory of its own", kept.own, 15.0, "MB", &kept.remark_on_all());
    Ok(())
}

/// `relay-mesh serve` at rest, after clients of every built-in adapter have called.
pub(crate) fn host(subject: &Subject, report: &Report) -> Result<(), Failure> {
    let data = subject.data_folder("memory-host");
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = format!("127.0.0.1:{port}");
    // Compiling an adapter happens once per machine and version, and is not rest.
    programs::output(programs::relay_mesh(&subject.relay_mesh, &data).args(["plugin", "list", "--load"]), "")?;
    let mut serve = programs::relay_mesh(&subject.relay_mesh, &data);
    serve.args(["serve", "--http", &address]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let host = Running(serve.spawn()?);
    wait_until_healthy(&address)?;
    let token = std::fs::read_to_string(data.join("http.token"))?;
    for client in ["claude-code", "zed"] {
        greet(&address, token.trim(), client)?;
    }
    let kept = resident(host.0.id())?;
    report.size("relay-mesh serve at rest, memory of its own", kept.own, 30.0, "MB", &kept.remark_on_all());
    Ok(())
}

fn wait_until_healthy(address: &str) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        match exchange(address, &format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")) {
            Ok(answer) if answer.starts_with("HTTP/1.1 200") => return Ok(()),
            Ok(answer) => return Err(format!("/healthz was answered with {answer}").into()),
            Err(error) if began.elapsed() > PATIENCE => return Err(error),
            Err(_) => std::thread::yield_now(),
        }
    }
}

/// Opens a session over HTTP and lists the agents, so that the adapter that knows this client is loaded.
fn greet(address: &str, token: &str, client: &str) -> Result<(), Failure> {
    let hello = post(address, token, None, &request(1, "initialize", &initialize(client)))?;
    let session = hello
        .lines()
        .find_map(|line| line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id")))
        .map(|(_, value)| value.trim().to_owned());
    post(address, token, session.as_deref(), &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let call = json!({ "name": "list_agents", "arguments": {} });
    post(address, token, session.as_deref(), &request(2, "tools/call", &call))?;
    Ok(())
}

fn request(id: u64, method: &str, parameters: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters })
}

fn post(address: &str, token: &str, session: Option<&str>, body: &Value) -> Result<String, Failure> {
    let body = body.to_string();
    let session = session.map_or_else(String::new, |id| format!("Mcp-Session-Id: {id}\r\n"));
    let answer = exchange(
        address,
        &format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{session}\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ),
    )?;
    if answer.starts_with("HTTP/1.1 2") { Ok(answer) } else { Err(format!("/mcp was answered with {answer}").into()) }
}

fn exchange(address: &str, request: &str) -> Result<String, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
