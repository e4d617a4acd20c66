//! Starts the server in the background and stops exactly that process.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mesh::ports::machine::{Life, Machine, Process};

use super::record::lease;
use super::{ServerError, ServerRecord};
use crate::errors::{CommandError, ToldError};
use crate::setup::doctor::server::{Heard, ask_for_proof};
use crate::unix;

/// Timeout until the server answers. The first start compiles the adapters.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// Timeout until the server has ended.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Poll interval.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of the log shown if the server did not start.
const LOG_TAIL: u64 = 2048;

pub(crate) fn log_path(dir: &Path) -> PathBuf {
    dir.join("server.log")
}

/// Bytes of the log beyond which it is moved away.
const LOG_LENGTH: u64 = 4 << 20;

/// Moves a log that has become long to `server.log.1`, in the place of the one before. The server goes on writing to the
/// same file, at its new end: a line that it writes in between may be lost.
pub(crate) fn rotate_log(dir: &Path) -> io::Result<()> {
    rotate(&log_path(dir))
}

fn rotate(log: &Path) -> io::Result<()> {
    match std::fs::metadata(log) {
        Ok(found) if found.len() > LOG_LENGTH => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    // Copied under another name first: a process that is killed leaves the old copy or the new one.
    let draft = log.with_extension("log.new");
    std::fs::copy(log, &draft)?;
    std::fs::rename(&draft, log.with_extension("log.1"))?;
    OpenOptions::new().write(true).open(log)?.set_len(0)
}

/// The server that runs after a start.
pub(crate) enum Started {
    ByUs(ServerRecord),
    /// Another process has started it, at the same time or before.
    ByAnother(ServerRecord),
}

/// Starts `relay-mesh serve` in its own session, and returns once it answers. If another process starts it at the same
/// time, that one counts.
pub(crate) async fn start(dir: &Path, arguments: &[String], machine: &dyn Machine) -> Result<Started, ServerError> {
    let log = log_path(dir);
    rotate_log(dir).map_err(ServerError::Spawn)?;
    let file = unix::append_to_private_file(&log).map_err(ServerError::Spawn)?;
    let (told, teller) = io::pipe().map_err(ServerError::Spawn)?;
    let mut child = spawn_with(arguments, teller.into(), file).map_err(ServerError::Spawn)?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(ServerError::Spawn)? {
            if let Some(record) = of_another(dir, machine, began).await? {
                return Ok(Started::ByAnother(record));
            }
            return Err(match heard(told) {
                Some(error) => ServerError::Told(error),
                None => ServerError::Start { why: status.to_string(), log },
            });
        }
        if let Some(record) = answering(dir, machine).await?.filter(|record| record.process.pid == child.id()) {
            return Ok(Started::ByUs(record));
        }
        if began.elapsed() > START_PATIENCE {
            return Err(ServerError::Start { why: format!("no answer within {} s", START_PATIENCE.as_secs()), log });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The server of a folder, once it answers as the folder's own.
async fn answering(dir: &Path, machine: &dyn Machine) -> Result<Option<ServerRecord>, ServerError> {
    let Some(record) = ServerRecord::find(dir, machine)? else { return Ok(None) };
    let heard = ask_for_proof(&record.listen, dir, machine).await?;
    Ok(matches!(heard, Heard::Ours(_)).then_some(record))
}

/// The server that another process starts here, once it answers; none if nobody holds the folder.
async fn of_another(dir: &Path, machine: &dyn Machine, began: Instant) -> Result<Option<ServerRecord>, ServerError> {
    while began.elapsed() < START_PATIENCE {
        if let Some(record) = answering(dir, machine).await? {
            return Ok(Some(record));
        }
        if !store::files::is_held(dir, &lease()).unwrap_or(false) {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(None)
}

/// Tells the process that started this one in the background why it ends: by the pipe that it was given as its standard
/// input, since others write to the same log, and on a full disk nobody does.
pub(crate) fn tell_starter(error: &CommandError) {
    let mut told = serde_json::to_vec(&ToldError::of(error)).unwrap_or_default();
    told.truncate(MOST_TOLD);
    unix::process::write_if_pipe(&io::stdin(), &told);
}

/// The longest error that is told: what a pipe takes at once.
const MOST_TOLD: usize = 4096;

/// What an ended server has told.
fn heard(mut told: PipeReader) -> Option<ToldError> {
    // A process that it left behind may still have the pipe.
    unix::process::stop_waiting(&told).ok()?;
    let mut text = vec![0; MOST_TOLD];
    let length = told.read(&mut text).ok()?;
    serde_json::from_slice(&text[..length]).ok()
}

/// Stops a server, and returns once its process is gone.
pub(crate) async fn stop(record: &ServerRecord, machine: &dyn Machine) -> Result<(), ServerError> {
    end(record.process, STOP_PATIENCE, machine).await
}

/// Sends SIGTERM to one of our processes, and returns once it is gone. One of another PID namespace is left alone: its
/// number is somebody else's here.
pub(crate) async fn end(process: Process, timeout: Duration, machine: &dyn Machine) -> Result<(), ServerError> {
    let pid = process.pid;
    match machine.life(process) {
        Life::Runs => {}
        Life::Ended => return Ok(()),
        Life::Unknown => return Err(ServerError::Elsewhere { pid }),
    }
    if !unix::process::terminate(pid).map_err(|source| ServerError::Signal { pid, source })? {
        return Ok(());
    }
    let began = Instant::now();
    while machine.runs(process) {
        if began.elapsed() > timeout {
            return Err(ServerError::Stubborn { pid });
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

pub(super) fn spawn(arguments: &[String], log: File) -> io::Result<Child> {
    spawn_with(arguments, Stdio::null(), log)
}

#[expect(clippy::disallowed_methods, reason = "this is the file that starts relay-mesh itself")]
fn spawn_with(arguments: &[String], input: Stdio, log: File) -> io::Result<Child> {
    let errors = log.try_clone()?;
    Command::new(processes::this_program()?).args(arguments).stdin(input).stdout(log).stderr(errors).spawn()
}

/// Starts a detached relay-mesh process in its own process group.
pub(crate) fn leave(arguments: &[OsString]) -> io::Result<()> {
    leave_saying(arguments, Stdio::null())
}

/// The same, with a log of what it warns of.
pub(crate) fn leave_with_log(arguments: &[OsString], log: &Path) -> io::Result<()> {
    rotate(log)?;
    leave_saying(arguments, unix::append_to_private_file(log)?.into())
}

#[expect(clippy::disallowed_methods, reason = "this is the file that starts relay-mesh itself")]
fn leave_saying(arguments: &[OsString], errors: Stdio) -> io::Result<()> {
    let mut command = Command::new(processes::this_program()?);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    unix::process::in_own_group(&mut command).spawn().map(drop)
}

/// What the server has logged since its start, as one clause.
pub(super) fn last_words(log: &Path, from: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut text = String::new();
    file.take(LOG_TAIL).read_to_string(&mut text).ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_a_server_told_is_heard_once_and_nothing_is_waited_for() {
        let (told, mut teller) = io::pipe().expect("a pipe");
        let error = CommandError::usage("without a token", "serve loopback");
        teller.write_all(&serde_json::to_vec(&ToldError::of(&error)).expect("JSON")).expect("written");
        // The pipe is still open at its other end.
        let heard_of = heard(told).expect("it was told");
        assert_eq!((heard_of.what.as_str(), heard_of.exit), ("without a token", 2));
        let (told, _teller) = io::pipe().expect("a pipe");
        assert!(heard(told).is_none(), "nothing was told");
    }

    #[test]
    fn a_long_log_is_moved_away_and_its_writer_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let (dir, log) = (folder.path(), log_path(folder.path()));
        rotate_log(dir).expect("there is none");
        let mut writer = OpenOptions::new().append(true).create(true).open(&log).expect("opened");
        writer.write_all(b"short\n").expect("written");
        rotate_log(dir).expect("looked at");
        assert!(!dir.join("server.log.1").exists(), "a short log stays");
        let length = usize::try_from(LOG_LENGTH).expect("it fits");
        for round in [b"a", b"b"] {
            writer.write_all(&round.repeat(length + 1)).expect("written");
            rotate_log(dir).expect("rotated");
            assert!(fs::read(dir.join("server.log.1")).expect("kept").ends_with(round));
            assert_eq!(fs::metadata(&log).expect("there").len(), 0);
        }
        writer.write_all(b"on\n").expect("written");
        assert_eq!(fs::read_to_string(&log).expect("text"), "on\n", "at the new end, without a hole");
    }
}
