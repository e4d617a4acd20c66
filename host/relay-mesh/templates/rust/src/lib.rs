//! The {{title}} adapter. It only translates between {{title}}'s hooks and settings and the types of relay-mesh.
//! README.md describes the harness; change both to match yours.

mod hooks;
mod install;

use relay_mesh_sdk::sessions::{Detection, Caller};
use relay_mesh_sdk::{About, Context, Error, Identity, Push, Session, Sessions};

/// The adapter for {{title}}.
pub struct Harness;

impl Identity for Harness {
    fn describe() -> About {
        About {
            harness: "{{name}}".into(),
            title: "{{title}}".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: Vec::new(),
            // Each session starts its own MCP server. If one server serves several sessions, say false.
            connection_per_session: true,
        }
    }
}

impl Sessions for Harness {
    /// The server's environment names the session that started it, which may have moved on, so it is inherited.
    /// Only what this very call proves is certain.
    fn detect(seen: &Caller) -> Result<Option<Detection>, Error> {
        let Some(session) = seen.variable("{{NAME}}_SESSION") else { return Ok(None) };
        Ok(Some(Detection::inherited(Session::new(session, seen.workdir.as_deref().unwrap_or_default()))))
    }
}

/// Passes the host's text on; the hooks of a session's start and after registration show it.
impl Context for Harness {}

/// Nothing wakes an idle session: mail waits for the next tool, the end of a turn, or until the agent reads it. If
/// other programs can reach your harness (a socket, a command line, a file that it watches), say how in `routes`
/// and `deliver`.
impl Push for Harness {}

relay_mesh_sdk::export!(Harness, manifest = "../adapter.toml");
