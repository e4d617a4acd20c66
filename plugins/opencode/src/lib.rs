//! The OpenCode adapter. A connector (`assets/connector.ts`), which the install puts among OpenCode's plugins, does
//! what only code inside OpenCode can do. This crate says what the connector's events mean to the mesh, sets
//! OpenCode up, and delivers to sessions over HTTP.
//!
//! The README beside this crate says what it relies on and how each point was observed.

mod commands;
mod driver;
mod hooks;
mod http;
mod install;
mod payload;
mod push;
mod runner;
mod servers;
mod sessions;

use relay_mesh_sdk::{About, Context, Identity};

/// The adapter for OpenCode.
pub struct OpenCode;

impl Identity for OpenCode {
    fn describe() -> About {
        About {
            harness: "opencode".into(),
            title: "OpenCode".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: Vec::new(),
            // One server process for all sessions of a folder, subagents included. The ticket that the connector
            // adds tells their calls apart.
            connection_per_session: false,
        }
    }
}

/// Passes the host's text on; the connector puts it into the system text of every request.
impl Context for OpenCode {}

relay_mesh_sdk::export!(OpenCode, [commands, driver, runner], manifest = "../adapter.toml");
