//! Starting the server in the background, and ending exactly that process.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mesh::machine::{Machine, Process};

use super::{HostError, HostRecord};
use crate::setup::doctor::host::{Heard, ask};

/// How long a server may take to listen and answer. The first start compiles the adapters.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long a server may take to finish what it does and end.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);
/// How much of a log is shown when its server did not come up.
const LOG_TAIL: u64 = 2048;

/// Where the log of a server in the background lies.
pub(crate) fn log_path(dir: &Path) -> PathBuf {
    dir.join("server.log")
}

/// Starts `relay-mesh serve` in a session of its own, and returns once it answers.
pub(crate) async fn start(dir: &Path, arguments: &[String], machine: &dyn Machine) -> Result<HostRecord, HostError> {
    let log = log_path(dir);
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&log).map_err(HostError::Spawn)?;
    let began_at = file.metadata().map_err(HostError::Spawn)?.len();
    let mut child = spawn(arguments, file).map_err(HostError::Spawn)?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(HostError::Spawn)? {
            return Err(HostError::Start { why: last_words(&log, began_at).unwrap_or(status.to_string()), log });
        }
        if let Some(record) = HostRecord::find(dir, machine)?
            && record.process.pid == child.id()
            && matches!(ask(&record.listen).await, Heard::Well(_))
        {
            return Ok(record);
        }
        if began.elapsed() > START_PATIENCE {
            return Err(HostError::Start { why: format!("no answer within {} s", START_PATIENCE.as_secs()), log });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Asks a server to stop, and returns once its process is gone.
pub(crate) async fn stop(record: &HostRecord, machine: &dyn Machine) -> Result<(), HostError> {
    end(record.process, STOP_PATIENCE, machine).await
}

/// Asks a process of ours to end, and returns once it is gone.
pub(super) async fn end(process: Process, timeout: Duration, machine: &dyn Machine) -> Result<(), HostError> {
    let pid = process.pid;
    let number = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(number) = number else { return Ok(()) };
    match rustix::process::kill_process(number, rustix::process::Signal::TERM) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => return Err(HostError::Signal { pid, source: error.into() }),
    }
    let began = Instant::now();
    while machine.lives(process) {
        if began.elapsed() > timeout {
            return Err(HostError::Stubborn { pid });
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "this is the file that starts relay-mesh itself")]
fn spawn(arguments: &[String], log: File) -> io::Result<Child> {
    let errors = log.try_clone()?;
    Command::new(std::env::current_exe()?).args(arguments).stdin(Stdio::null()).stdout(log).stderr(errors).spawn()
}

/// Starts relay-mesh on something that goes on by itself, in a process group of its own, and hears no more of it.
#[expect(clippy::disallowed_methods, reason = "this is the file that starts relay-mesh itself")]
pub(crate) fn leave(arguments: &[OsString]) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

/// What the server wrote into its log since it was started, as one clause.
fn last_words(log: &Path, from: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut text = String::new();
    file.take(LOG_TAIL).read_to_string(&mut text).ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}
