//! The Codex adapter. It translates between Codex's hooks, settings, call metadata and app server and the types of
//! the mesh.
//!
//! The README beside this crate says what it relies on and how each point was observed.

mod app_server;
mod commands;
mod hooks;
mod install;
mod payload;
mod push;
mod runner;
mod sessions;
mod terminals;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::{About, Context, Identity};

/// The adapter for Codex.
pub struct Codex;

impl Identity for Codex {
    fn describe() -> About {
        About {
            harness: "codex".into(),
            title: "Codex".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: vec!["codex-cli".into()],
            // One server process per thread, and a subagent is a thread of its own.
            connection_per_session: true,
        }
    }
}

/// Passes the host's text on; the SessionStart hook and the hook after registration show it.
impl Context for Codex {}

relay_mesh_sdk::export!(Codex, [commands, runner], manifest = "../adapter.toml");
