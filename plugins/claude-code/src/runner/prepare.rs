//! The command line of a run.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Action, Scope, Server, Setup};
use relay_mesh_sdk::optional::runner::{Extensions, Launch, Reach, Start, StopSignal, Task};
use serde_json::{Value, json};

use super::settings;
use crate::install::{personal_server, run_hooks};

/// The most of the instructions in CLAUDE.md files that a run without extensions is given.
const MOST_INSTRUCTIONS: usize = 64 * 1024;

pub(crate) fn prepare(task: &Task) -> Result<Launch, Error> {
    let launch = base(task);
    match task.extensions {
        Extensions::All => with_all(task, launch),
        Extensions::None | Extensions::Mesh => with_ours_alone(task, launch),
    }
}

/// What every run has. An interrupt makes Claude Code end its tools and print its result.
fn base(task: &Task) -> Launch {
    let launch = match &task.start {
        Start::Fresh(id) => Launch::of("task").option("session", [id.as_str()]),
        Start::Resume(session) => Launch::of("task").option("resume", [session.as_str()]),
        Start::Fork(session) => Launch::of("task").option("resume", [session.as_str()]).option("fork", []),
    };
    launch
        .option_if("model", task.model.as_deref())
        .option_if("schema", task.schema.as_deref())
        .option_if("turns", task.turns.map(|turns| turns.to_string()))
        .option_if("cost", task.cost.map(dollars))
        .stop(StopSignal::Interrupt, 5_000)
        .stop(StopSignal::Terminate, 3_000)
}

/// With the user's own hooks, plugins and MCP servers. These are programs of the user, which no flag of Claude Code
/// keeps from writing.
fn with_all(task: &Task, launch: Launch) -> Result<Launch, Error> {
    let launch = match task.reach {
        Reach::Look | Reach::Edit => {
            return Err(Error::Unsupported(
                "Claude Code cannot hold back what the user's own hooks, plugins and MCP servers change".into(),
            ));
        }
        Reach::Work => launch.option("accept-edits", []),
        Reach::Unguarded => launch.option("unguarded", []),
    };
    Ok(guided(launch, task.guidance.as_deref().unwrap_or_default()))
}

/// Without the user's settings files, whose hooks and plugins cannot be left out alone. What else is in them comes as
/// a file of the run, together with our hooks.
fn with_ours_alone(task: &Task, launch: Launch) -> Result<Launch, Error> {
    let setup = setup(task);
    let (hooks, servers, launch) = match task.extensions {
        Extensions::Mesh => {
            let servers = json!({&setup.server_name: personal_server(&setup)});
            (run_hooks(&setup), servers, launch.option("mesh-tools", []))
        }
        Extensions::None | Extensions::All => (Value::Null, json!({}), launch),
    };
    let settings = settings::without_extensions(task.reach, hooks)?;
    let launch = launch
        .option("own-settings", [])
        .option("own-servers", [])
        .file("settings.json", format!("{settings:#}\n"))
        .file("servers.json", format!("{:#}\n", json!({"mcpServers": servers})));
    let launch = match task.reach {
        Reach::Look => launch.option("restricted", []).option("looking", []),
        Reach::Edit => launch.option("restricted", []).option("editing", []).option("accept-edits", []),
        Reach::Work => launch.option("accept-edits", []),
        Reach::Unguarded => launch.option("unguarded", []),
    };
    Ok(guided(launch, &guidance(task)?))
}

fn guided(launch: Launch, guidance: &str) -> Launch {
    if guidance.is_empty() { launch } else { launch.option("guidance", []).file("guidance.md", guidance) }
}

/// The task's guidance, and the instructions that Claude Code would have read by itself, unless the run is to have nothing
/// of the user's or the project's. A run that only looks may look at what a stranger wrote, so it gets no instructions
/// from there.
fn guidance(task: &Task) -> Result<String, Error> {
    let mut parts: Vec<String> = task.guidance.clone().into_iter().collect();
    match (task.extensions, task.reach) {
        (Extensions::None, _) | (_, Reach::Look) => {}
        (Extensions::Mesh | Extensions::All, Reach::Edit | Reach::Work | Reach::Unguarded) => {
            for (root, path) in [("config", "CLAUDE.md"), ("project", "CLAUDE.md"), ("project", ".claude/CLAUDE.md")] {
                let text = Root::open(root)?.read_text(path)?;
                let room = MOST_INSTRUCTIONS.saturating_sub(parts.iter().map(String::len).sum());
                parts.extend(text.filter(|text| text.len() <= room));
            }
        }
    }
    Ok(parts.join("\n\n"))
}

/// The run's own server and hooks, in the shape that an installation has them.
fn setup(task: &Task) -> Setup {
    Setup {
        action: Action::Install,
        scope: Scope::User,
        server: Server::Stdio(task.installation.server.clone()),
        server_name: task.installation.server_name.clone(),
        program: task.installation.program.clone(),
        environment: task.installation.environment.clone(),
    }
}

/// Dollars with six decimals, of millionths.
fn dollars(millionths: u64) -> String {
    format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
}
