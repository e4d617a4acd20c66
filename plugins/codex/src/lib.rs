//! The Codex adapter. It translates between Codex's hooks, settings, call metadata and app server and the types of
//! the mesh.
//!
//! The README beside this crate says what it relies on and how each point was observed.

mod app_server;
mod commands;
mod driver;
mod hooks;
mod install;
mod payload;
mod push;
mod runner;
mod sessions;
mod terminals;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::{About, Context, Error, Identity, Occasion};

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

/// The host's text, but not where the answer to a registration has just said who the agent is.
impl Context for Codex {
    fn protocol(base: String, occasion: Occasion, _: Option<&str>) -> Result<Option<String>, Error> {
        Ok((occasion != Occasion::Registration).then_some(base))
    }
}

relay_mesh_sdk::export!(Codex, [commands, driver, runner], manifest = "../adapter.toml");
