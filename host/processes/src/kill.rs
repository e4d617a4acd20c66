//! Ending processes that this one may not have started: exactly those that were meant, until none is left.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::table::{self, ProcessEntry, ProcessId, Table};

/// How long to go on if something cannot be killed, such as a process that waits for a dead disk.
const GIVES_UP: Duration = Duration::from_secs(10);
/// Between two looks at the list of processes.
const PAUSE: Duration = Duration::from_millis(3);

/// Whether exactly this process still runs, among those that this one can see.
pub fn is_alive(process: ProcessId) -> bool {
    table::find(process.pid).is_some_and(|now| now.is(&process) || (process.start == 0 && now.space == process.space))
}

/// Asks exactly this process to end, by SIGTERM. A guard then ends its program first. One of another PID namespace is
/// left alone: its number is somebody else's here.
pub fn ask_to_end(process: ProcessId) {
    if let Some(entry) = table::entry(process.pid).filter(|entry| entry.process.is(&process)) {
        signal(entry, Signal::TERM);
    }
}

/// Kills every process that was started with this environment variable, and every process below those, until none is
/// left. Spares this process and those above it. Returns how many it killed. It blocks; with nothing to kill it costs
/// one look at the list of processes.
pub fn end_marked(name: &str, value: &str) -> usize {
    let line = format!("{name}={value}").into_bytes();
    let mut spared: Vec<u32> = table::ancestors().iter().map(|process| process.pid).collect();
    spared.push(std::process::id());
    let mut killed: Vec<ProcessId> = Vec::new();
    let began = Instant::now();
    loop {
        let mut alive = Table::read().marked(&line);
        alive.retain(|entry| !entry.is_zombie && !spared.contains(&entry.process.pid));
        if alive.is_empty() || began.elapsed() > GIVES_UP {
            return killed.len();
        }
        for entry in alive {
            signal(entry, Signal::KILL);
            if !killed.contains(&entry.process) {
                killed.push(entry.process);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Sends a signal to exactly this process. That it has ended is no error.
#[cfg(target_os = "linux")]
pub(crate) fn signal(to: ProcessEntry, signal: Signal) {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = number(to.process.pid) else { return };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // The handle holds the number: if it is still the same process now, the signal cannot meet another.
    if table::entry(to.process.pid).is_some_and(|now| now.process == to.process) {
        let _ended = pidfd_send_signal(handle, signal);
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn signal(to: ProcessEntry, signal: Signal) {
    // Between this look and the signal the number may pass to another process; such systems know no handle.
    let is_it = table::entry(to.process.pid).is_some_and(|now| now.process == to.process);
    if let (true, Some(pid)) = (is_it, number(to.process.pid)) {
        let _ended = rustix::process::kill_process(pid, signal);
    }
}

pub(crate) fn number(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}
