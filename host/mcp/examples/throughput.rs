//! Compares send_message over HTTP with a tool that does nothing on a bare rmcp server.
//!
//! Both servers run in this process, with the same transport settings, and the same clients call them in
//! turns: one connection and one session per agent, over loopback. The mesh keeps its data in files and
//! syncs each message before it answers, as in normal use. Prints calls per second, the processor time per
//! call (including the client's, which is the same for all), and the ratios of the budgets; exits with 1 if
//! one is missed.
//!
//! `cargo run --profile rig -p relay-mesh-mcp --example throughput [FOLDER [process]]`, where FOLDER is on the disk to
//! measure. With `process` nothing is synced. A third server, a bare rmcp server whose tool appends to a file
//! and syncs it, shows the least that a durable message costs on that disk, and is the reference for the
//! budget (docs/adr/0006).
//!
//! `throughput FOLDER synced AGENTS null|append|send` repeats that one measurement, for a profiler.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its results")]

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use mcp::http::{HttpSettings, Listener};
use mesh::ports::machine::{Instant as MeshInstant, Machine, Process};
use mesh::testing::FakeHarnesses;
use mesh::{Limits, Mesh, Parts};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Store};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Turns per server. The median counts.
const TURNS: usize = 7;
/// Calls of one turn, over all its agents.
const CALLS: usize = 960;
/// Number of agents that call at once.
const CROWD: usize = 32;
/// Budget: how many times as long as a bare append and sync `send_message` may take. See docs/adr/0006.
const MOST: f64 = 2.0;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let folder = match std::env::args().nth(1) {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let durability = match std::env::args().nth(2).as_deref() {
        None | Some("synced") => Durability::Synced,
        Some("process") => Durability::Process,
        Some(other) => return Err(format!("`{other}` is neither `synced` nor `process`").into()),
    };
    let stop = CancellationToken::new();
    let bare = serve_bare(Bare { disk: Arc::new(Disk::new(folder.path(), durability)?) }, stop.child_token()).await?;
    let relay = serve_relay(&folder.path().join("mesh"), durability, stop.child_token()).await?;
    println!("the files lie in {} ({durability:?})", folder.path().display());

    if let (Some(agents), Some(work)) = (std::env::args().nth(3), std::env::args().nth(4)) {
        let (address, work) = match work.as_str() {
            "null" => (bare, Work::Nothing),
            "append" => (bare, Work::Appends),
            "send" => (relay, Work::Sends),
            other => return Err(format!("`{other}` is none of `null`, `append` and `send`").into()),
        };
        let mut callers = connected(address, agents.parse()?, work).await?;
        for _ in 0..TURNS {
            let (elapsed, processor) = turn(&mut callers, CALLS).await?;
            println!("{:.0} calls/s, {:.0} µs of the processor each", per_second(elapsed), per_call(processor));
        }
        stop.cancel();
        return Ok(ExitCode::SUCCESS);
    }
    let mut met = true;
    for agents in [1, CROWD] {
        let mut null = connected(bare, agents, Work::Nothing).await?;
        let mut floor = connected(bare, agents, Work::Appends).await?;
        let mut send = connected(relay, agents, Work::Sends).await?;
        // A first turn without timing, so that no server pays for being first.
        for callers in [&mut null, &mut floor, &mut send] {
            turn(callers, CALLS / 4).await?;
        }
        let mut turns = Vec::new();
        for _ in 0..TURNS {
            turns.push([turn(&mut null, CALLS).await?, turn(&mut floor, CALLS).await?, turn(&mut send, CALLS).await?]);
        }
        let of = |pick: &dyn Fn(&[Turn; 3]) -> f64| median(turns.iter().map(pick).collect());
        for (which, name) in ["null tool", "bare append", "send_message"].into_iter().enumerate() {
            // Summed up, because one turn is only a few of the system's ticks.
            let processor: Duration = turns.iter().map(|turn| turn[which].1).sum();
            println!(
                "{agents:>2} agents: {name:<12} {:>6.0} calls/s, {:>4.0} µs of the processor each",
                of(&|turn| per_second(turn[which].0)),
                per_call(processor / TURNS as u32),
            );
        }
        let times = of(&|[null, _, send]| send.0.as_secs_f64() / null.0.as_secs_f64());
        let above = of(&|[_, floor, send]| send.0.as_secs_f64() / floor.0.as_secs_f64());
        let fits = above <= MOST;
        met &= fits;
        println!(
            "           send_message takes {above:.2} × the bare append's time, budget {MOST} ×: {} \
             ({times:.2} × the null tool's, {:.0} % of its calls)",
            if fits { "within" } else { "OVER" },
            100.0 / times,
        );
    }
    stop.cancel();
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Wall-clock time and processor time of one turn.
type Turn = (Duration, Duration);

fn per_second(elapsed: Duration) -> f64 {
    CALLS as f64 / elapsed.as_secs_f64()
}

fn per_call(processor: Duration) -> f64 {
    processor.as_secs_f64() * 1e6 / CALLS as f64
}

/// Processor time of this process so far. The system counts in hundredths of a second.
fn processor_time() -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, after_name) = stat.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let ticks = after_name.split_ascii_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(Duration::from_millis(10 * ticks.sum::<Result<u64, _>>()?))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The real machine, as far as the mesh needs it here.
struct ThisMachine;

impl Machine for ThisMachine {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others take")]
    fn now(&self) -> MeshInstant {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        MeshInstant(since.as_millis() as u64)
    }

    fn process(&self, pid: u32) -> Option<Process> {
        let own = self.this_process();
        if pid == own.pid { Some(own) } else { process(pid) }
    }

    fn this_process(&self) -> Process {
        // Read once, as the binary does.
        static OWN: std::sync::OnceLock<Process> = std::sync::OnceLock::new();
        *OWN.get_or_init(|| {
            let pid = std::process::id();
            process(pid).unwrap_or(Process { pid, start: 0, space: None })
        })
    }

    fn name(&self) -> &str {
        "here"
    }

    fn random(&self) -> [u8; 16] {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835).to_be_bytes()
    }
}

/// Read as the binary reads it, so that it costs the same.
fn process(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let start = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    Some(Process { pid, start, space: None })
}

async fn serve_relay(
    folder: &std::path::Path,
    durability: Durability,
    stop: CancellationToken,
) -> Result<SocketAddr, Failure> {
    let options = FilesOptions { durability, ..FilesOptions::default() };
    let store = Arc::new(FilesStore::open(folder, options)?);
    let mesh = Arc::new(Mesh::new(Parts {
        shared: Arc::clone(&store) as Arc<dyn Store>,
        local: store,
        machine: Arc::new(ThisMachine),
        harnesses: Arc::new(FakeHarnesses::default()),
        limits: Limits::default(),
    }));
    let settings = HttpSettings { listen: ([127, 0, 0, 1], 0).into(), ..HttpSettings::default() };
    let listener = Listener::bind(settings).await?;
    let address = listener.address();
    tokio::spawn(listener.serve(mesh, stop));
    Ok(address)
}

/// A server with two tools: one does nothing, the other does the least that a durable message needs:
/// append to a file and sync it.
#[derive(Clone)]
struct Bare {
    disk: Arc<Disk>,
}

/// Append-only files, one for each agent.
struct Disk {
    files: Vec<File>,
    durability: Durability,
}

impl Disk {
    fn new(folder: &std::path::Path, durability: Durability) -> Result<Disk, Failure> {
        let file = |number| File::options().append(true).create(true).open(folder.join(format!("{number}.jsonl")));
        Ok(Disk { files: (0..CROWD).map(file).collect::<Result<_, _>>()?, durability })
    }

    fn append(&self, number: usize) -> std::io::Result<()> {
        let mut file = &self.files[number % CROWD];
        file.write_all(&[b'x'; 500])?;
        match self.durability {
            Durability::Synced => file.sync_data(),
            Durability::Process => Ok(()),
        }
    }
}

impl ServerHandler for Bare {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let file = request.arguments.as_ref().and_then(|arguments| arguments.get("file")).and_then(Value::as_u64);
        if let Some(number) = file.and_then(|number| usize::try_from(number).ok()) {
            tokio::task::block_in_place(|| self.disk.append(number))
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }
}

async fn serve_bare(bare: Bare, stop: CancellationToken) -> Result<SocketAddr, Failure> {
    // The same settings as in host/mcp/src/http.
    let mut sessions = SessionConfig::default();
    sessions.sse_retry = None;
    sessions.completed_cache_ttl = Duration::ZERO;
    let mut manager = LocalSessionManager::default();
    manager.session_config = sessions;
    let config = StreamableHttpServerConfig::default().with_json_response(true).with_sse_retry(None);
    let service = StreamableHttpService::new(move || Ok(bare.clone()), Arc::new(manager), config);
    let router = axum::Router::new().route_service("/mcp", service);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let listener = axum::serve::ListenerExt::tap_io(listener, |stream: &mut TcpStream| {
        if let Err(error) = stream.set_nodelay(true) {
            eprintln!("a connection goes on with delayed writes: {error}");
        }
    });
    tokio::spawn(async move {
        axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await }).await
    });
    Ok(address)
}

/// The call that the agents make.
#[derive(Clone, Copy)]
enum Work {
    Nothing,
    Appends,
    Sends,
}

/// One agent: a connection, a session, and the call that it repeats.
struct Principal {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    session: String,
    call: Value,
    next: u64,
}

/// Agents, each of which sends to the next.
async fn connected(address: SocketAddr, agents: usize, work: Work) -> Result<Vec<Principal>, Failure> {
    let name = |number: usize| format!("agent-{agents}-{}", number % agents);
    let mut callers = Vec::new();
    for number in 0..agents {
        let mut caller = Principal::connect(address).await?;
        match work {
            Work::Nothing => caller.call = json!({"name": "nothing", "arguments": {}}),
            Work::Appends => caller.call = json!({"name": "append", "arguments": {"file": number}}),
            Work::Sends => {
                caller.call = json!({"name": "register_agent", "arguments": {"name": name(number)}});
                caller.call().await?;
                let body = "Would you have a look at the parser? ".repeat(6);
                caller.call = json!({"name": "send_message", "arguments": {"to": [name(number + 1)], "body": body}});
            }
        }
        callers.push(caller);
    }
    Ok(callers)
}

/// One turn: calls shared out among the agents, each with one in flight.
async fn turn(callers: &mut Vec<Principal>, calls: usize) -> Result<Turn, Failure> {
    let each = calls / callers.len();
    let mut running = JoinSet::new();
    let (began, before) = (Instant::now(), processor_time()?);
    for mut caller in callers.drain(..) {
        running.spawn(async move {
            for _ in 0..each {
                caller.call().await?;
            }
            Ok::<Principal, Failure>(caller)
        });
    }
    while let Some(caller) = running.join_next().await {
        callers.push(caller??);
    }
    Ok((began.elapsed(), processor_time()?.saturating_sub(before)))
}

impl Principal {
    async fn connect(address: SocketAddr) -> Result<Principal, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut caller = Principal { sender, address, session: String::new(), call: Value::Null, next: 1 };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}});
        let answer = caller.post(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})).await?;
        caller.session = answer.headers()["mcp-session-id"].to_str()?.to_owned();
        answer.into_body().collect().await?;
        let said = caller.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        said.into_body().collect().await?;
        Ok(caller)
    }

    async fn call(&mut self) -> Result<(), Failure> {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": self.call});
        let answer = self.post(request).await?.into_body().collect().await?.to_bytes();
        let text = std::str::from_utf8(&answer)?;
        if text.contains("\"isError\":false") { Ok(()) } else { Err(format!("a call failed: {text}").into()) }
    }

    async fn post(&mut self, body: Value) -> Result<Response<hyper::body::Incoming>, Failure> {
        let mut request = Request::post("/mcp")
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session).header("mcp-protocol-version", "2025-11-25");
        }
        self.sender.ready().await?;
        Ok(self.sender.send_request(request.body(Full::new(Bytes::from(body.to_string())))?).await?)
    }
}
