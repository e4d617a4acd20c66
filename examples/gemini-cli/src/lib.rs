//! The Gemini CLI adapter. Pure translation between Gemini CLI's hooks and settings and the words of the
//! mesh; what it must remember between calls is in `memory`.
//!
//! What it relies on, and how each point was seen, is in the README beside it.

mod hooks;
mod install;
mod memory;
mod payload;
mod push;

use relay_mesh_sdk::{About, Context, Identity, Sessions};

/// Gemini CLI, as the mesh meets it.
pub struct GeminiCli;

impl Identity for GeminiCli {
    fn describe() -> About {
        About {
            harness: "gemini-cli".into(),
            title: "Gemini CLI".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: vec!["gemini".into()],
            // One server process per window, which outlives a /clear, and so does the agent.
            connection_per_session: true,
        }
    }
}

/// Neither tools/call nor the server's environment names the session: the ticket that our BeforeTool hook
/// puts into the arguments does.
impl Sessions for GeminiCli {}

/// The host's text goes where the hooks of a session's start, of a prompt and of a tool put it.
impl Context for GeminiCli {}

relay_mesh_sdk::export!(GeminiCli, manifest = "../adapter.toml");
