//! Processes of Unix: sessions and groups, signals, the pipe to the process that started this one, and the width of a
//! terminal.

use std::io::{self, PipeReader, Stdin};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, kill_process};
pub(crate) use tokio::signal::unix::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Leaves the terminal, for a session of this process's own. It fails only if this process already leads a session,
/// which is as good.
pub(crate) fn begin_session() {
    let _new_session = rustix::process::setsid();
}

/// Lets other processes go first, the more the higher the number. It fails only where it makes no difference.
pub(crate) fn lower_priority(by: i32) {
    let _priority = rustix::process::nice(by);
}

/// Has a command's program start in a process group of its own, so that signals from the terminal do not reach it.
pub(crate) fn in_own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Sends SIGTERM to a process, unless it is gone. False if no process can have this number.
pub(crate) fn terminate(pid: u32) -> io::Result<bool> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(number) = number else { return Ok(false) };
    match kill_process(number, rustix::process::Signal::TERM) {
        Ok(()) | Err(Errno::SRCH) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// The signals with which a user interrupts this process, from now on.
pub(crate) fn interrupts() -> io::Result<Signal> {
    signal(SignalKind::interrupt())
}

/// The signals that ask this process to end, from now on.
pub(crate) fn terminations() -> io::Result<Signal> {
    signal(SignalKind::terminate())
}

/// The signals that this process's terminal is closed, from now on.
pub(crate) fn hang_ups() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// Writes to standard input if it is a pipe whose writing end this process was given. That nobody reads it does not
/// matter.
pub(crate) fn write_if_pipe(input: &Stdin, bytes: &[u8]) {
    if fstat(input).is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Fifo) {
        // One that was started by hand has the reading end of a pipe, if any, and its user reads what it logs.
        let _unheard = rustix::io::write(input, bytes);
    }
}

/// From now on, reading from an empty pipe fails at once and does not wait.
pub(crate) fn stop_waiting(pipe: &PipeReader) -> io::Result<()> {
    let flags = fcntl_getfl(pipe)?;
    Ok(fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?)
}

/// How many columns a terminal says it has; none if it is no terminal.
pub(crate) fn columns(terminal: impl AsFd) -> Option<u16> {
    Some(rustix::termios::tcgetwinsize(terminal).ok()?.ws_col)
}
