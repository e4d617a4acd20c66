//! The Codex commands that its app server offers to other programs: `/compact`, and `/review` of the uncommitted
//! changes or by instructions. The others (`/model`, `/new`, `/prompts:NAME` …) exist only in the terminal, where
//! no other program can type them.

use relay_mesh_sdk::optional::commands::{Command, Commands, Means, Progress};
use relay_mesh_sdk::{Error, Session, clock};
use serde_json::{Value, json};

use crate::Codex;
use crate::app_server::{AppServer, Status, Trouble, Turn};

/// How long to wait before asking again about a thread that is not idle.
const BUSY_MS: u32 = 2_000;
/// How long to wait for a requested turn to start, in milliseconds.
const NOT_BEGUN_AFTER: u64 = 60_000;

/// A command that we can run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    Compact,
    /// Of the uncommitted changes, or by these instructions.
    Review(Option<String>),
}

impl Commands for Codex {
    fn plan(to: &Session, command: &Command) -> Result<Means, Error> {
        let known = known(command)?;
        let mut server = AppServer::connect().map_err(without_server)?;
        ready(&mut server, to)?;
        Ok(Means::looked_at(match known {
            Known::Compact => "thread/compact/start",
            Known::Review(_) => "review/start",
        }))
    }

    fn run(to: &Session, command: &Command) -> Result<Progress, Error> {
        let known = known(command)?;
        let mut server = AppServer::connect().map_err(without_server)?;
        ready(&mut server, to)?;
        let before = server.latest_turn(&to.id)?.map(|turn| turn.id);
        let asked = match &known {
            Known::Compact => server.compact(&to.id).map(|()| None),
            Known::Review(instructions) => server.review(&to.id, instructions.as_deref()).map(Some),
        };
        let turn = match asked {
            Ok(turn) => turn,
            Err(Trouble::Refused(error)) => return Err(error),
            // It may have started; `watch` looks for it.
            Err(Trouble::Unanswered(error)) => {
                relay_mesh_sdk::warn!("Codex did not confirm /{}, which was requested: {error:?}", command.name);
                None
            }
        };
        Ok(Progress::begun(json!({"turn": turn, "before": before, "begun": clock::now()}).to_string()))
    }

    fn watch(to: &Session, _: &Command, begun: Progress) -> Result<Progress, Error> {
        let evidence: Value = serde_json::from_str(begun.evidence.as_deref().unwrap_or_default()).unwrap_or_default();
        let mut server = AppServer::connect()?;
        let latest = server.latest_turn(&to.id)?.filter(|turn| match evidence["turn"].as_str() {
            Some(asked) => turn.id == asked,
            None => evidence["before"] != turn.id.as_str(),
        });
        let Some(Turn { id, status, error }) = latest else {
            let late = clock::now().saturating_sub(evidence["begun"].as_u64().unwrap_or_default()) > NOT_BEGUN_AFTER;
            return if late { Ok(begun.failed("Codex began no turn for it")) } else { Ok(begun) };
        };
        let found = Progress { evidence: Some(json!({"turn": id}).to_string()), ..begun.clone() };
        Ok(match status.as_str() {
            "completed" => found.succeeded(server.said_last(&to.id, &id)?),
            "inProgress" => begun,
            other => found.failed(error.unwrap_or_else(|| format!("its turn ended as {other}"))),
        })
    }
}

fn known(command: &Command) -> Result<Known, Error> {
    match (command.name.as_str(), command.arguments.is_empty()) {
        ("compact", true) => Ok(Known::Compact),
        ("compact", false) => Err(Error::Unsupported("Codex's /compact takes no arguments".to_owned())),
        ("review", true) => Ok(Known::Review(None)),
        ("review", false) => Ok(Known::Review(Some(command.arguments.join(" ")))),
        (other, _) => Err(Error::Unsupported(format!(
            "Codex runs /{other} only from its own terminal; other programs can run /compact and /review"
        ))),
    }
}

/// Checks that the thread is loaded and idle.
fn ready(server: &mut AppServer, to: &Session) -> Result<(), Error> {
    let thread = server.thread(&to.id)?;
    match thread.status {
        Status::Idle if thread.takes_input => Ok(()),
        Status::Idle => Err(Error::Unsupported("this thread takes no turns from other programs".to_owned())),
        Status::Active | Status::NeedsInput => Err(Error::Busy(BUSY_MS)),
        Status::NotLoaded => {
            Err(Error::Unsupported("the app server that Codex's terminals share has not loaded this thread".to_owned()))
        }
    }
}

/// A terminal that is its own app server has no socket.
fn without_server(error: Error) -> Error {
    match error {
        Error::NotFound(_) => Error::Unsupported(
            "no shared app server of Codex runs here, and a terminal without one takes no commands from other programs"
                .to_owned(),
        ),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let mut words = line.split('|').map(str::to_owned);
        let name = words.next().unwrap_or_default();
        let command = Command { id: String::new(), name, arguments: words.collect() };
        let read = format!("{:?}", known(&command));
        assert!(read.contains(expected), "{line}: {read}");
    }

    #[test]
    fn what_the_app_server_offers_can_be_run_and_nothing_else() {
        check("compact", "Ok(Compact)");
        check("compact|now", "takes no arguments");
        check("review", "Ok(Review(None))");
        check("review|/compact|the parser", r#"Ok(Review(Some("/compact the parser")))"#);
        check("model|gpt-6", "Codex runs /model only from its own terminal");
    }
}
