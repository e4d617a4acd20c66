//! The program that a guard runs: how it is started, and how its end is noticed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{ChildStderr, Command, ExitCode, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;

use super::order::{Order, StepSignal, Streams};
use super::{BECOME, COMMAND};
use crate::kill;
use crate::table;
use crate::this_program::this_binary;

/// Whether what loses its parent falls to the guard.
pub(super) const INHERITS: bool = cfg!(target_os = "linux");
/// The variable that marks all that the program starts where that does not fall to its guard. Its value is of one guard
/// alone.
const MARK: &str = "RELAY_GUARD";
/// As a shell says that a program could not be started.
const NOT_STARTED: u8 = 127;
/// Bytes that are kept of the beginning of standard error, and of its end.
const ERRORS: usize = 64 * 1024;

/// A running program.
pub(super) struct Program {
    /// It leads a group of its own.
    pub(super) pid: u32,
    leader: Pid,
    status: Option<WaitStatus>,
    errors: Option<ChildStderr>,
    /// The line in the environment of all that it starts; none where it falls to this process.
    mark: Option<String>,
}

impl Program {
    /// Starts the program. Nothing is left if this fails.
    pub(super) fn start(order: &Order) -> io::Result<Program> {
        let (stdin, stdout) = match &order.streams {
            Streams::Files { output, .. } => {
                let output = File::options().append(true).create_new(true).mode(0o600).open(output)?;
                (Stdio::piped(), Stdio::from(output))
            }
            Streams::Pipes => (Stdio::inherit(), Stdio::inherit()),
        };
        let (program, arguments) = order.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        rustix::fs::access(program, rustix::fs::Access::EXEC_OK)?;
        if !fs::metadata(&order.folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        #[expect(clippy::disallowed_methods, reason = "this is the file that starts what the guard watches")]
        let mut command = Command::new(this_binary()?);
        command.arg(COMMAND).arg(BECOME).arg(std::process::id().to_string()).arg(program).args(arguments);
        command.env_clear().envs(order.environment.iter().map(|(name, value)| (name, value)));
        let mark = (!INHERITS).then(own_mark);
        command.envs(mark.iter().map(|value| (MARK, value)));
        command.current_dir(&order.folder).process_group(0);
        let mut child = command.stdin(stdin).stdout(stdout).stderr(Stdio::piped()).spawn()?;
        if let (Some(pipe), Streams::Files { input, .. }) = (child.stdin.take(), &order.streams) {
            feed(OwnedFd::from(pipe), input.clone())?;
        }
        let leader = kill::number(child.id()).ok_or(io::ErrorKind::InvalidData)?;
        let mark = mark.map(|value| format!("{MARK}={value}"));
        Ok(Program { pid: child.id(), leader, status: None, errors: child.stderr.take(), mark })
    }

    /// Keeps the beginning of standard error in a file, and gives back its end when no process holds it any more.
    pub(super) fn keep_errors(&mut self, path: PathBuf) -> io::Result<Option<Errors>> {
        let Some(errors) = self.errors.take() else { return Ok(None) };
        let pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(errors))?;
        Ok(Some(Errors { pipe, path, begun: 0, end: Vec::new(), total: 0 }))
    }

    /// The line by which what it started is told from all else.
    pub(super) fn mark(&self) -> Option<&[u8]> {
        self.mark.as_deref().map(str::as_bytes)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.status.is_some()
    }

    pub(super) fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// Takes note of every child that has ended: the program, and what fell to this process.
    pub(super) fn reap(&mut self) {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == self.leader {
                self.status = Some(status);
            }
        }
    }

    /// Sends a signal to the whole group.
    pub(super) fn ask(&self, step: StepSignal) {
        self.send(match step {
            StepSignal::Interrupt => Signal::INT,
            StepSignal::Terminate => Signal::TERM,
        });
    }

    pub(super) fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        // It fails if the whole group has ended.
        let _ended = kill_process_group(self.leader, signal);
    }
}

/// No other process has this number and this start.
fn own_mark() -> String {
    let own = table::this_process();
    format!("{}.{}", own.pid, own.start)
}

/// The standard error of a program, as far as it is kept.
pub(super) struct Errors {
    pipe: pipe::Receiver,
    path: PathBuf,
    /// Bytes in the file.
    begun: usize,
    /// The last bytes.
    end: Vec<u8>,
    /// Bytes that came at all.
    total: u64,
}

impl Errors {
    /// Bytes that came until now.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Reads what there is; false at its end. Cancelling loses nothing.
    pub(super) async fn read(&mut self) -> bool {
        let mut chunk = [0; 8192];
        match self.pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.take(&chunk[..read]);
                true
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let first = bytes.len().min(ERRORS.saturating_sub(self.begun));
        if first > 0 {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
            // A full disk costs the text and not the run.
            let _kept = file.and_then(|mut file| file.write_all(&bytes[..first]));
            self.begun += first;
        }
        self.end.extend_from_slice(bytes);
        if self.end.len() > 2 * ERRORS {
            self.end.drain(..self.end.len() - ERRORS);
        }
    }

    /// The last bytes as text.
    pub(super) fn end(&self) -> String {
        let from = self.end.len().saturating_sub(ERRORS);
        String::from_utf8_lossy(&self.end[from..]).into_owned()
    }
}

/// Writes the input and closes it. A program may ignore it.
fn feed(pipe: OwnedFd, text: String) -> io::Result<()> {
    let mut pipe = pipe::Sender::from_owned_fd(pipe)?;
    tokio::spawn(async move {
        let _ignored = pipe.write_all(text.as_bytes()).await;
    });
    Ok(())
}

/// In the new process: makes the system kill it when the guard dies, and becomes the program. That request survives the
/// change of program, and there is no way to state it from outside.
pub(super) fn become_the_program<'a>(mut words: impl Iterator<Item = &'a OsString>) -> ExitCode {
    let guard = words.next().and_then(|word| word.to_str()?.parse().ok());
    #[cfg(target_os = "linux")]
    let _unsupported = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    // A guard that died before that will not be noticed.
    if guard != Some(std::os::unix::process::parent_id()) {
        return ExitCode::from(NOT_STARTED);
    }
    let Some(program) = words.next() else { return ExitCode::from(NOT_STARTED) };
    #[expect(clippy::disallowed_methods, reason = "this is the file that starts what the guard watches")]
    let error = Command::new(program).args(words).exec();
    let _unheard = writeln!(io::stderr(), "relay-mesh: `{}` could not be started: {error}", program.display());
    ExitCode::from(NOT_STARTED)
}
