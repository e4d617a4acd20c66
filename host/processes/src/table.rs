//! The processes of this machine, as the system lists them.
//!
//! Where it lists none, or those of another PID namespace, where our numbers name other processes, descendants outside
//! of a program's own group are not found, and this crate says so instead of guessing.

use serde::{Deserialize, Serialize};

use crate::space::{Space, lists_own_processes, own_space};
use crate::system::{self, Listed};

/// A process, told apart from a later one with the same number, and from one with that number elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it started, in the system's own unit; zero if the system does not say.
    pub start: u64,
    /// Where its number counts; none in a file of an earlier version, or if the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
}

impl ProcessId {
    /// Whether both name the same process. Nothing is known of where one counts that an earlier version wrote.
    pub fn is(&self, other: &ProcessId) -> bool {
        let same_space = self.space.is_none() || other.space.is_none() || self.space == other.space;
        self.pid == other.pid && self.start == other.start && same_space
    }
}

/// One line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) process: ProcessId,
    pub(crate) parent: u32,
    /// It has ended and only waits for its parent to notice.
    pub(crate) is_zombie: bool,
    /// It began a session of the system's, as the shell of a terminal does. False if the system does not say.
    pub(crate) leads_session: bool,
}

/// Every process that this one can see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Vec<ProcessEntry>);

/// This process.
pub fn this_process() -> ProcessId {
    let pid = std::process::id();
    find(pid).unwrap_or(ProcessId { pid, start: 0, space: own_space() })
}

/// This process with its true start, also if the system lists the processes of another namespace.
pub fn this_process_in_full() -> Option<ProcessId> {
    let pid = std::process::id();
    match system::this_process() {
        Some(listed) => Some(entry_of(pid, &listed).process),
        None => find(pid),
    }
}

/// The processes above this one: its parent first.
pub fn ancestors() -> Vec<ProcessId> {
    above().iter().map(|entry| entry.process).collect()
}

fn above() -> Vec<ProcessEntry> {
    let mut found: Vec<ProcessEntry> = Vec::new();
    let mut at = entry(std::process::id());
    while let Some(above) = at.and_then(|entry| self::entry(entry.parent)) {
        // A process that ended meanwhile may leave a number that leads back here.
        if found.iter().any(|known| known.process == above.process) {
            break;
        }
        found.push(above);
        at = Some(above);
    }
    found
}

/// The processes above this one that belong to whatever started it: up to the first one that leads a session, which is
/// the shell of a terminal or the user's service manager, and starts much else.
pub fn ancestors_in_session() -> Vec<ProcessId> {
    // The first process of a namespace may belong to a session outside of it.
    let ends_here = |above: &ProcessEntry| above.leads_session || above.process.pid == 1;
    above().into_iter().take_while(|above| !ends_here(above)).map(|above| above.process).collect()
}

/// The process that has this number now; none if it has ended.
pub fn find(pid: u32) -> Option<ProcessId> {
    entry(pid).and_then(living)
}

/// What the system lists of a process, as a process; none if it has ended.
pub(crate) fn named(pid: u32, listed: &Listed) -> Option<ProcessId> {
    living(entry_of(pid, listed))
}

fn living(entry: ProcessEntry) -> Option<ProcessId> {
    (!entry.is_zombie).then_some(entry.process)
}

impl Table {
    /// The processes of now. Empty where the system lists none.
    pub(crate) fn read() -> Table {
        Table(system::pids().filter_map(entry).collect())
    }

    /// Every living process below this one, and the zombies on the way.
    pub(crate) fn below(&self, top: u32) -> Vec<ProcessEntry> {
        let mut found: Vec<ProcessEntry> = Vec::new();
        let mut parents = vec![top];
        while let Some(parent) = parents.pop() {
            for child in self.0.iter().filter(|entry| entry.parent == parent && entry.process.pid != top) {
                if !found.contains(child) {
                    found.push(*child);
                    parents.push(child.process.pid);
                }
            }
        }
        found
    }

    /// The living processes whose environment holds a line, and every process below them.
    pub(crate) fn marked(&self, line: &[u8]) -> Vec<ProcessEntry> {
        let mut found: Vec<ProcessEntry> =
            self.0.iter().filter(|entry| !entry.is_zombie && has_line(entry.process.pid, line)).copied().collect();
        for at in 0..found.len() {
            for below in self.below(found[at].process.pid) {
                if !found.contains(&below) {
                    found.push(below);
                }
            }
        }
        found
    }
}

/// The process that has this number now, ended or not.
pub(crate) fn entry(pid: u32) -> Option<ProcessEntry> {
    if !lists_own_processes() {
        return unlisted(pid);
    }
    system::listed(pid).map(|listed| entry_of(pid, &listed))
}

fn entry_of(pid: u32, listed: &Listed) -> ProcessEntry {
    let Listed { parent, start, is_zombie, leads_session, .. } = *listed;
    ProcessEntry { process: ProcessId { pid, start, space: own_space() }, parent, is_zombie, leads_session }
}

/// The environment that a process was started with has this line.
fn has_line(pid: u32, line: &[u8]) -> bool {
    system::environment(pid).split(|byte| *byte == 0).any(|found| found == line)
}

/// What a signal tells of a process: whether there is one.
fn unlisted(pid: u32) -> Option<ProcessEntry> {
    let number = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
    let lives = match rustix::process::test_kill_process(number) {
        Ok(()) | Err(rustix::io::Errno::PERM) => true,
        Err(_) => false,
    };
    let parent = if pid == std::process::id() { std::os::unix::process::parent_id() } else { 0 };
    let process = ProcessId { pid, start: 0, space: own_space() };
    lives.then_some(ProcessEntry { process, parent, is_zombie: false, leads_session: false })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_is_found_at_any_depth_and_a_circle_ends() {
        let process = |pid| ProcessId { pid, start: 1, space: None };
        let entry =
            |(pid, parent)| ProcessEntry { process: process(pid), parent, is_zombie: false, leads_session: false };
        let table = Table([(2, 1), (3, 2), (4, 3), (5, 1), (6, 7), (7, 6), (1, 4)].map(entry).to_vec());
        let below = |top| {
            let mut pids: Vec<u32> = table.below(top).iter().map(|entry| entry.process.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(below(2), [1, 3, 4, 5]);
        assert_eq!(below(6), [7]);
        assert_eq!(below(9), [0; 0]);
    }

    #[test]
    fn this_process_is_below_its_ancestors() {
        let above = ancestors();
        assert!(!above.is_empty());
        let table = Table::read();
        assert!(table.below(above[0].pid).iter().any(|entry| entry.process == this_process()));
    }
}
