//! The Claude Code adapter. It only translates between Claude Code's hooks, settings and call metadata and the
//! types of the mesh; `memory` holds what it must remember between calls.
//!
//! The README beside this crate and `docs/adr/0003-how-claude-code-sessions-are-bound.md` say what it relies on and
//! how each point was observed.

mod driver;
mod evidence;
mod hooks;
mod install;
mod memory;
mod payload;
mod push;
mod runner;
mod sessions;
mod transcript;

use relay_mesh_sdk::{About, Context, Error, Identity, Occasion};

/// The adapter for Claude Code.
pub struct ClaudeCode;

impl Identity for ClaudeCode {
    fn describe() -> About {
        About {
            harness: "claude-code".into(),
            title: "Claude Code".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: vec!["claude".into()],
            // One server process per window: it and its agent outlive a /clear. Subagents call through it too; the
            // hooks tell their calls apart.
            connection_per_session: true,
        }
    }
}

/// The model reads the instructions of our MCP server, which are the host's text, in each request.
impl Context for ClaudeCode {
    /// Only who the agent is, and not where the answer to its registration has just said that.
    fn protocol(base: String, occasion: Occasion, agent: Option<&str>) -> Result<Option<String>, Error> {
        let who = base.lines().next().map(str::to_owned);
        Ok(who.filter(|_| agent.is_some() && occasion != Occasion::Registration))
    }
}

relay_mesh_sdk::export!(ClaudeCode, [driver, evidence, runner], manifest = "../adapter.toml");
