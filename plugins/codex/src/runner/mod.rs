//! Runs one task with `codex exec --json`, and reads its stream of JSON lines.
//!
//! The last event says what came of the run: `turn.completed` or `turn.failed`. Codex prints none if it was stopped or
//! failed before its first turn. A command that its sandbox refuses has no event at all.

mod conclude;
mod prepare;
mod read;
#[cfg(test)]
mod tests;

pub(crate) use prepare::other_servers;
use relay_mesh_sdk::edit::toml::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::optional::runner::reading::short;
use relay_mesh_sdk::optional::runner::{
    Abilities, Launch, Login, Outcome, OutputLine, OutputReading, ProcessExit, Readiness, Runner, Task,
};
use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::{Error, programs};

use crate::Codex;

impl Runner for Codex {
    fn ready() -> Result<Readiness, Error> {
        let version = programs::version("codex-version")?;
        let version = version.ok_or_else(|| Error::NotFound("Codex is not installed: no `codex` in PATH".into()))?;
        let (login, why) = login(&programs::run("codex-login", &[], &[])?)?;
        let able = Abilities::all() - (Abilities::OWN_ID | Abilities::TURNS | Abilities::COST);
        Ok(Readiness { version, login, why: Some(why), able })
    }

    fn prepare(task: &Task) -> Result<Launch, Error> {
        prepare::prepare(task)
    }

    fn read(_: &Task, memory: Option<&str>, lines: &[OutputLine]) -> Result<OutputReading, Error> {
        read::read(memory, lines)
    }

    fn conclude(task: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
        conclude::conclude(task, memory, exit)
    }
}

/// What `codex login status` says, which knows OpenAI's logins alone. A provider of the user's settings has a key of
/// its own.
fn login(status: &ProgramOutput) -> Result<(Login, String), Error> {
    let both = format!("{}\n{}", String::from_utf8_lossy(&status.stdout), String::from_utf8_lossy(&status.stderr));
    if status.exit_code == 0 {
        let told = both.lines().find(|line| line.contains("Logged in")).unwrap_or("signed in");
        return Ok((Login::LoggedIn, short(told)));
    }
    let provider = settings("config", "config.toml")?
        .and_then(|settings| settings.get(&["model_provider"])?.as_str().map(str::to_owned));
    Ok(match provider {
        Some(provider) => (
            Login::Unknown,
            format!("its settings name the provider `{}`, whose key it does not check", short(&provider)),
        ),
        None => (Login::LoggedOut, "run `codex login`".to_owned()),
    })
}

/// A settings file; none if it does not exist.
fn settings(root: &str, path: &str) -> Result<Option<Document>, Error> {
    let Some(text) = Root::open(root)?.read_text(path)? else { return Ok(None) };
    Document::parse(Some(&text)).map(Some).map_err(|broken| Error::Failed(format!("{path}, {broken}")))
}
