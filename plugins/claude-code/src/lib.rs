//! The Claude Code adapter. Pure translation between Claude Code's hooks, settings and call metadata
//! and the words of the mesh; what it must remember between calls is in `memory`.
//!
//! What it relies on, and how each point was seen, is in the README beside this crate and in
//! `docs/adr/0003-how-claude-code-sessions-are-bound.md`.

mod hooks;
mod install;
mod memory;
mod payload;
mod push;
mod sessions;

use relay_mesh_sdk::{About, Context, Identity};

/// Claude Code, as the mesh meets it.
pub struct ClaudeCode;

impl Identity for ClaudeCode {
    fn describe() -> About {
        About {
            harness: "claude-code".into(),
            title: "Claude Code".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: vec!["claude".into()],
            // One server process per window: it outlives a /clear, and so does the agent. Subagents
            // speak through it too; their calls are told apart by the hooks.
            connection_per_session: true,
        }
    }
}

/// The host's text goes where every SessionStart hook, and the hook after registration, put it.
impl Context for ClaudeCode {}

relay_mesh_sdk::export!(ClaudeCode, manifest = "../adapter.toml");
