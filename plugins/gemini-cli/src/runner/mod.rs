//! Runs one task with `gemini --output-format stream-json`, and reads its stream of JSON lines.
//!
//! The last event, `result`, says what came of the run. Its exit code does not: it is 0 after any signal, and an HTTP
//! status modulo 256 after an error. Requests that are tried again are told on standard error alone.

mod conclude;
mod prepare;
mod read;
#[cfg(test)]
mod tests;

pub(crate) use prepare::prepare;
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::optional::runner::{
    Abilities, Launch, Login, Outcome, OutputLine, OutputReading, ProcessExit, Readiness, Runner, Task,
};
use relay_mesh_sdk::{Error, programs};
use serde_json::Value;

use crate::GeminiCli;

impl Runner for GeminiCli {
    fn ready() -> Result<Readiness, Error> {
        let version = programs::version("gemini-version")?;
        let version =
            version.ok_or_else(|| Error::NotFound("Gemini CLI is not installed: no `gemini` in PATH".into()))?;
        let (login, why) = login()?;
        let unable = Abilities::FORK | Abilities::SCHEMA | Abilities::GUIDANCE | Abilities::COST;
        Ok(Readiness { version, login, why: Some(why), able: Abilities::all() - unable })
    }

    fn prepare(task: &Task) -> Result<Launch, Error> {
        prepare(task)
    }

    fn read(_: &Task, memory: Option<&str>, lines: &[OutputLine]) -> Result<OutputReading, Error> {
        read::read(memory, lines)
    }

    fn conclude(task: &Task, memory: Option<&str>, exit: &ProcessExit) -> Result<Outcome, Error> {
        conclude::conclude(task, memory, exit)
    }
}

/// There is no command for it: the settings say how, and a file is there after a login with Google.
fn login() -> Result<(Login, String), Error> {
    let chosen = settings("config", "settings.json")?;
    let chosen = chosen.pointer("/security/auth/selectedType").and_then(Value::as_str).unwrap_or_default();
    let has_credentials = Root::open("config")?.read("oauth_creds.json")?.is_some();
    Ok(match chosen {
        "oauth-personal" | "login-with-google" if has_credentials => {
            (Login::LoggedIn, "signed in with Google".to_owned())
        }
        "oauth-personal" | "login-with-google" => {
            (Login::LoggedOut, "start `gemini` once and sign in with Google".to_owned())
        }
        "" => (Login::Unknown, "start `gemini` once and sign in, or set GEMINI_API_KEY".to_owned()),
        other => (Login::Unknown, format!("its settings choose `{other}`, whose key it does not check")),
    })
}

/// A settings file; null if it does not exist.
fn settings(root: &str, path: &str) -> Result<Value, Error> {
    let Some(text) = Root::open(root)?.read_text(path)? else { return Ok(Value::Null) };
    let document = Document::parse(Some(&text)).map_err(|broken| Error::Failed(format!("{path}, {broken}")))?;
    Ok(document.get(&[]).unwrap_or_default())
}
