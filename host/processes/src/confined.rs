//! One piece of work in a process of its own, within limits that the system keeps.
//!
//! The process is this binary again, by a hidden command. It reads its input to the end before it begins, so nothing
//! makes it wait for ever, and it confines itself by [`confine`] before it reads: what is dangerous is the input and not
//! the program.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The most that is read of what the process says on standard error.
const LONGEST_COMPLAINT: u64 = 16 * 1024;
/// Processor time after which the system kills a process that ignores the first limit, beyond that limit.
const LAST_SECONDS: u64 = 2;

/// What a confined process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Processor time in seconds.
    pub processor: u64,
    /// Address space in bytes. macOS keeps no such limit.
    pub memory: u64,
}

/// What a confined process does when the one that started it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bond {
    /// It is killed with the process of this number, which started it. Only Linux does so.
    EndsWith(u32),
    /// It goes on: it is in a session of its own.
    GoesOn,
}

/// A piece of work.
#[derive(Debug)]
pub struct Work<'w> {
    /// The binary, and the words of its hidden command.
    pub binary: &'w Path,
    pub words: &'w [OsString],
    /// What it reads from standard input, to the end.
    pub input: &'w [u8],
    pub output: Output,
}

/// Where a confined process writes.
#[derive(Debug)]
pub enum Output {
    /// To us, at most so many bytes.
    Bytes(u64),
    /// Nowhere. It holds this file open instead, and with it a lock that outlives us.
    Holds(File),
}

/// How a piece of work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkEnd {
    /// It is done; what was written to us.
    Done(Vec<u8>),
    /// The process ended with this exit code, and said why on standard error.
    Refused(i32, String),
    /// The limit of processor time ended it.
    OutOfTime,
    /// It got no more memory.
    OutOfMemory,
    /// Something else ended it.
    BrokenOff(String),
}

/// Confines this process, for good. Call it before anything is read.
pub fn confine(bounds: Bounds, bond: Bond) -> io::Result<()> {
    limit(Resource::Core, 0, 0)?;
    // Where both are the same, the system kills at once, and nobody could tell why.
    let most = getrlimit(Resource::Cpu).maximum.unwrap_or(u64::MAX);
    let processor = bounds.processor.min(most.saturating_sub(1).max(1));
    limit(Resource::Cpu, processor, processor.saturating_add(LAST_SECONDS))?;
    limit(Resource::As, bounds.memory, bounds.memory)?;
    match bond {
        Bond::GoesOn => {
            // It fails only in the leader of a group, which is apart from the others already.
            let _new_session = rustix::process::setsid();
        }
        Bond::EndsWith(starter) => {
            #[cfg(target_os = "linux")]
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // One that ended before that is not noticed by the system.
            if std::os::unix::process::parent_id() != starter {
                return Err(io::Error::other("the process that started this one has ended"));
            }
        }
    }
    Ok(())
}

/// Sets a limit, or keeps the lower one that was there.
fn limit(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    Ok(setrlimit(resource, Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) })?)
}

/// Has a piece of work done. Blocks until it has ended.
pub fn perform(work: Work<'_>) -> io::Result<WorkEnd> {
    let Work { binary, words, input, output } = work;
    #[expect(clippy::disallowed_methods, reason = "this is the file that starts confined work")]
    let mut command = Command::new(binary);
    // It needs nothing of the environment. The allocator of a release reserves addresses for a gigabyte when it starts,
    // all of which would count as memory; with this it takes what it needs.
    command
        .args(words)
        .env_clear()
        .env("MIMALLOC_ARENA_RESERVE", "0")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let most = match output {
        Output::Bytes(most) => {
            command.stdout(Stdio::piped());
            most
        }
        Output::Holds(file) => {
            command.stdout(file);
            0
        }
    };
    let mut child = command.spawn()?;
    // The command would hold the file open as well.
    drop(command);
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended has said why.
        let _ended = stdin.write_all(input);
    }
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(most + 1).read_to_end(&mut bytes)?;
    }
    let mut complaint = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        stderr.take(LONGEST_COMPLAINT).read_to_end(&mut complaint)?;
    }
    if bytes.len() as u64 > most {
        // It would go on writing to nobody.
        let _ended = child.kill();
        child.wait()?;
        return Ok(WorkEnd::BrokenOff(format!("it wrote more than {most} bytes")));
    }
    let status = child.wait()?;
    Ok(end(status, bytes, String::from_utf8_lossy(&complaint).trim()))
}

fn end(status: ExitStatus, bytes: Vec<u8>, complaint: &str) -> WorkEnd {
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    if status.success() {
        WorkEnd::Done(bytes)
    } else if is(Signal::XCPU) {
        WorkEnd::OutOfTime
    } else if complaint.contains("memory allocation of") || complaint.contains("out of memory") {
        // What Rust says before it aborts.
        WorkEnd::OutOfMemory
    } else {
        match status.code() {
            Some(code) if !complaint.is_empty() => WorkEnd::Refused(code, complaint.to_owned()),
            Some(_) | None => WorkEnd::BrokenOff(format!("it ended with {status}")),
        }
    }
}
