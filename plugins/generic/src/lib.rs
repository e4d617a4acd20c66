//! Any MCP client: one that this mesh knows nothing about but that it speaks MCP.

use relay_mesh_sdk::{About, Context, Hooks, Identity, Install, Push, Sessions};

/// Any MCP client.
pub struct Generic;

impl Identity for Generic {
    fn describe() -> About {
        About {
            harness: "generic".into(),
            title: "Any MCP client".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: vec!["mcp".into()],
            connection_per_session: true,
        }
    }
}
impl Sessions for Generic {}
impl Context for Generic {}
impl Push for Generic {}
impl Install for Generic {}
impl Hooks for Generic {}

relay_mesh_sdk::export!(Generic, manifest = "../adapter.toml");
