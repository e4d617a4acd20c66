//! The mesh as MCP tools: over standard input and output for a harness that starts us, and over
//! streamable HTTP for everybody else on the machine.
//!
//! The mesh's own types are neither schemas nor JSON; tools give the crate `view`'s shapes. This crate
//! does not work out who calls: it collects what a call shows and asks the mesh.
//!
//! One invariant shapes most of what is not a tool: **a message counts as read only after the reply
//! with it was flushed.** A tool hands over a lease with its answer; the lease follows that answer
//! through the transport (see `watched_transport` and `http::reply`), is confirmed when its bytes were
//! flushed, and is released when they were not.

pub mod http;

mod caller;
mod connection;
mod lease_tracker;
mod profile;
mod schema;
mod server;
mod stdio;
mod text;
mod tool_error;
mod tools;
mod watched_transport;

#[cfg(test)]
mod tests;

pub use profile::{Group, Profile, UnknownGroup};
pub use stdio::{ClientProcess, StdioError, serve_on, serve_stdio};
