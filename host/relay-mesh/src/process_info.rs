//! What the system tells of other processes, as the mesh names them.

use std::path::PathBuf;

use mesh::ports::machine::{Process, ProcessSpace, Terminal};
use processes::ProcessId;

/// Where this process's number counts.
pub(crate) fn own_space() -> Option<ProcessSpace> {
    processes::own_space().map(space_of)
}

fn space_of(space: processes::Space) -> ProcessSpace {
    ProcessSpace { system: space.system, boot: space.boot, namespace: space.namespace }
}

/// A process, as the mesh names it.
pub(crate) fn named(process: ProcessId) -> Process {
    Process { pid: process.pid, start: process.start, space: process.space.map(space_of) }
}

/// This process, also if the system lists the processes of another PID namespace.
pub(crate) fn this_process() -> Option<Process> {
    processes::this_process_in_full().map(named)
}

/// The process that called this one, without shells in between. None if that process has ended or the system does not
/// tell.
pub(crate) fn caller() -> Option<Process> {
    processes::caller().map(named)
}

/// The client that started this server. None if a user did by hand.
pub(crate) fn client() -> Option<Process> {
    processes::client().map(named)
}

/// The folder in which the caller runs.
pub(crate) fn folder_of_caller() -> Option<PathBuf> {
    processes::folder_of(processes::caller()?.pid)
}

/// The process that has this number now. One that has ended and waits for its parent counts as gone.
pub(crate) fn process(pid: u32) -> Option<Process> {
    processes::find(pid).map(named)
}

/// The names of the files that a process has open.
pub(crate) fn open_files(pid: u32) -> Vec<String> {
    processes::open_files(pid)
}

/// The processes of a program that have a terminal as their standard input.
pub(crate) fn terminals(program: &str) -> Vec<Terminal> {
    let told = |found: processes::AtTerminal| Terminal {
        process: named(found.process),
        folder: found.folder,
        arguments: found.arguments,
    };
    processes::at_terminals(program).into_iter().map(told).collect()
}
