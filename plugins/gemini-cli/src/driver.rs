//! Drives agents by the Agent Client Protocol: `gemini --acp`. The command line has the guards of a run.

#[cfg(test)]
mod tests;

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::driver::acp::Acp;
use relay_mesh_sdk::optional::driver::{Action, Agent, Connection, Driver, Exchange, Launch};

use crate::GeminiCli;
use crate::runner::prepare;

const ACP: Acp = Acp { name: "acp" };

impl Driver for GeminiCli {
    fn connections(agent: &Agent, _: Option<&str>) -> Result<Vec<Connection>, Error> {
        let mut launch = prepare(&agent.task(None))?;
        // The protocol names the session.
        launch.choices.retain(|choice| choice.name != "session");
        Ok(vec![ACP.connection(Launch { run: ACP.name.to_owned(), ..launch })])
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
