//! The mesh as MCP tools: over standard input and output for a harness that starts us, and over
//! streamable HTTP for everybody else on the machine.
//!
//! The mesh's own types are neither schemas nor JSON; their twins live here, beside each tool. This
//! crate works out nothing about who calls: it collects what a call shows and asks the mesh.
//!
//! One invariant shapes most of what is not a tool: **a message counts as fetched only after the
//! reply that carries it was flushed.** A tool hands over a claim with its answer; the claim follows
//! that answer through the transport (see `confirming` and `http::reply`), is confirmed when its
//! bytes have left us, and is released when they have not.

pub mod http;

mod confirming;
mod connection;
mod keeper;
mod profile;
mod refusal;
mod schema;
mod server;
mod sighting;
mod stdio;
mod tools;
mod twins;

#[cfg(test)]
mod tests;

pub use profile::{Group, Profile, UnknownGroup};
pub use stdio::{ClientProcess, StdioError, serve_on, serve_stdio};
