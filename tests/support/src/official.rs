//! The clients of the official MCP SDKs, steered by a test: see tests/clients/.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::host::Host;
use crate::lines::Lines;
use crate::programs::{Program, Running};
use crate::rpc::{self, ToolAnswer};
use crate::stage::Stage;

/// An official SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// From npm.
    TypeScript,
    /// From PyPI.
    Python,
}

/// How it reaches our server.
#[derive(Clone, Copy)]
pub enum Reach<'a> {
    /// It starts `relay-mesh mcp` by itself.
    Stdio,
    /// It connects to a server.
    Http(&'a Host),
    /// It connects to a server by another port that leads there.
    By(&'a Host, u16),
}

/// A connected client.
pub struct Official {
    /// The protocol era that client and server agreed on.
    pub era: String,
    process: Running,
    answers: Lines,
}

impl Official {
    /// Starts a client and waits until it is connected.
    ///
    /// # Panics
    /// If it cannot connect.
    pub fn connect(stage: &Stage, sdk: Sdk, era: &str, reach: Reach<'_>) -> Official {
        let program = match sdk {
            Sdk::TypeScript => Program::new("node").arg(tests().join("clients/official.mjs")),
            Sdk::Python => Program::new(tests().join(".venv/bin/python")).arg(tests().join("clients/official.py")),
        };
        let url = |port: u16| format!("http://127.0.0.1:{port}/mcp");
        let program = match reach {
            Reach::Stdio => program.args([era, "stdio"]).arg(stage.binary()).arg("mcp"),
            Reach::Http(host) => program.args([era, "http", &url(host.port), &host.token]),
            Reach::By(host, port) => program.args([era, "http", &url(port), &host.token]),
        };
        let log = stage.folder.join("official-client.log");
        let mut process = program.envs(stage.environment()).within(&stage.project).start(&log);
        let answers = Lines::of(process.child.stdout.take().expect("its output is a pipe"));
        let mut client = Official { era: String::new(), process, answers };
        let opened = client.read();
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        client.era = opened["connected"].as_str().unwrap_or_else(|| panic!("{opened}\n{said}")).to_owned();
        client
    }

    /// Calls a tool.
    pub fn call(&mut self, tool: &str, arguments: Value) -> ToolAnswer {
        rpc::tool_answer(&self.order(&json!({"do": "call", "tool": tool, "arguments": arguments})))
    }

    /// Sends an order to the client program and reads its answer.
    pub fn order(&mut self, order: &Value) -> Value {
        let pipe = self.process.child.stdin.as_mut().expect("its input is a pipe");
        writeln!(pipe, "{order}").and_then(|()| pipe.flush()).expect("the client takes orders");
        self.read()
    }

    fn read(&mut self) -> Value {
        let line = self.answers.next().unwrap_or_default();
        serde_json::from_str(&line).unwrap_or_else(|error| json!({"error": format!("{error}: {line:?}")}))
    }
}

/// The folder `tests/` of the repository.
pub(crate) fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
