//! The command line of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::install::is_hook_line;
use relay_mesh_sdk::optional::runner::{Extensions, Launch, Reach, Start, StopSignal, Task};
use serde_json::{Map, Value};

use super::settings;

/// The settings files of a user and of a project.
const SETTINGS: [(&str, &str); 2] = [("config", "settings.json"), ("project", ".gemini/settings.json")];
/// Tools that only look.
const LOOKING: &str = r#""read_file", "read_many_files", "glob", "grep_search", "list_directory", "update_topic""#;
/// Tools that write files, in the folder alone.
const EDITING: &str = r#", "write_file", "replace""#;

pub(crate) fn prepare(task: &Task) -> Result<Launch, Error> {
    if task.cost.is_some() {
        return Err(Error::Unsupported(
            "Gemini CLI does not tell what it costs, so no limit of cost can be kept".into(),
        ));
    }
    let launch = match &task.start {
        Start::Fresh(id) => Launch::of("task").option("session", [id.as_str()]),
        Start::Resume(session) => Launch::of("task").option("resume", [session.as_str()]),
        Start::Fork(_) => return Err(Error::Unsupported("Gemini CLI cannot continue a copy of a session".into())),
    };
    let launch = launch.option_if("model", task.model.as_deref());
    let launch = match task.extensions {
        Extensions::All => launch,
        Extensions::None => without_theirs(task, launch)?,
        Extensions::Mesh => without_theirs(task, launch)?,
    };
    let launch = match (task.reach, task.extensions) {
        (Reach::Look | Reach::Edit, Extensions::All) => {
            return Err(Error::Unsupported(
                "Gemini CLI cannot hold back what the user's own hooks, extensions and MCP servers change".into(),
            ));
        }
        (Reach::Look, _) => guarded(task, launch.option("looking", []), LOOKING),
        (Reach::Edit, _) => guarded(task, launch.option("editing", []), &format!("{LOOKING}{EDITING}")),
        (Reach::Work, _) => launch.option("editing", []),
        (Reach::Unguarded, _) => launch.option("unguarded", []),
    };
    Ok(with_own_settings(task, launch)?
        .set("GEMINI_CLI_NO_RELAUNCH", "")
        .without(task.schema.is_some(), "no schema: only the task's text can ask for it")
        .without(task.guidance.is_some(), "no place for guidance")
        .stop(StopSignal::Terminate, 2_000))
}

/// For a run that is to have nothing of the project's, settings that come before the user's and the project's: those of
/// the administrator, whose place they take, and a name of files with instructions that no project can know. GEMINI.md is
/// read all the same.
fn with_own_settings(task: &Task, launch: Launch) -> Result<Launch, Error> {
    if task.extensions != Extensions::None {
        return Ok(launch);
    }
    let mut all = match settings("managed", "settings.json")? {
        Value::Object(all) => all,
        _ => Map::new(),
    };
    if let Value::Object(context) = all.entry("context").or_insert_with(|| Value::Object(Map::new())) {
        context.insert("fileName".to_owned(), format!("{}.md", task.id).into());
    }
    Ok(launch.set("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "").file("settings.json", format!("{:#}\n", Value::Object(all))))
}

/// Rules by which only these tools can be used at all. Without them, a tool that the user's settings allow would be
/// offered in every mode: the mode alone is no guard.
fn guarded(task: &Task, launch: Launch, tools: &str) -> Launch {
    let ours = match task.extensions {
        Extensions::Mesh => rule(&format!("\"*\"\nmcpName = \"{}\"", task.installation.server_name), "allow", 950),
        Extensions::None | Extensions::All => String::new(),
    };
    let policy = format!("{}{}{ours}", rule("\"*\"", "deny", 900), rule(&format!("[{tools}]"), "allow", 950));
    launch.option("policy", []).file("policy.toml", policy)
}

fn rule(tools: &str, decision: &str, priority: u32) -> String {
    format!("[[rule]]\ntoolName = {tools}\ndecision = \"{decision}\"\npriority = {priority}\n\n")
}

/// Without extensions and MCP servers, for which there are flags. For hooks there is none, and none for a command by
/// which the settings find tools: where the settings have one, the promise cannot be kept.
fn without_theirs(task: &Task, launch: Launch) -> Result<Launch, Error> {
    let name = task.installation.server_name.as_str();
    let (mut is_set_up, mut has_our_hooks) = (false, false);
    for (root, path) in SETTINGS {
        let settings = settings(root, path)?;
        is_set_up |= settings.pointer(&format!("/mcpServers/{name}")).is_some();
        for pointer in ["/tools/discoveryCommand", "/toolDiscoveryCommand"] {
            if settings.pointer(pointer).is_some_and(|command| !command.is_null()) {
                let why = format!("Gemini CLI cannot leave out the command in {path} that finds tools");
                return Err(Error::Unsupported(why));
            }
        }
        match hooks(&settings) {
            Hooks::None => {}
            Hooks::Ours => has_our_hooks = true,
            Hooks::Theirs => {
                return Err(Error::Unsupported(format!("Gemini CLI cannot leave out the hooks in {path}")));
            }
        }
    }
    let joins = task.extensions == Extensions::Mesh && is_set_up;
    let launch = launch
        .option("without-extensions", [])
        .option("servers", [if joins { name } else { "none" }])
        .without(
            task.extensions == Extensions::Mesh && !is_set_up,
            "not on the mesh: `relay-mesh install gemini-cli` sets it up",
        )
        .without(
            task.extensions == Extensions::Mesh && is_set_up && !has_our_hooks,
            "no hooks, so mail is shown only when it is fetched",
        )
        .without(
            task.extensions == Extensions::None,
            "the project's GEMINI.md is read: there is no way to leave it out",
        )
        .without(task.extensions == Extensions::None && has_our_hooks, "relay-mesh's own hooks stay");
    Ok(launch)
}

enum Hooks {
    None,
    Ours,
    Theirs,
}

/// Whose hooks a settings file has.
fn hooks(settings: &Value) -> Hooks {
    if settings.pointer("/hooksConfig/enabled") == Some(&Value::Bool(false)) {
        return Hooks::None;
    }
    let events = settings["hooks"].as_object().into_iter().flatten();
    let groups = events.filter_map(|(_, groups)| groups.as_array()).flatten();
    let handlers = groups.filter_map(|group| group["hooks"].as_array()).flatten();
    let lines: Vec<&str> = handlers.map(|handler| handler["command"].as_str().unwrap_or_default()).collect();
    match lines.iter().all(|line| is_hook_line(line, "gemini-cli")) {
        _ if lines.is_empty() => Hooks::None,
        true => Hooks::Ours,
        false => Hooks::Theirs,
    }
}
