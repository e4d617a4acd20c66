//! The mesh as MCP tools: over standard input and output for a harness that starts us, and over
//! streamable HTTP for every other client on the machine.
//!
//! The mesh's own types have neither schemas nor JSON; tools return the shapes of the crate `view`. This
//! crate does not identify callers: it collects the evidence of a call and asks the mesh.
//!
//! One invariant shapes most of what is not a tool: **a message counts as read only after the reply
//! with it was flushed.** A tool returns a lease with its answer; the lease follows that answer
//! through the transport (see `watched_transport` and `http::reply`). It is confirmed when the bytes were
//! flushed, and released if they were not.

pub mod http;

mod as_meant;
mod audit;
mod caller;
mod connection;
mod lease_tracker;
mod profile;
mod run_host;
mod schema;
mod server;
mod spawn_host;
mod stdio;
mod tasks;
mod text;
mod thread_host;
mod tool_error;
mod tools;
mod watched_transport;

#[cfg(test)]
mod tests;

pub use profile::{Group, Profile, UnknownGroup};
pub use run_host::{NewReview, NewRun, ReviewSubject, RunHost, RunKind, RunProgress, RunRefusal, Tie};
pub use server::Service;
pub use spawn_host::{ReleaseAnswer, SpawnAnswer, SpawnHost};
pub use stdio::{ClientProcess, StdioError, serve_on, serve_stdio};
pub use thread_host::{
    LiveThread, NewThread, ThreadCall, ThreadHost, ThreadReply, ThreadsStatus, TurnReport, TurnState,
};
