//! The Gemini CLI adapter. It only translates between Gemini CLI's hooks and settings and the types of the mesh;
//! `memory` holds what it must remember between calls.
//!
//! The README beside it says what it relies on and how each point was observed.

mod driver;
mod evidence;
mod hooks;
mod install;
mod memory;
mod payload;
mod push;
mod runner;
mod transcript;

use relay_mesh_sdk::{About, Context, Error, Identity, Occasion, Sessions};

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

/// The model reads the instructions of our MCP server, which are the host's text, in the session's first context.
impl Context for GeminiCli {
    /// Only who the agent is, and not where the answer to its registration has just said that.
    fn protocol(base: String, occasion: Occasion, agent: Option<&str>) -> Result<Option<String>, Error> {
        let who = base.lines().next().map(str::to_owned);
        Ok(who.filter(|_| agent.is_some() && occasion != Occasion::Registration))
    }
}

relay_mesh_sdk::export!(GeminiCli, [driver, evidence, runner], manifest = "../adapter.toml");
