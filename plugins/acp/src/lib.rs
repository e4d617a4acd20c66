//! The adapter for any agent that speaks the Agent Client Protocol: the user names its program. It only speaks the
//! protocol's dialect of the sdk.
//!
//! The README beside it says what it relies on and how each point was observed.

use relay_mesh_sdk::optional::driver::acp::Acp;
use relay_mesh_sdk::optional::driver::{Action, Agent, Connection, Driver, Exchange, Launch, Reach};
use relay_mesh_sdk::{About, Context, Error, Hooks, Identity, Install, Push, Sessions};

/// The adapter for any ACP agent.
pub struct AnyAgent;

const ACP: Acp = Acp { name: "acp" };

impl Identity for AnyAgent {
    fn describe() -> About {
        About {
            harness: "acp".into(),
            title: "Any ACP agent".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: Vec::new(),
            connection_per_session: true,
        }
    }
}

impl Sessions for AnyAgent {}
impl Context for AnyAgent {}
impl Push for AnyAgent {}
impl Install for AnyAgent {}
impl Hooks for AnyAgent {}

impl Driver for AnyAgent {
    fn connections(agent: &Agent, _: Option<&str>) -> Result<Vec<Connection>, Error> {
        match agent.reach {
            Reach::Look | Reach::Edit | Reach::Work => Err(Error::Unsupported(
                "a program that you name keeps no reach that could be relied on: say `--reach unguarded`".into(),
            )),
            Reach::Unguarded => Ok(vec![ACP.connection(Launch::of(ACP.name))]),
        }
    }

    fn connect(_: &str) -> Result<Exchange, Error> {
        ACP.connect()
    }

    fn act(memory: Option<&str>, action: Action) -> Result<Exchange, Error> {
        ACP.act(memory, action)
    }

    fn receive(memory: Option<&str>, frames: &[String]) -> Result<Exchange, Error> {
        ACP.receive(memory, frames)
    }
}

relay_mesh_sdk::export!(AnyAgent, [driver], manifest = "../adapter.toml");

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::agent;

    use super::*;

    #[test]
    fn it_promises_no_guard_that_it_cannot_keep() {
        let of = |reach| AnyAgent::connections(&Agent { reach, ..agent() }, None);
        for reach in [Reach::Look, Reach::Edit, Reach::Work] {
            assert!(matches!(of(reach), Err(Error::Unsupported(why)) if why.contains("--reach unguarded")));
        }
        let offered = of(Reach::Unguarded).expect("a connection");
        let start = &offered[0].start;
        assert_eq!((offered.len(), start.run.as_str(), start.choices.len(), start.files.len()), (1, "acp", 0, 0));
    }
}
