//! The host's side of a guard: starts it, holds the leash, and learns what happened.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::guard::{COMMAND, Ended, Order, Running};

/// What [`Guard::started`] tells.
pub type Started = Running;

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// The guard could not be started.
    #[error("the process that watches over a run could not be started")]
    Start(#[source] io::Error),
    /// The guard did not take its order.
    #[error("the process that watches over a run took no order")]
    Order(#[source] io::Error),
    /// It cannot be waited for.
    #[error("the process that watches over a run cannot be waited for")]
    Wait(#[source] io::Error),
}

/// A guard that runs. If it is dropped, or this process ends in any way, the leash breaks and the guard ends its program
/// with everything below it.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    leash: BufReader<UnixStream>,
    ended: PathBuf,
    errors: PathBuf,
}

impl Guard {
    /// Starts a guard by `binary guard-run`, and gives it its order.
    pub async fn start(binary: &Path, order: &Order) -> Result<Guard, GuardError> {
        Ok(Guard::spawn(binary, order, Stdio::null).await?.0)
    }

    /// The same, for a program to talk with ([`crate::guard::Streams::Pipes`]): with the other ends of its standard input
    /// and output.
    pub async fn talk(binary: &Path, order: &Order) -> Result<(Guard, ChildStdin, ChildStdout), GuardError> {
        match Guard::spawn(binary, order, Stdio::piped).await? {
            (guard, Some(input), Some(output)) => Ok((guard, input, output)),
            (_, _, _) => Err(GuardError::Start(io::ErrorKind::BrokenPipe.into())),
        }
    }

    async fn spawn(
        binary: &Path,
        order: &Order,
        stream: impl Fn() -> Stdio,
    ) -> Result<(Guard, Option<ChildStdin>, Option<ChildStdout>), GuardError> {
        let (leash, others) = std::os::unix::net::UnixStream::pair().map_err(GuardError::Start)?;
        let words: [OsString; 1] = [COMMAND.into()];
        let mut command = Command::new(binary);
        // The guard needs nothing of the environment, and must not carry the mark of a run.
        command.args(words).env_clear().current_dir("/");
        command.stdin(stream()).stdout(stream()).stderr(Stdio::from(OwnedFd::from(others)));
        let mut child = command.spawn().map_err(GuardError::Start)?;
        // It holds the guard's end of the leash.
        drop(command);
        let told = async {
            leash.set_nonblocking(true)?;
            let mut leash = BufReader::new(UnixStream::from_std(leash)?);
            let bytes = serde_json::to_vec(order)?;
            leash.write_all(format!("{}\n", bytes.len()).as_bytes()).await?;
            leash.write_all(&bytes).await?;
            leash.flush().await?;
            Ok(leash)
        };
        let leash = told.await.map_err(GuardError::Order)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Ok((Guard { child, leash, ended: order.ended.clone(), errors: order.errors.clone() }, input, output))
    }

    /// Waits until the program has been started; none if it could not be.
    pub async fn started(&mut self) -> Option<Started> {
        let mut line = String::new();
        self.leash.read_line(&mut line).await.ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Asks the guard to stop the program in its harness's order.
    pub async fn stop(&mut self) {
        // A guard that is gone has stopped it already.
        let _gone = self.leash.write_all(&[crate::guard::STOP]).await;
    }

    /// Waits until the program and everything below it has ended. If the guard was killed, the cause says so, and
    /// processes may be left: see [`crate::end_marked`]. Cancelling loses nothing.
    pub async fn ended(&mut self) -> Result<Ended, GuardError> {
        self.child.wait().await.map_err(GuardError::Wait)?;
        Ok(ended_as_written(&self.ended, &self.errors))
    }
}

/// What a guard that has ended wrote down.
pub fn ended_as_written(ended: &Path, errors: &Path) -> Ended {
    let written = std::fs::read(ended).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    written.unwrap_or_else(|| {
        let said = std::fs::read(errors).unwrap_or_default();
        Ended::guard_lost(String::from_utf8_lossy(&said).into_owned())
    })
}
