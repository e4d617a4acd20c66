//! macOS tells of processes by calls that sysinfo makes. Of another user's process it tells only the program and that it
//! lives. By these calls it tells nothing of open files: which program listens at a port, and which programs are at a
//! terminal, stays unknown.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

use super::Listed;
use crate::space::Space;

/// There is one set of numbers, and a process's start, in seconds since 1970, tells boots apart. The time of the boot
/// would not do: it moves when the clock is set, and a process would seem to be elsewhere.
pub(crate) fn own_space() -> Option<Space> {
    Some(Space { system: 0, boot: 0, namespace: 0 })
}

pub(crate) fn lists_own_processes() -> bool {
    true
}

pub(crate) fn this_process() -> Option<Listed> {
    listed(std::process::id())
}

/// The number of every process that is listed.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let system = looked_at(ProcessesToUpdate::All, ProcessRefreshKind::nothing());
    let pids = |system: System| system.processes().keys().map(|pid| pid.as_u32()).collect::<Vec<u32>>();
    system.map(pids).unwrap_or_default().into_iter()
}

/// None if the system refuses: nothing is known then.
fn looked_at(which: ProcessesToUpdate<'_>, kind: ProcessRefreshKind) -> Option<System> {
    let mut system = System::new().ok()?;
    system.refresh_processes_specifics(which, false, kind);
    Some(system)
}

fn look<T>(pid: u32, kind: ProcessRefreshKind, tell: impl FnOnce(&Process) -> T) -> Option<T> {
    let pid = Pid::from_u32(pid);
    looked_at(ProcessesToUpdate::Some(&[pid]), kind)?.process(pid).map(tell)
}

pub(crate) fn listed(pid: u32) -> Option<Listed> {
    look(pid, ProcessRefreshKind::nothing(), |process| Listed {
        name: process.name().to_string_lossy().into_owned(),
        parent: process.parent().map_or(0, Pid::as_u32),
        start: process.start_time(),
        is_zombie: matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead),
        leads_session: process.session_id() == Some(Pid::from_u32(pid)),
    })
}

/// The environment that a process was started with, a zero byte after each line. That of another user is not shown, nor
/// that of Apple's own programs.
pub(crate) fn environment(pid: u32) -> Vec<u8> {
    let kind = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    look(pid, kind, |process| terminated(process.environ())).unwrap_or_default()
}

/// The words that a process was started with, the program's first, a zero byte after each; empty if they cannot be read.
pub(crate) fn command_line(pid: u32) -> Vec<u8> {
    let kind = ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always);
    look(pid, kind, |process| terminated(process.cmd())).unwrap_or_default()
}

fn terminated(words: &[OsString]) -> Vec<u8> {
    words.iter().flat_map(|word| [word.as_bytes(), b"\0"]).flatten().copied().collect()
}

/// The file of the program that a process runs.
pub(crate) fn program(pid: u32) -> Option<PathBuf> {
    let kind = ProcessRefreshKind::nothing().with_exe(UpdateKind::Always);
    look(pid, kind, |process| process.exe().map(std::path::Path::to_owned)).flatten()
}

pub(crate) fn folder(pid: u32) -> Option<PathBuf> {
    let kind = ProcessRefreshKind::nothing().with_cwd(UpdateKind::Always);
    look(pid, kind, |process| process.cwd().map(std::path::Path::to_owned)).flatten()
}

/// Unknown here.
pub(crate) fn is_at_a_terminal(_pid: u32) -> bool {
    false
}

/// Unknown here.
pub(crate) fn open_files(_pid: u32) -> impl Iterator<Item = PathBuf> {
    std::iter::empty()
}

/// Whether a process is this user's.
pub(crate) fn is_ours(pid: u32) -> bool {
    let kind = ProcessRefreshKind::nothing().with_user(UpdateKind::Always);
    let own = rustix::process::geteuid().as_raw();
    look(pid, kind, |process| process.effective_user_id().is_some_and(|user| **user == own)).unwrap_or(false)
}
