//! The smallest useful adapter: it runs tasks with a script of your own, and does nothing else.
//!
//! The script reads the task from standard input and prints lines of JSON: `{"said": "…"}` for each message of the
//! model, `{"error": "…", "status": 429}` if its server refused, and `{"done": true}` as its last word.

use relay_mesh_sdk::optional::runner::reading::{Line, Memory, at, flag, lines, number, refused, short, text};
use relay_mesh_sdk::optional::runner::{
    Abilities, Ending, Launch, Login, Outcome, OutputLine, OutputReading, ProcessExit, Reach, Readiness, RunEvent,
    Runner, StopSignal, Task,
};
use relay_mesh_sdk::{About, Context, Error, Hooks, Identity, Install, Push, Sessions, programs};
use serde::{Deserialize, Serialize};

pub struct ScriptAgent;

impl Identity for ScriptAgent {
    fn describe() -> About {
        About {
            harness: "script-agent".into(),
            title: "Script agent".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            aliases: Vec::new(),
            connection_per_session: true,
        }
    }
}
impl Sessions for ScriptAgent {}
impl Context for ScriptAgent {}
impl Push for ScriptAgent {}
impl Install for ScriptAgent {}
impl Hooks for ScriptAgent {}

/// What one read leaves for the next, which may be on another instance.
#[derive(Default, Serialize, Deserialize)]
struct Seen {
    done: bool,
    failed: Option<(Option<u16>, String)>,
}

impl Runner for ScriptAgent {
    fn ready() -> Result<Readiness, Error> {
        let version =
            programs::version("version")?.ok_or_else(|| Error::NotFound("no `script-agent` in PATH".into()))?;
        let able = Abilities::ALONE | Abilities::LOOK | Abilities::UNGUARDED;
        Ok(Readiness { version, login: Login::Unknown, why: Some("it reads SCRIPT_AGENT_KEY".into()), able })
    }

    fn prepare(task: &Task) -> Result<Launch, Error> {
        // Whoever sets a limit relies on it.
        if task.turns.is_some() || task.cost.is_some() {
            return Err(Error::Unsupported("the script has no limit of turns or of cost".into()));
        }
        let launch = match task.reach {
            Reach::Look => Launch::of("task").option("look", []),
            // Without a guard of its own for these, it must not pretend to have one.
            Reach::Edit | Reach::Work => {
                return Err(Error::Unsupported("the script only reads, or does anything".into()));
            }
            Reach::Unguarded => Launch::of("task"),
        };
        Ok(launch
            .option_if("model", task.model.as_deref())
            .without(task.schema.is_some(), "no schema: only the task's text can ask for it")
            .without(task.guidance.is_some(), "no place for guidance")
            .stop(StopSignal::Terminate, 2_000))
    }

    fn read(_: &Task, memory: Option<&str>, given: &[OutputLine]) -> Result<OutputReading, Error> {
        lines(memory, given, |seen: &mut Seen, line, events| {
            let said = text(line, "/said");
            if !said.is_empty() {
                events.push(RunEvent::Said(said.to_owned()));
            }
            if let Some(error) = at(line, "/error").and_then(Line::as_str) {
                let status = number(line, "/status").and_then(|status| u16::try_from(status).ok());
                seen.failed = Some((status, short(error)));
            }
            seen.done |= flag(line, "/done");
        })
    }

    fn conclude(_: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
        let seen = Seen::remembered(memory)?;
        Ok(match seen.failed {
            Some((status, error)) => refused(status, &error, "the script"),
            None if seen.done => Outcome::of(Ending::Answered),
            // Whatever the exit code: without its last word it broke off.
            None => Outcome::without_last_word(exit, "the script"),
        })
    }
}

relay_mesh_sdk::export!(ScriptAgent, [runner], manifest = "../adapter.toml");

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::testing::recorded_runs;

    use super::*;

    #[test]
    fn recorded_runs_are_read_and_concluded() {
        assert_eq!(recorded_runs::<ScriptAgent>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")), 2);
    }
}
