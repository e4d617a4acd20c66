//! Runs one task with `opencode run --format json`, and reads its stream of JSON lines.
//!
//! There is no line for the result. A run has ended well if the last step finished for the reason `stop`; an error has
//! an event of its own; and a permission that nobody can give ends the run with exit code 0 after a step that finished
//! for its tools. Requests that fail and are tried again are not told at all.

mod conclude;
mod prepare;
mod read;
#[cfg(test)]
mod tests;

pub(crate) use prepare::prepare;
use relay_mesh_sdk::optional::runner::{
    Abilities, Launch, Login, Outcome, OutputLine, OutputReading, ProcessExit, Readiness, Runner, Task,
};
use relay_mesh_sdk::{Error, programs};

use crate::OpenCode;

impl Runner for OpenCode {
    fn ready() -> Result<Readiness, Error> {
        let version = programs::version("opencode-version")?;
        let version =
            version.ok_or_else(|| Error::NotFound("OpenCode is not installed: no `opencode` in PATH".into()))?;
        let why =
            Some("OpenCode does not tell programs which providers are signed in; see `opencode auth list`".to_owned());
        // It has no limits of cost and turns, but tells of each turn and what it has cost, so relay-mesh keeps them.
        let unable = Abilities::OWN_ID | Abilities::SCHEMA | Abilities::GUIDANCE;
        Ok(Readiness { version, login: Login::Unknown, why, able: Abilities::all() - unable })
    }

    fn prepare(task: &Task) -> Result<Launch, Error> {
        prepare(task)
    }

    fn read(_: &Task, memory: Option<&str>, lines: &[OutputLine]) -> Result<OutputReading, Error> {
        read::read(memory, lines)
    }

    fn conclude(_: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
        conclude::conclude(memory, exit)
    }
}
