//! A client that writes JSON lines to a pipe and reads the answers: for misbehaviour that a real client
//! does not allow.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

pub(super) struct Lines {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
}

impl Lines {
    /// A client that has sent nothing yet.
    pub(super) fn new(stream: DuplexStream) -> Lines {
        let (read, write) = tokio::io::split(stream);
        Lines { read: BufReader::with_capacity(16, read), write }
    }

    /// A client after the handshake of this era.
    pub(super) async fn connected(stream: DuplexStream, era: &str) -> Lines {
        let mut lines = Lines::new(stream);
        let answer = lines.ask(0, "initialize", hello(era)).await;
        assert_eq!(answer["result"]["protocolVersion"], era, "{answer}");
        lines.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
        lines
    }

    pub(super) async fn write(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.expect("written");
    }

    /// Sends a request.
    pub(super) async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await;
    }

    /// Sends a call of a tool.
    pub(super) async fn begin(&mut self, id: u64, tool: &str, arguments: &str) {
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        self.request(id, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    }

    /// Cancels a request.
    pub(super) async fn cancel(&mut self, id: u64) {
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        self.write(&cancel.to_string()).await;
    }

    /// The next message.
    pub(super) async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.read.read_line(&mut line).await.expect("read");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Waits for the first byte of the next message, without reading it.
    pub(super) async fn something_comes(&mut self) {
        self.read.fill_buf().await.expect("read");
    }

    /// Sends a request and waits for the next message, which must be its answer.
    pub(super) async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.request(id, method, params).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool; returns its text.
    pub(super) async fn call(&mut self, id: u64, tool: &str, arguments: &str) -> String {
        self.begin(id, tool, arguments).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        text(&answer)
    }

    /// Everything until the server closes.
    pub(super) async fn rest(mut self) -> String {
        self.write.shutdown().await.expect("closed");
        let mut rest = String::new();
        self.read.read_to_string(&mut rest).await.expect("read");
        rest
    }
}

/// The text of a tool's answer.
pub(super) fn text(answer: &Value) -> String {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The parameters of `initialize`.
pub(super) fn hello(era: &str) -> Value {
    json!({"protocolVersion": era, "capabilities": {}, "clientInfo": {"name": "lines", "version": "1"}})
}

/// The `_meta` of every request of 2026-07-28.
pub(super) fn modern() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "lines", "version": "1"},
    })
}
