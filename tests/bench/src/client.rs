//! The smallest MCP client over standard input and output that gets an answer.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::Failure;

/// A client and the server that it started.
pub struct StdioClient {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// How many requests were sent; the last one's id.
    requests: u64,
}

impl StdioClient {
    /// Starts a server and greets it under a client's name.
    pub fn start(command: &mut Command, name: &str) -> Result<StdioClient, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn()?;
        let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
            return Err("the server's pipes are not there".into());
        };
        let mut client = StdioClient { server, input, output: BufReader::new(output), requests: 0 };
        client.request("initialize", &initialize(name))?;
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    /// Sends a request and waits for its answer; whatever else comes meanwhile is passed over.
    pub fn request(&mut self, method: &str, parameters: &Value) -> Result<Value, Failure> {
        self.requests += 1;
        let id = self.requests;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(format!("the server ended before it answered `{method}`").into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message.get("id").and_then(Value::as_u64) == Some(id) {
                return answer_of(message, method);
            }
        }
    }

    /// Calls a tool; an error that the tool reports is a failure here too.
    pub fn call_tool(&mut self, name: &str, arguments: &Value) -> Result<Value, Failure> {
        let answer = self.request("tools/call", &json!({ "name": name, "arguments": arguments }))?;
        if answer.get("isError").and_then(Value::as_bool) == Some(true) {
            return Err(format!("`{name}` failed: {answer}").into());
        }
        Ok(answer)
    }

    /// The server's process.
    pub fn pid(&self) -> u32 {
        self.server.id()
    }

    /// Closes the connection and waits until the server has gone.
    pub fn finish(self) -> Result<(), Failure> {
        let StdioClient { mut server, input, output, requests: _ } = self;
        drop((input, output));
        server.wait()?;
        Ok(())
    }

    fn write(&mut self, message: &Value) -> Result<(), Failure> {
        writeln!(self.input, "{message}")?;
        self.input.flush()?;
        Ok(())
    }
}

/// What a client says of itself first.
pub fn initialize(name: &str) -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": name, "version": "1.0.0" },
    })
}

/// The result of an answer, or its error as a failure.
pub fn answer_of(mut message: Value, method: &str) -> Result<Value, Failure> {
    match message.get_mut("result").map(Value::take) {
        Some(result) => Ok(result),
        None => Err(format!("`{method}` was answered with {message}").into()),
    }
}
