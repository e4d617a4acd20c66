//! The Codex adapter. Translation between Codex's hooks, settings, call metadata and app server and
//! the words of the mesh.
//!
//! What it relies on, and how each point was seen, is in the README beside this crate.

mod app_server;
mod commands;
mod hooks;
mod install;
mod payload;
mod push;
mod sessions;
mod terminals;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::{About, Context, Identity};

/// Codex, as the mesh meets it.
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

/// The host's text goes where the SessionStart hook, and the hook after registration, put it.
impl Context for Codex {}

relay_mesh_sdk::export!(Codex, commands, manifest = "../adapter.toml");
