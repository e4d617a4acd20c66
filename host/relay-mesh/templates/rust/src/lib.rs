//! The {{title}} adapter: pure translation between {{title}}'s hooks and settings and the words of
//! relay-mesh. What the harness does is described in README.md; change both to what yours does.

mod hooks;
mod install;

use relay_mesh_sdk::sessions::{Detection, Sighting};
use relay_mesh_sdk::{About, Context, Error, Identity, Push, Session, Sessions};

/// {{title}}, as the mesh meets it.
pub struct Harness;

impl Identity for Harness {
    fn describe() -> About {
        About {
            harness: "{{name}}".into(),
            title: "{{title}}".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: Vec::new(),
            // Each session starts an MCP server of its own. Where one server serves several, say false.
            connection_per_session: true,
        }
    }
}

impl Sessions for Harness {
    /// The server's environment names the session that started it. That may be stale by now, so it is
    /// inherited; only what this very call proves is certain.
    fn detect(seen: &Sighting) -> Result<Option<Detection>, Error> {
        let Some(session) = seen.variable("{{NAME}}_SESSION") else { return Ok(None) };
        Ok(Some(Detection::inherited(Session::new(session, seen.workdir.as_deref().unwrap_or_default()))))
    }
}

/// The host's text goes where the hooks of a session's start and after registration put it.
impl Context for Harness {}

/// Nothing wakes an idle session: mail waits for the next tool, the end of a turn or a fetch. Where your
/// harness can be called (a socket, a command line, a file that it watches), say how in `routes` and
/// `deliver`.
impl Push for Harness {}

relay_mesh_sdk::export!(Harness, manifest = "../adapter.toml");
