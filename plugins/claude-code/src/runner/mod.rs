//! Runs one task with `claude -p`, and reads its stream of JSON lines.
//!
//! The exit code proves nothing here: it is 0 after SIGINT and 1 in some modes after a good answer. The last event,
//! `result`, says what came of the run; `subtype: "success"` stands beside `is_error: true` on every API error.

mod conclude;
pub(crate) mod prepare;
mod read;
mod settings;
#[cfg(test)]
mod tests;

use relay_mesh_sdk::optional::runner::{
    Abilities, Launch, Login, Outcome, OutputLine, OutputReading, ProcessExit, Readiness, Runner, Task,
};
use relay_mesh_sdk::{Error, programs};
use serde_json::Value;

use crate::ClaudeCode;

/// How often a server that does not answer is asked again, with half a minute of waiting in all: whoever gave the task
/// hears of it while it still matters.
const RETRIES: &str = "6";

impl Runner for ClaudeCode {
    fn ready() -> Result<Readiness, Error> {
        let version = programs::version("claude-version")?;
        let version =
            version.ok_or_else(|| Error::NotFound("Claude Code is not installed: no `claude` in PATH".into()))?;
        let asked = programs::run("claude-login", &[], &[])?;
        let (login, why) = login(&String::from_utf8_lossy(&asked.stdout));
        Ok(Readiness { version, login, why: Some(why), able: Abilities::all() })
    }

    fn prepare(task: &Task) -> Result<Launch, Error> {
        Ok(prepare::prepare(task)?.set("CLAUDE_CODE_MAX_RETRIES", RETRIES))
    }

    fn read(_: &Task, memory: Option<&str>, lines: &[OutputLine]) -> Result<OutputReading, Error> {
        read::read(memory, lines)
    }

    fn conclude(task: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
        conclude::conclude(task, memory, exit)
    }
}

/// What `claude auth status` says. It sees keys, but not whether they are refused.
fn login(status: &str) -> (Login, String) {
    let status: Value = serde_json::from_str(status).unwrap_or_default();
    match status["loggedIn"].as_bool() {
        Some(true) => {
            let by = [&status["apiKeySource"], &status["authMethod"]].into_iter().find_map(Value::as_str);
            (Login::LoggedIn, format!("signed in by {}", by.unwrap_or("its own login")))
        }
        Some(false) => (Login::LoggedOut, "run `claude auth login`, or set ANTHROPIC_API_KEY".to_owned()),
        None => (Login::Unknown, "`claude auth status` does not say".to_owned()),
    }
}
