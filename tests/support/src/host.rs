//! `relay-mesh serve`, running beside a test.

use std::path::Path;

use crate::mcp_http::HttpClient;
use crate::programs::Running;
use crate::stage::Stage;
use crate::waiting::wait_for;

/// A server of MCP over HTTP. It ends with the test.
pub struct Host {
    /// The port it listens on.
    pub port: u16,
    /// Its token for clients.
    pub token: String,
    /// The server process.
    pub process: Running,
}

impl Host {
    /// Starts a server on a free port and waits until it answers.
    pub fn start(stage: &Stage) -> Host {
        let (port, process) = serving(stage, &[]);
        let token = wait_for("the host has made its token", || token_in(&stage.data));
        Host { port, token, process }
    }

    /// One with every group of tools, for clients that know no token.
    pub fn start_with_every_tool(stage: &Stage) -> Host {
        let tools = "core,reservations,commands,runs,runners,asks,spawn,channels,codex,subagents";
        let (port, process) = serving(stage, &["--no-token", "--tools", tools, "--aliases", "atm"]);
        Host { port, token: String::new(), process }
    }

    /// Starts a server with these flags, in an environment with these variables too.
    pub fn start_with(stage: &Stage, flags: &[&str], environment: &[(String, String)]) -> Host {
        let (port, process) = serving_in(stage, flags, environment);
        let token = wait_for("the host has made its token", || token_in(&stage.data));
        Host { port, token, process }
    }

    /// A plain MCP client of this server.
    pub fn client(&self, name: &str) -> HttpClient {
        HttpClient::connected(self.port, &self.token, name)
    }
}

fn serving(stage: &Stage, flags: &[&str]) -> (u16, Running) {
    serving_in(stage, flags, &[])
}

fn serving_in(stage: &Stage, flags: &[&str], environment: &[(String, String)]) -> (u16, Running) {
    let port = free_port();
    let log = stage.folder.join("serve.log");
    let address = format!("127.0.0.1:{port}");
    let arguments: Vec<&str> = ["serve", "--http", &address].into_iter().chain(flags.iter().copied()).collect();
    let mut process = stage.relay(&arguments).envs(environment.iter().cloned()).start(&log);
    let probe = HttpClient::new(port, None);
    wait_for("the host answers", || {
        let ended = process.child.try_wait().expect("a child can be asked");
        assert!(ended.is_none(), "the host ended with {ended:?}: {}", read(&log));
        probe.get("/healthz").filter(|answer| answer.status == 200)
    });
    (port, process)
}

fn token_in(data: &Path) -> Option<String> {
    let token = std::fs::read_to_string(data.join("http.token")).ok()?;
    Some(token.trim().to_owned()).filter(|token| !token.is_empty())
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    listener.local_addr().expect("a bound listener has an address").port()
}

fn read(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}
