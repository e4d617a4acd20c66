//! What the system tells of other processes: whether one lives, which called this one, which files it has open, and
//! which programs run in terminals. Only Linux tells the last two here.

use std::fs;
#[cfg(target_os = "linux")]
use std::path::PathBuf;

use mesh::ports::machine::{Process, ProcessSpace, Terminal};
use processes::{ProcessId, lists_own_processes};

/// Where this process's number counts.
pub(crate) fn own_space() -> Option<ProcessSpace> {
    processes::own_space().map(space_of)
}

fn space_of(space: processes::Space) -> ProcessSpace {
    ProcessSpace { system: space.system, boot: space.boot, namespace: space.namespace }
}

/// A process of a run, as the mesh names it.
pub(crate) fn named(process: ProcessId) -> Process {
    Process { pid: process.pid, start: process.start, space: process.space.map(space_of) }
}

/// This process, also if `/proc` is that of another PID namespace.
#[cfg(target_os = "linux")]
pub(crate) fn this_process() -> Option<Process> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    started(&stat).map(|start| Process { pid: std::process::id(), start, space: own_space() })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn this_process() -> Option<Process> {
    process(std::process::id())
}

/// Identifies the process that called this one, skipping shells in between. None if that process has ended or the
/// system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn caller() -> Option<Process> {
    if !lists_own_processes() {
        return None;
    }
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..MOST_SHELLS {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, parent) = name_and_parent(&stat)?;
        if !SHELLS.contains(&name) {
            return started(&stat).map(|start| Process { pid, start, space: own_space() });
        }
        pid = parent;
    }
    None
}

/// None: on this system we cannot tell which ancestors are shells.
#[cfg(not(target_os = "linux"))]
pub(crate) fn caller() -> Option<Process> {
    None
}

/// The shells by which harnesses run a hook's command line.
#[cfg(target_os = "linux")]
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "busybox", "zsh", "ksh", "fish"];
/// More nested shells than anybody starts.
#[cfg(target_os = "linux")]
const MOST_SHELLS: usize = 8;

/// The program's name and the parent's id in a line of `/proc/PID/stat`.
#[cfg(target_os = "linux")]
fn name_and_parent(stat: &str) -> Option<(&str, u32)> {
    let (head, fields) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    Some((name, fields.split_ascii_whitespace().nth(1)?.parse().ok()?))
}

/// The process that has this id now. On Linux its start tick, counted from boot, tells it apart from a later one; a
/// zombie counts as gone.
#[cfg(target_os = "linux")]
pub(crate) fn process(pid: u32) -> Option<Process> {
    if !lists_own_processes() {
        return signalled(pid);
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    started(&stat).map(|start| Process { pid, start, space: own_space() })
}

/// The process that has this id now. Its start is unknown here, so answering a signal must do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn process(pid: u32) -> Option<Process> {
    signalled(pid)
}

/// What a signal tells of a process: whether there is one.
fn signalled(pid: u32) -> Option<Process> {
    let number = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    match rustix::process::test_kill_process(number) {
        Ok(()) | Err(rustix::io::Errno::PERM) => Some(Process { pid, start: 0, space: own_space() }),
        Err(_) => None,
    }
}

/// The start tick in a line of `/proc/PID/stat`. The program's name is in parentheses and may contain any character, so
/// fields are counted after the last parenthesis.
#[cfg(target_os = "linux")]
fn started(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    match fields.next()? {
        "Z" | "X" | "x" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

/// The names of the files that a process has open. Those of another user's process cannot be read.
#[cfg(target_os = "linux")]
pub(crate) fn open_files(pid: u32) -> Vec<String> {
    let listed = lists_own_processes().then(|| fs::read_dir(format!("/proc/{pid}/fd")).ok()).flatten();
    let entries = listed.into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    files.filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open_files(_pid: u32) -> Vec<String> {
    Vec::new()
}

/// The processes of a program that have a terminal as their standard input. Another user's cannot be looked at.
#[cfg(target_os = "linux")]
pub(crate) fn terminals(program: &str) -> Vec<Terminal> {
    let listed = lists_own_processes().then(|| fs::read_dir("/proc").ok()).flatten();
    let entries = listed.into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| terminal(pid, program)).collect()
}

#[cfg(target_os = "linux")]
fn terminal(pid: u32, program: &str) -> Option<Terminal> {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut arguments = arguments.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let started_as = PathBuf::from(arguments.next()?);
    let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}"));
    let is_named = |path: &PathBuf| path.file_name().is_some_and(|name| name == program);
    if !is_named(&started_as) && !link("exe").is_ok_and(|path| is_named(&path)) {
        return None;
    }
    let input = link("fd/0").ok()?;
    let is_terminal = input.starts_with("/dev/pts") || input.starts_with("/dev/tty");
    let folder = link("cwd").ok().filter(|_| is_terminal)?;
    Some(Terminal { process: process(pid)?, folder, arguments: arguments.filter(|word| !word.is_empty()).collect() })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn terminals(_program: &str) -> Vec<Terminal> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_start_is_found_behind_any_program_name() {
        let line = |name: &str, state: &str| {
            format!("17 ({name}) {state} 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20")
        };
        for (stat, expected) in [
            (line("sh", "S"), Some(4711)),
            (line("a) R (b", "R"), Some(4711)),
            (line("sh", "Z"), None),
            (String::from("17 (sh"), None),
            (String::from("17 (sh) S 1 2"), None),
        ] {
            assert_eq!(started(&stat), expected, "{stat}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_caller_is_found_behind_shells() {
        assert_eq!(name_and_parent("17 (sh) S 4711 2"), Some(("sh", 4711)));
        assert_eq!(name_and_parent("17 (a) R (b) S 1 2"), Some(("a) R (b", 1)));
        assert_eq!(name_and_parent("17 (sh"), None);
        let caller = caller().expect("a test is run by something");
        assert_eq!(process(caller.pid), Some(caller));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_process_has_open_is_seen() {
        let file = tempfile::Builder::new().prefix("record-").tempfile().expect("a file");
        let name = file.path().file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert!(open_files(std::process::id()).contains(&name));
        assert_eq!(open_files(u32::MAX), Vec::<String>::new());
        assert_eq!(terminals("a program that nobody has"), Vec::new());
    }
}
