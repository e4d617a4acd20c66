//! A client of an app server that does nothing but what it is told.

use std::path::Path;

use bench::Failure;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// A connection.
pub(crate) struct Client {
    stream: WebSocketStream<UnixStream>,
    asked: u64,
    /// The threads whose turns have ended, and nobody has asked for that yet.
    ended: Vec<String>,
}

impl Client {
    /// Connects to the server at this path.
    pub(crate) async fn at(socket: &str) -> Result<Client, Failure> {
        // Codex makes a link, whose end is a shorter path.
        let stream = UnixStream::connect(std::fs::canonicalize(Path::new(socket))?).await?;
        let (stream, _) = tokio_tungstenite::client_async("ws://localhost/", stream).await?;
        let mut client = Client { stream, asked: 0, ended: Vec::new() };
        client.ask("initialize", json!({"clientInfo": {"name": "bare", "version": "1"}})).await?;
        Ok(client)
    }

    /// Hears of a thread from now on.
    pub(crate) async fn follow(&mut self, thread: &str) -> Result<(), Failure> {
        self.ask("thread/resume", json!({"threadId": thread, "excludeTurns": true})).await.map(drop)
    }

    /// Begins a thread.
    pub(crate) async fn begin(&mut self, folder: &str) -> Result<String, Failure> {
        let asked = json!({"cwd": folder, "sandbox": "read-only", "approvalPolicy": "never"});
        let begun = self.ask("thread/start", asked).await?;
        Ok(begun["thread"]["id"].as_str().ok_or("a thread without an id")?.to_owned())
    }

    /// Begins a turn.
    pub(crate) async fn turn(&mut self, thread: &str, text: &str) -> Result<(), Failure> {
        let asked = json!({"threadId": thread, "input": [{"type": "text", "text": text}]});
        self.ask("turn/start", asked).await.map(drop)
    }

    /// Waits until a turn of the thread has ended.
    pub(crate) async fn completed(&mut self, thread: &str) -> Result<(), Failure> {
        loop {
            if let Some(at) = self.ended.iter().position(|ended| ended == thread) {
                self.ended.remove(at);
                return Ok(());
            }
            self.next().await?;
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        self.asked += 1;
        let id = self.asked;
        self.stream.send(Message::text(json!({"id": id, "method": method, "params": params}).to_string())).await?;
        loop {
            let told = self.next().await?;
            if told["id"] == id && told.get("method").is_none() {
                return match told.get("error") {
                    Some(error) => Err(format!("{method}: {error}").into()),
                    None => Ok(told["result"].clone()),
                };
            }
        }
    }

    async fn next(&mut self) -> Result<Value, Failure> {
        loop {
            let Message::Text(text) = self.stream.next().await.ok_or("the server has gone")?? else { continue };
            let told: Value = serde_json::from_str(&text)?;
            if told["method"] == "turn/completed" {
                self.ended.extend(told["params"]["threadId"].as_str().map(str::to_owned));
            }
            return Ok(told);
        }
    }
}
