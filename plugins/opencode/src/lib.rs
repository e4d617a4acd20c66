//! The OpenCode adapter. What only code inside OpenCode can do is done by a connector
//! (`assets/connector.ts`), which the installation puts among OpenCode's plugins; here stands what its
//! words mean to the mesh, how OpenCode is set up, and the way to a session over HTTP.
//!
//! What it relies on, and how each point was seen, is in the README beside this crate.

mod commands;
mod hooks;
mod http;
mod install;
mod payload;
mod push;
mod servers;
mod sessions;

use relay_mesh_sdk::{About, Context, Identity};

/// OpenCode, as the mesh meets it.
pub struct OpenCode;

impl Identity for OpenCode {
    fn describe() -> About {
        About {
            harness: "opencode".into(),
            title: "OpenCode".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: Vec::new(),
            // One server process for all sessions of a folder, subagents included: each call is told
            // apart by the ticket that the connector adds.
            connection_per_session: false,
        }
    }
}

/// The host's text goes into the system text of every request, where the connector puts it.
impl Context for OpenCode {}

relay_mesh_sdk::export!(OpenCode, commands, manifest = "../adapter.toml");
