//! How an agent's thread is set up: what it may change, who is asked, and which servers it has.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::driver::{Abilities, Agent, Approvals, Extensions, Launch, Reach};
use serde_json::{Map, Value, json};

use crate::runner::other_servers;

/// After how many seconds a thread that nobody has open any more leaves the server.
const UNLOADS_S: u32 = 3;

/// What can be done over the app server.
pub(super) fn abilities() -> Abilities {
    let turns = Abilities::STEER | Abilities::INTERRUPT | Abilities::ASK | Abilities::RESUME;
    turns | Abilities::CONTEXT | Abilities::TAILOR
}

/// The server's command line. Hooks and plugins are switched off for the whole server: a thread cannot do that.
pub(super) fn launch(name: &str, agent: &Agent) -> Result<Launch, Error> {
    match (agent.extensions, agent.reach) {
        (Extensions::All, Reach::Look | Reach::Edit) => Err(Error::Unsupported(
            "Codex runs the user's own hooks, plugins and MCP servers outside of its sandbox".into(),
        )),
        (Extensions::All, Reach::Work | Reach::Unguarded) => Ok(Launch::of(name)),
        (Extensions::None | Extensions::Mesh, _) => Ok(Launch::of(name).option("without-hooks", [])),
    }
}

/// What `thread/start` and `thread/resume` take.
pub(super) fn parameters(agent: &Agent) -> Result<Value, Error> {
    let sandbox = match agent.reach {
        Reach::Look => "read-only",
        Reach::Edit | Reach::Work => "workspace-write",
        Reach::Unguarded => "danger-full-access",
    };
    let approvals = match (agent.reach, agent.approvals) {
        (Reach::Unguarded, _) | (_, Approvals::Refuse) => "never",
        (_, Approvals::Ask) => "on-request",
    };
    let mut config = Map::new();
    if agent.reach == Reach::Edit {
        // The folder alone: without the temporary folders, further folders of the settings, and the network.
        let narrow = json!({
            "exclude_slash_tmp": true,
            "exclude_tmpdir_env_var": true,
            "network_access": false,
            "writable_roots": [],
        });
        config.insert("sandbox_workspace_write".to_owned(), narrow);
    }
    for (name, value) in &agent.settings {
        let value: Value = serde_json::from_str(value)
            .map_err(|error| Error::Failed(format!("the value of `{name}` is no JSON: {error}")))?;
        config.insert(name.clone(), value);
    }
    if let Some(effort) = &agent.effort {
        config.insert("model_reasoning_effort".to_owned(), json!(effort));
    }
    if let Some(prompt) = &agent.compaction {
        config.insert("compact_prompt".to_owned(), json!(prompt));
    }
    // Beside the variables that the user's settings give to commands.
    for (name, value) in &agent.environment {
        config.insert(format!("shell_environment_policy.set.{name}"), json!(value));
    }
    if !agent.environment.is_empty() {
        // The server goes on for others: what a thread that was ended has started is not to wait for half an hour.
        config.insert("thread_unload_delay_secs".to_owned(), json!(UNLOADS_S));
    }
    for (name, server) in servers(agent)? {
        config.insert(format!("mcp_servers.{name}"), server);
    }
    let mut parameters = json!({
        "cwd": agent.folder,
        "sandbox": sandbox,
        "approvalPolicy": approvals,
        "config": config,
        "developerInstructions": agent.guidance,
    });
    if let Some(model) = &agent.model {
        parameters["model"] = json!(model);
    }
    if let Some(base) = &agent.base {
        parameters["baseInstructions"] = json!(base);
    }
    Ok(parameters)
}

/// Our own server, and those of the user that are left out, each with what the settings say of it.
fn servers(agent: &Agent) -> Result<Vec<(String, Value)>, Error> {
    let ours = &agent.installation;
    let mut servers = Vec::new();
    match agent.extensions {
        Extensions::All => return Ok(servers),
        Extensions::None => {}
        Extensions::Mesh => {
            let Some((command, arguments)) = ours.server.split_first() else { return Ok(servers) };
            let variables: Map<String, Value> = ours
                .environment
                .iter()
                .chain(&agent.environment)
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect();
            let own = json!({
                "command": command,
                "args": arguments,
                "env": variables,
                "default_tools_approval_mode": "approve",
            });
            servers.push((ours.server_name.clone(), own));
        }
    }
    for name in other_servers()? {
        if agent.extensions == Extensions::None || name != ours.server_name {
            servers.push((format!("{name}.enabled"), json!(false)));
        }
    }
    Ok(servers)
}
