//! Drives agents by the Agent Client Protocol: `opencode acp`. The settings have the guards of a run.

#[cfg(test)]
mod tests;

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::driver::acp::Acp;
use relay_mesh_sdk::optional::driver::{Action, Agent, Connection, Driver, Exchange, Launch, Reach};

use crate::OpenCode;
use crate::runner::prepare;

const ACP: Acp = Acp { name: "acp" };

impl Driver for OpenCode {
    fn connections(agent: &Agent, _: Option<&str>) -> Result<Vec<Connection>, Error> {
        let mut launch = prepare(&agent.task(None))?;
        // `opencode acp` takes none of them: the agent with the guards is the default one of the settings instead, and
        // the protocol names model and session.
        launch.choices.retain(|choice| choice.name == "without-plugins");
        if let Some((_, settings)) = launch.environment.iter_mut().find(|(name, _)| name == "OPENCODE_CONFIG_CONTENT") {
            *settings = with_defaults(settings, agent)?;
        }
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

/// The settings of a run, with the agent and the model that the command line of a run names.
fn with_defaults(settings: &str, agent: &Agent) -> Result<String, Error> {
    let mut settings: serde_json::Value =
        serde_json::from_str(settings).map_err(|error| Error::Failed(error.to_string()))?;
    match agent.reach {
        Reach::Look | Reach::Edit => settings["default_agent"] = "relay-run".into(),
        Reach::Work => {}
        Reach::Unguarded => settings["permission"] = "allow".into(),
    }
    if let Some(model) = &agent.model {
        settings["model"] = model.as_str().into();
    }
    Ok(settings.to_string())
}
