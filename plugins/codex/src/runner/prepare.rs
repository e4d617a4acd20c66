//! The command line of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::{Extensions, Launch, Reach, Start, StopSignal, Task};

use super::settings;

pub(super) fn prepare(task: &Task) -> Result<Launch, Error> {
    // Its events name no single answer of its model.
    for (is_asked, what, untold) in [
        (task.turns.is_some(), "turns", "how often its model has answered"),
        (task.cost.is_some(), "cost", "what it costs"),
    ] {
        if is_asked {
            let why = format!("Codex does not tell {untold}, so no limit of {what} can be kept");
            return Err(Error::Unsupported(why));
        }
    }
    let launch = Launch::of("task").option_if("model", task.model.as_deref());
    let launch = match &task.schema {
        Some(schema) => launch.option("schema", []).file("schema.json", schema.as_str()),
        None => launch,
    };
    let launch = launch.option_if("guidance", task.guidance.as_deref().map(string));
    let launch = match task.extensions {
        Extensions::All => with_all(task, launch)?,
        Extensions::None => without_servers(task, launch)?.option("without-instructions", []),
        Extensions::Mesh => with_ours(task, without_servers(task, launch)?),
    };
    let launch = match task.reach {
        Reach::Look => launch.option("looking", []),
        Reach::Edit => launch.option("editing", []),
        Reach::Work => launch.option("working", []),
        Reach::Unguarded => launch.option("unguarded", []),
    };
    let launch = match &task.start {
        Start::Fresh(_) => launch.option("fresh", []),
        Start::Resume(thread) => launch.option("resume", [thread.as_str()]),
        Start::Fork(thread) => launch.option("fork", [thread.as_str()]),
    };
    // Codex prints nothing more after either signal; an interrupt lets it end its commands.
    Ok(launch.stop(StopSignal::Interrupt, 3_000).stop(StopSignal::Terminate, 2_000))
}

/// With the user's own hooks, plugins and MCP servers, which run outside of Codex's sandbox.
fn with_all(task: &Task, launch: Launch) -> Result<Launch, Error> {
    match task.reach {
        Reach::Look | Reach::Edit => Err(Error::Unsupported(
            "Codex runs the user's own hooks, plugins and MCP servers outside of its sandbox".into(),
        )),
        Reach::Work | Reach::Unguarded => Ok(launch),
    }
}

/// Without hooks, and without each MCP server that a settings file names: there is no flag for all of them.
fn without_servers(task: &Task, launch: Launch) -> Result<Launch, Error> {
    let mut launch = launch.option("without-hooks", []);
    for name in other_servers()? {
        if task.extensions != Extensions::Mesh || name != task.installation.server_name {
            launch = launch.option("without-server", [name.as_str()]);
        }
    }
    Ok(launch)
}

/// The MCP servers that the user's and the project's settings name.
pub(crate) fn other_servers() -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = Vec::new();
    for (root, path) in [("config", "config.toml"), ("project", ".codex/config.toml")] {
        for name in settings(root, path)?.map(|settings| settings.keys(&["mcp_servers"])).unwrap_or_default() {
            let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
            if !is_plain || name.is_empty() {
                return Err(Error::Unsupported(format!(
                    "Codex cannot leave out the MCP server `{name}` of {path}: its name is not a plain one"
                )));
            }
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Ok(names)
}

/// With our own server. A server of this name in the settings is one of ours, and its address may be a URL, beside
/// which Codex takes no command.
fn with_ours(task: &Task, launch: Launch) -> Launch {
    let has_url = |root: &str, path: &str| {
        let name = task.installation.server_name.as_str();
        settings(root, path)
            .ok()
            .flatten()
            .is_some_and(|settings| settings.get(&["mcp_servers", name, "url"]).is_some())
    };
    // Hooks need the user's trust, which is theirs to give, and cannot be told apart from others'.
    let launch = launch.without(true, "no hooks, so mail is shown only when it is fetched");
    if has_url("config", "config.toml") || has_url("project", ".codex/config.toml") {
        return launch;
    }
    let installation = &task.installation;
    let (command, arguments) =
        installation.server.split_first().map_or(("relay-mesh", &[][..]), |(first, rest)| (first, rest));
    let arguments: Vec<String> = arguments.iter().map(string).collect();
    let variables: Vec<String> =
        installation.environment.iter().map(|(name, value)| format!("{}={}", string(name), string(value))).collect();
    let values = [string(command), format!("[{}]", arguments.join(",")), format!("{{{}}}", variables.join(","))];
    launch.option("own-server", values.iter().map(String::as_str))
}

/// A text as TOML. JSON's escapes are a part of TOML's.
fn string(text: impl AsRef<str>) -> String {
    serde_json::Value::from(text.as_ref()).to_string().replace('\u{7f}', "\\u007f")
}
