//! The interfaces that only some adapters export, listed in [`abilities`]. `runner` and `driver` have files of their own.
//! `evidence` is not among them: it judges what a real session has written, and no session is real here.

use std::io;

use mesh::commands::{Command, CommandStage};
use mesh::ports::harness::{Harness as _, HarnessError};
use mesh::ports::machine::Instant;
use mesh::sessions::Session;

use crate::report::{Ability, Check};
use crate::{Bench, is_fault};

/// The ability that each optional interface gives.
pub(crate) async fn abilities(bench: &Bench<'_>) -> io::Result<Vec<Ability>> {
    Ok(vec![
        Ability::of("commands", commands(bench).await?),
        Ability::of("tasks", crate::runs::checks(bench).await?),
        Ability::of("driving", crate::driving::checks(bench).await?),
    ])
}

/// Commands to plan: a name that no harness has, names that many have, and arguments that try to be more than text.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("/relay-mesh-has-no-such-command", &[]),
    ("/compact", &[]),
    ("/review", &["src/parser", "é🥊 \u{2028}"]),
    ("/review", &["!`touch it`", "$(touch it)", "@/etc/hostname", "/compact", "\"'", ""]),
];

/// The plan for each command in a session that is not live. None is run: a plan promises that nothing happens,
/// and the effect of a run can be seen only with the harness.
async fn commands(bench: &Bench<'_>) -> io::Result<Vec<Check>> {
    let stage = bench.scratch.stage()?;
    let name = &bench.scratch.manifest.name;
    let mut checks = Vec::new();
    for (command, arguments) in COMMANDS {
        let adapter = match stage.adapter().await {
            Ok(adapter) => adapter,
            Err(error) => {
                checks.push(Check::failed("plan", "an adapter", error.to_string(), "see what it says"));
                break;
            }
        };
        let Some(commands) = adapter.optional().commands else {
            checks.push(Check::absent("plan", "it does not export `commands`: they wait for its agents to take them"));
            break;
        };
        let told = format!("plan {command} {}", arguments.join(" ").escape_debug());
        let hint = "answer `unsupported` with the reason where a command cannot be run in this session";
        let planned = commands.plan(&gone(), &asked(command, arguments)).await;
        checks.push(match planned {
            Err(error) if is_fault(name, &error) => Check::failed(told, "an answer", error.to_string(), hint),
            Err(HarnessError::Failed(why)) => Check::failed(told, "a reason to leave it to others", why, hint),
            Err(error) => Check::held(told, error.to_string()),
            Ok(means) => Check::failed(told, "no means, for no such session lives", means.name, hint),
        });
    }
    stage.close().await?;
    Ok(checks)
}

/// A session that is not live.
fn gone() -> Session {
    let id = "relay-mesh-has-no-such-session".to_owned();
    Session { id, parent: None, workdir: "/".to_owned(), process: None, route_hint: None }
}

fn asked(command: &str, arguments: &[&str]) -> Command {
    Command {
        id: "01JD0000000000000000000000".parse().expect("a constant of ours is an id"),
        from: "bob".parse().expect("a constant of ours is a name"),
        to: "alice".parse().expect("a constant of ours is a name"),
        command: command.parse().expect("a constant of ours is a command"),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        trace: None,
        created: Instant(0),
        expires: Instant(1),
        stage: CommandStage::Pending { waits: None },
    }
}
