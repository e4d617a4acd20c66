//! The Gemini CLI adapter. It only translates between Gemini CLI's hooks and settings and the types of the mesh;
//! `memory` holds what it must remember between calls.
//!
//! The README beside it says what it relies on and how each point was observed.

mod hooks;
mod install;
mod memory;
mod payload;
mod push;
mod runner;

use relay_mesh_sdk::{About, Context, Identity, Sessions};

/// The adapter for Gemini CLI.
pub struct GeminiCli;

impl Identity for GeminiCli {
    fn describe() -> About {
        About {
            harness: "gemini-cli".into(),
            title: "Gemini CLI".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: vec!["gemini".into()],
            // One server process per window: it and its agent outlive a /clear.
            connection_per_session: true,
        }
    }
}

/// Neither tools/call nor the server's environment names the session. The ticket that our BeforeTool hook puts into
/// the arguments does.
impl Sessions for GeminiCli {}

/// Passes the host's text on; the hooks of a session's start, of a prompt and of a tool show it.
impl Context for GeminiCli {}

relay_mesh_sdk::export!(GeminiCli, [runner], manifest = "../adapter.toml");
