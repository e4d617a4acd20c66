//! A plain MCP client over standard input and output, as a harness starts one.

use std::io::Write;
use std::process::ChildStdin;

use serde_json::{Value, json};

use crate::lines::Lines;
use crate::programs::Running;
use crate::rpc::{self, ToolAnswer};

/// A client and the server that it started.
pub struct StdioClient {
    /// The server's process.
    pub server: Running,
    to_server: Option<ChildStdin>,
    from_server: Lines,
    last_id: u64,
}

impl StdioClient {
    /// Takes the pipes of a server that was just started. Sends nothing yet.
    pub fn new(mut server: Running) -> StdioClient {
        let to_server = server.child.stdin.take();
        let from_server = Lines::of(server.child.stdout.take().expect("the server's output is a pipe"));
        StdioClient { server, to_server, from_server, last_id: 0 }
    }

    /// As `new`, after a handshake in the newest protocol era that has one.
    pub fn connected(server: Running, name: &str) -> StdioClient {
        let mut client = StdioClient::new(server);
        client.request("initialize", &rpc::handshake("2025-11-25", name));
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    /// Calls a tool and waits for its answer.
    pub fn call(&mut self, tool: &str, arguments: Value) -> ToolAnswer {
        rpc::tool_answer(&self.request("tools/call", &json!({"name": tool, "arguments": arguments})))
    }

    /// Sends a request and waits for its answer, whatever notifications come before it.
    ///
    /// # Panics
    /// If the server ends instead of answering.
    pub fn request(&mut self, method: &str, parameters: &Value) -> Value {
        self.try_request(method, parameters).unwrap_or_else(|| panic!("the server ended instead of answering {method}"))
    }

    /// The same; none if the server ended instead of answering.
    pub fn try_request(&mut self, method: &str, parameters: &Value) -> Option<Value> {
        self.last_id += 1;
        let id = self.last_id;
        if !self.try_write(&rpc::request(id, method, parameters).to_string()) {
            return None;
        }
        loop {
            let answer = self.read()?;
            if answer["id"] == json!(id) {
                return Some(answer);
            }
        }
    }

    /// Writes a line unchanged.
    ///
    /// # Panics
    /// If the server has ended.
    pub fn write(&mut self, line: &str) {
        assert!(self.try_write(line), "the server ended while it was written to");
    }

    /// Reads the next line; none at the end.
    ///
    /// # Panics
    /// If the line is not JSON: only protocol messages may be on standard output.
    pub fn read(&mut self) -> Option<Value> {
        let line = self.from_server.next()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON: {error}: {line}")))
    }

    /// Closes the input, as a harness does, waits until the server has ended and returns its exit code.
    pub fn close(mut self) -> Option<i32> {
        self.to_server = None;
        self.server.ended()
    }

    fn try_write(&mut self, line: &str) -> bool {
        let pipe = self.to_server.as_mut().expect("the input is open until the client is closed");
        writeln!(pipe, "{line}").and_then(|()| pipe.flush()).is_ok()
    }
}
