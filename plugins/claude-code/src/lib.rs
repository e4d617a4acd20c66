//! The Claude Code adapter.

use relay_mesh_sdk::{About, Context, Hooks, Identity, Install, Push, Sessions};

/// Claude Code, as the mesh meets it.
pub struct ClaudeCode;

impl Identity for ClaudeCode {
    fn describe() -> About {
        About {
            harness: "claude-code".into(),
            title: "Claude Code".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: vec!["claude".into()],
            connection_per_session: true,
        }
    }
}
impl Sessions for ClaudeCode {}
impl Context for ClaudeCode {}
impl Push for ClaudeCode {}
impl Install for ClaudeCode {}
impl Hooks for ClaudeCode {}

relay_mesh_sdk::export!(ClaudeCode, manifest = "../adapter.toml");
