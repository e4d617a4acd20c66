//! macOS tells of processes by calls that sysinfo makes. It tells nothing of another user's process, and by these calls
//! nothing of open files: which program listens at a port, and which programs are at a terminal, stays unknown.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

use super::Listed;
use crate::space::Space;

/// Where this process is. There is one set of numbers for each boot.
pub(crate) fn own_space() -> Option<Space> {
    static OWN: OnceLock<Space> = OnceLock::new();
    Some(*OWN.get_or_init(|| Space { system: 0, boot: System::boot_time(), namespace: 0 }))
}

pub(crate) fn lists_own_processes() -> bool {
    true
}

pub(crate) fn this_process() -> Option<Listed> {
    listed(std::process::id())
}

/// The number of every process that is listed.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::All, false, ProcessRefreshKind::nothing());
    let pids: Vec<u32> = system.processes().keys().map(|pid| pid.as_u32()).collect();
    pids.into_iter()
}

fn look<T>(pid: u32, kind: ProcessRefreshKind, tell: impl FnOnce(&Process) -> T) -> Option<T> {
    let pid = Pid::from_u32(pid);
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
    system.process(pid).map(tell)
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

/// The lines of the environment that a process was started with. That of another user cannot be read.
pub(crate) fn environment(pid: u32) -> Vec<Vec<u8>> {
    let kind = ProcessRefreshKind::nothing().with_environ(UpdateKind::Always);
    let lines = |process: &Process| process.environ().iter().map(|line| line.as_bytes().to_vec()).collect();
    look(pid, kind, lines).unwrap_or_default()
}

/// The words that a process was started with, the program's first; empty if they cannot be read.
pub(crate) fn arguments(pid: u32) -> Vec<String> {
    let kind = ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always);
    let words = |process: &Process| process.cmd().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    look(pid, kind, words).unwrap_or_default()
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
