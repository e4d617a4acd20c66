//! A user joins the session of a driven agent in the harness's own terminal.

use std::process::Stdio;
use std::time::Duration;

use mesh::driven::DrivenRecord;

use crate::compose::Open;
use crate::context::Context;
use crate::errors::{CommandError, Failure, adapters};
use crate::exit::Exit;
use crate::unix::process::{self, Signal};

use super::program::OF_THE_TERMINAL;
use super::{DrivenFolder, MARK, OUTBOX};

/// How long the harness's terminal may take to end after it was closed.
const LEAVES: Duration = Duration::from_secs(2);

/// The command line that joins an agent's session, or why there is none.
pub(crate) async fn command(
    context: &Context,
    open: &Open,
    record: &DrivenRecord,
) -> Result<Result<Vec<String>, String>, CommandError> {
    let (Some(session), Some(connection)) = (&record.session, &record.connection) else {
        return Ok(Err("it has no session yet".to_owned()));
    };
    let unusable = |error| adapters::failed(&record.harness, error);
    let harness = super::begin::harness(open, &record.harness).await?;
    let files = DrivenFolder::of(&context.settings.dir.value, record.id).files();
    let offered = harness.driver().map_err(unusable)?.connections(&record.agent, Some(session), &files).await;
    let used = offered.map_err(unusable)?.into_iter().find(|offered| offered.name == *connection);
    let Some(join) = used.filter(|used| used.able.join).and_then(|used| used.join) else {
        return Ok(Err(format!("{} has no terminal that joins a session over `{connection}`", record.harness)));
    };
    let Some(socket) = record.socket.as_ref().and_then(|socket| socket.to_str()) else {
        return Ok(Err("its program does not run now; it starts when something is asked of it".to_owned()));
    };
    if session.starts_with('-') {
        return Ok(Err("its session has an id that would be read as an option".to_owned()));
    }
    let mut command = join.filled(socket, session);
    if let (Some(program), Some(first)) = (&record.program, command.first_mut()) {
        first.clone_from(program);
    }
    Ok(Ok(command))
}

/// Gives this terminal to the harness until its user leaves it.
pub(crate) async fn join(context: &Context, record: &DrivenRecord, command: Vec<String>) -> Result<Exit, CommandError> {
    let Some((program, words)) = command.split_first() else { return Ok(Exit::Failure) };
    let mut child = tokio::process::Command::new(program);
    child.args(words).stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    // The session was begun in this folder, and its user is not the agent.
    child.current_dir(&record.agent.folder).env_remove(MARK).env_remove(OUTBOX);
    // Where its settings are, as the agent has it.
    child.envs(record.environment.iter().filter(|(name, _)| !OF_THE_TERMINAL.contains(&name.as_str())).cloned());
    let cannot = |source: std::io::Error| Failure {
        what: format!("`{}` could not be started", command.join(" ")),
        hint: Some(format!("`relay-mesh attach {} --lines` shows it without that program", record.agent.name)),
        exit: Exit::Failure,
        source: Some(Box::new(source)),
    };
    let mut ends = Ends::listen().map_err(cannot)?;
    let mut child = child.spawn().map_err(cannot)?;
    let status = tokio::select! {
        status = child.wait() => status.map_err(cannot)?,
        () = ends.asked() => {
            // The terminal that is closed tells it as well.
            if tokio::time::timeout(LEAVES, child.wait()).await.is_err() {
                child.kill().await.map_err(cannot)?;
            }
            return Ok(Exit::Success);
        }
    };
    if !status.success() {
        context.printer.say(&format!("`{program}` ended with {status}; the agent goes on"));
    }
    Ok(Exit::Success)
}

/// The signals of which this process must not die before its program: all but those that say how a user leaves. Ctrl-C is
/// the program's, which is in the same group and decides what it means.
struct Ends {
    interrupts: Signal,
    hang_ups: Signal,
    terminations: Signal,
}

impl Ends {
    fn listen() -> std::io::Result<Ends> {
        Ok(Ends {
            interrupts: process::interrupts()?,
            hang_ups: process::hang_ups()?,
            terminations: process::terminations()?,
        })
    }

    /// Returns when the terminal is closed, or this process is asked to end.
    async fn asked(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupts.recv() => {}
                _ = self.hang_ups.recv() => return,
                _ = self.terminations.recv() => return,
            }
        }
    }
}
