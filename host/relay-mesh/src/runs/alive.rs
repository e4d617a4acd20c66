//! Whether the process lives that works on a run, a review or a pipeline, also in another PID namespace: such a process
//! holds a lock for as long as it works, which the system gives up when it ends, however it ends.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use mesh::ports::machine::{Life, Machine, Process};

/// Says that this process works on what a file or a folder stands for, until the result is dropped. A process that
/// takes it over may say so before this one is done.
pub(crate) fn hold(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    file.lock_shared()?;
    Ok(file)
}

/// Whether a process works on it: the one that its record names.
pub(crate) fn is_worked_on(path: &Path, by: Process, machine: &dyn Machine) -> bool {
    match machine.life(by) {
        Life::Runs => true,
        Life::Ended => false,
        Life::Unknown if is_out_of_sight(by, machine) => true,
        Life::Unknown => is_held(path),
    }
}

/// Whether nothing of a process can be told here: another system that shares the files need not see this one's locks.
pub(crate) fn is_out_of_sight(by: Process, machine: &dyn Machine) -> bool {
    machine.life(by) == Life::Unknown && boot_of(by) != boot_of(machine.this_process())
}

fn boot_of(process: Process) -> Option<u64> {
    process.space.map(|space| space.boot)
}

/// Whether a process holds it. What cannot be looked at counts as held: nothing of it is ended or deleted.
fn is_held(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        },
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::ThisMachine;
    use mesh::ports::machine::ProcessSpace;

    #[test]
    fn work_in_another_namespace_goes_on_while_its_lock_is_held() {
        let folder = tempfile::tempdir().expect("a folder");
        let machine = ThisMachine::named_in(folder.path()).expect("a machine");
        let this = machine.this_process();
        let space = this.space.expect("a place");
        let elsewhere = |space: ProcessSpace| Process { space: Some(space), ..this };
        let container = elsewhere(ProcessSpace { namespace: space.namespace + 1, ..space });
        let other_system = elsewhere(ProcessSpace { system: space.system + 1, boot: space.boot + 1, ..space });
        let path = folder.path().join("work");
        let is_worked_on = |by| super::is_worked_on(&path, by, &machine);
        assert!(!is_worked_on(container), "there is nothing");
        std::fs::write(&path, "").expect("written");
        assert!(is_worked_on(this) && !is_worked_on(container));
        let held = hold(&path).expect("held");
        assert!(is_worked_on(container));
        let taken_over = hold(&path).expect("held by two");
        drop(held);
        assert!(is_worked_on(container));
        drop(taken_over);
        assert!(!is_worked_on(container), "its process has ended");
        assert!(is_worked_on(other_system), "whose locks nobody sees here");
    }
}
