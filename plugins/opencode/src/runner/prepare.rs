//! The command line of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::optional::runner::{Extensions, Launch, Reach, Start, StopSignal, Task};
use serde_json::{Map, Value, json};

/// Where OpenCode reads settings.
const SETTINGS: [(&str, &str); 7] = [
    ("config", "config.json"),
    ("config", "opencode.json"),
    ("config", "opencode.jsonc"),
    ("project", "opencode.json"),
    ("project", "opencode.jsonc"),
    ("project", ".opencode/opencode.json"),
    ("project", ".opencode/opencode.jsonc"),
];

pub(crate) fn prepare(task: &Task) -> Result<Launch, Error> {
    let launch = Launch::of("task").option_if("model", task.model.as_deref());
    let launch = match &task.start {
        Start::Fresh(_) => launch,
        Start::Resume(session) => launch.option("resume", [session.as_str()]),
        Start::Fork(session) => launch.option("resume", [session.as_str()]).option("fork", []),
    };
    let servers = match task.extensions {
        Extensions::All => Map::new(),
        Extensions::None => without_theirs(None)?,
        Extensions::Mesh => {
            let mut servers = without_theirs(Some(&task.installation.server_name))?;
            servers.insert(task.installation.server_name.clone(), own_server(task));
            servers
        }
    };
    let launch = match task.extensions {
        Extensions::All => launch,
        Extensions::None | Extensions::Mesh => launch.option("without-plugins", []),
    };
    let is_alone = task.extensions == Extensions::None;
    let mut settings = json!({"autoupdate": false, "share": "disabled", "mcp": servers});
    let launch = match (task.reach, task.extensions) {
        (Reach::Look | Reach::Edit, Extensions::All) => {
            return Err(Error::Unsupported("OpenCode cannot hold back what the user's own plugins change".into()));
        }
        (Reach::Look | Reach::Edit, Extensions::None | Extensions::Mesh) => {
            settings["agent"]["relay-run"] = json!({"mode": "primary", "permission": permissions(task)});
            launch.option("own-agent", [])
        }
        (Reach::Work, _) => launch,
        (Reach::Unguarded, _) => launch.option("unguarded", []),
    };
    let launch = launch.set("OPENCODE_CONFIG_CONTENT", settings.to_string());
    let launch = if is_alone { without_instructions(launch) } else { launch };
    Ok(launch
        .without(task.extensions == Extensions::Mesh, "no connector, so mail is shown only when it is fetched")
        .without(is_alone, "an AGENTS.md beside a file that it reads is read too: there is no way to leave it out")
        .without(task.schema.is_some(), "no schema: only the task's text can ask for it")
        .without(task.guidance.is_some(), "no place for guidance")
        .stop(StopSignal::Terminate, 3_000))
}

/// Without what the project's files tell the model, and what those of Claude Code do.
fn without_instructions(launch: Launch) -> Launch {
    launch.set("OPENCODE_DISABLE_PROJECT_CONFIG", "").set("OPENCODE_DISABLE_CLAUDE_CODE", "")
}

/// The permissions of the run's own agent, which the user's settings cannot widen. `edit` is for every tool that
/// writes a file; without `external_directory` none reaches out of the folder. The agent `plan` would not do: its shell
/// writes files.
fn permissions(task: &Task) -> Value {
    let mut permissions = json!({"*": "deny", "read": "allow", "grep": "allow", "glob": "allow", "list": "allow"});
    if task.reach == Reach::Edit {
        permissions["edit"] = json!("allow");
        permissions["external_directory"] = json!("deny");
    }
    if task.extensions == Extensions::Mesh {
        permissions[format!("{}_*", task.installation.server_name)] = json!("allow");
    }
    permissions
}

/// Every MCP server of the settings files, switched off.
fn without_theirs(ours: Option<&str>) -> Result<Map<String, Value>, Error> {
    let mut all = Map::new();
    for (root, path) in SETTINGS {
        let Some(text) = Root::open(root)?.read_text(path)? else { continue };
        let document = Document::parse(Some(&text)).map_err(|broken| Error::Failed(format!("{path}, {broken}")))?;
        let Some(Value::Object(servers)) = document.get(&["mcp"]) else { continue };
        for (name, server) in servers.into_iter().filter(|(name, _)| ours != Some(name.as_str())) {
            // Whole, because OpenCode takes no server without its kind.
            let mut off = server;
            if let Value::Object(fields) = &mut off {
                fields.insert("enabled".to_owned(), Value::Bool(false));
                all.insert(name, off);
            }
        }
    }
    Ok(all)
}

fn own_server(task: &Task) -> Value {
    let installation = &task.installation;
    let variables = installation.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    json!({
        "type": "local",
        "command": installation.server,
        "environment": variables.collect::<Map<_, _>>(),
        "enabled": true,
    })
}
