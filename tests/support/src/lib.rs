//! What the tests of the product stand on: a stage without a network, the real binary and the real
//! clients on it, and a model that answers by script. Nothing here knows how relay-mesh works
//! inside; it is driven as a person and a harness drive it.

mod agents;
mod authors;
mod claude_code;
mod client;
mod codex;
pub mod components;
mod gemini;
pub mod guarded;
mod history;
mod host;
mod isolation;
mod lines;
mod mcp_http;
mod mcp_stdio;
pub mod model;
mod nats_server;
mod network;
mod observations;
mod official;
mod opencode;
mod programs;
mod rpc;
mod stage;
mod terminal;
mod transcript;
mod waiting;

pub use agents::{agents, presence_of, session_of, unread};
pub use claude_code::{ClaudeCode, Conversation, Headless};
pub use client::{Client, Seat};
pub use codex::{AppServer, Codex, Trust};
pub use gemini::Gemini;
pub use history::{DeliveryHistory, id_of, send, send_with};
pub use host::Host;
pub use isolation::{isolated, isolated_program};
pub use mcp_http::HttpClient;
pub use mcp_stdio::StdioClient;
pub use model::{Answer, Dialect, Heard, Model, Script};
pub use nats_server::NatsServer;
pub use network::Machine;
pub use observations::{Ability, OBSERVATIONS, observed};
pub use official::{Official, Reach, Sdk};
pub use opencode::{OpenCode, Served};
pub use programs::{Outcome, Program, Running, search_path};
pub use rpc::{ToolAnswer, handshake, tool_answer};
pub use stage::{BINARY, Stage};
pub use terminal::Terminal;
pub use transcript::Transcript;
pub use waiting::{PATIENCE, now, wait_for};
