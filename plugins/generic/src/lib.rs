//! The adapter for any MCP client without an adapter of its own. One connection is one session. There are no hooks,
//! so the agent reads its mail with a tool, and a desktop notification tells the user that mail waits.

mod clients;
mod notice;
mod setup;

use relay_mesh_sdk::{About, Context, Error, Hooks, Identity, Occasion, Sessions};

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

/// Added to the protocol, because nothing delivers mail by itself.
const FETCH: &str = "Mail does not arrive by itself in this client: call fetch_messages when you start, between steps \
                     of longer work, and with wait_seconds if you need an answer to go on.";

impl Context for Generic {
    fn protocol(base: String, _moment: Occasion, _agent: Option<&str>) -> Result<Option<String>, Error> {
        Ok(Some(format!("{base}\n- {FETCH}")))
    }
}

/// The host knows the connection, and nothing else identifies a session.
impl Sessions for Generic {}

/// There are no hooks.
impl Hooks for Generic {}

relay_mesh_sdk::export!(Generic, manifest = "../adapter.toml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_says_that_mail_must_be_fetched() {
        let said = Generic::protocol("Base.".into(), Occasion::Start, None).expect("it is said").unwrap_or_default();
        assert!(said.starts_with("Base.\n- ") && said.contains("wait_seconds"), "{said}");
    }

    #[test]
    fn nothing_is_matched_as_a_session() {
        assert_eq!(Generic::discover(), Err(Error::Unsupported("this harness keeps no list of its sessions".into())));
    }
}
