//! The machine that this process runs on: clock, processes, random bytes, name.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use mesh::ports::machine::{Instant, Machine, Process, ProcessSpace, Terminal};
use mesh::reservations::repository::{Checkout, Resolved};

use store_nats::Timekeeper;

use crate::clock::Clock;
use crate::process_info::{self, process};
use crate::unix::{self, MetadataExt};
use crate::{file_mark, git_checkout};

/// The file in the data folder with this machine's name.
const NAME_FILE: &str = "machine";
/// A copy of it in another folder: without its name this machine would not know its own agents.
const NAME_COPY: &str = "keys/machine";
/// Its name before 0.1, until the folder is upgraded.
const OLD_NAME_FILE: &str = "host";

/// A larger file holds no machine name, in bytes.
const LONGEST_NAME: u64 = 256;

#[derive(Debug)]
pub(crate) struct ThisMachine {
    /// Chosen when the data folder was first used, and stored in it.
    name: String,
    /// Corrected by the servers' clock if the mesh uses servers.
    clock: Arc<Clock>,
}

#[derive(Debug, thiserror::Error)]
#[error("could not keep this machine's name in `{}`", path.display())]
pub(crate) struct MachineError {
    path: PathBuf,
    source: io::Error,
}

impl MachineError {
    /// The name in a data folder cannot be written.
    pub(crate) fn of(data: &Path, source: io::Error) -> MachineError {
        MachineError { path: data.join(NAME_FILE), source }
    }
}

impl ThisMachine {
    /// Reads the machine's name from an existing data folder, or makes one and stores it there.
    pub(crate) fn named_in(data: &Path) -> Result<ThisMachine, MachineError> {
        let path = data.join(NAME_FILE);
        let copy = data.join(NAME_COPY);
        // In this order, because an upgrade may rename the old file while others open the folder.
        let known =
            [&path, &data.join(OLD_NAME_FILE), &copy].into_iter().find_map(|file| match read_machine_name(file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                outcome => Some(outcome),
            });
        let name = known.unwrap_or_else(|| machine_name(&path)).map_err(|source| MachineError { path, source })?;
        keep_copy(&copy, &name);
        Ok(ThisMachine { name, clock: Arc::new(Clock::kept_in(data)) })
    }

    /// Whether a folder holds a machine name, as every former data folder does. A larger file belongs to somebody else,
    /// such as the program `host`.
    pub(crate) fn is_named_in(folder: &Path) -> bool {
        [NAME_FILE, OLD_NAME_FILE, NAME_COPY].into_iter().any(|name| is_name(&folder.join(name)))
    }

    /// Whether a data folder was last written by a version before 0.1.
    pub(crate) fn is_of_before(data: &Path) -> bool {
        is_name(&data.join(OLD_NAME_FILE))
    }

    /// Marks a data folder as upgraded: it holds no records from before 0.1 any more.
    pub(crate) fn is_of_today(data: &Path) -> io::Result<()> {
        let (old, name) = (data.join(OLD_NAME_FILE), data.join(NAME_FILE));
        // A binary from before 0.1 that opened an upgraded folder made up another name; the existing one counts.
        let outcome = if is_name(&name) { fs::remove_file(old) } else { fs::rename(old, name) };
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    /// Receives the servers' time. From now on this machine's clock uses the latest offset.
    pub(crate) fn timekeeper(&self) -> Arc<dyn Timekeeper> {
        self.clock.go_by_servers();
        Arc::clone(&self.clock) as Arc<dyn Timekeeper>
    }

    /// The machine's own clock in milliseconds since 1970, uncorrected.
    pub(crate) fn own_clock(&self) -> u64 {
        self.clock.own()
    }
}

impl Machine for ThisMachine {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn process(&self, pid: u32) -> Option<Process> {
        let own = self.this_process();
        if pid == own.pid { Some(own) } else { process(pid) }
    }

    fn this_process(&self) -> Process {
        // Cached: a server asks for every message to one of its connections.
        static OWN: OnceLock<Process> = OnceLock::new();
        *OWN.get_or_init(|| {
            let pid = std::process::id();
            process_info::this_process().unwrap_or(Process { pid, start: 0, space: process_info::own_space() })
        })
    }

    fn process_space(&self) -> Option<ProcessSpace> {
        process_info::own_space()
    }

    fn open_files(&self, pid: u32) -> Vec<String> {
        process_info::open_files(pid)
    }

    fn terminals(&self, program: &str) -> Vec<Terminal> {
        process_info::terminals(program)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn checkout(&self, folder: &Path) -> io::Result<Checkout> {
        git_checkout::checkout(folder)
    }

    fn folder_mark(&self, folder: &Path) -> Option<String> {
        let found = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
        file_mark::of(folder, &found)
    }

    fn file_mark(&self, file: &Path) -> Option<String> {
        let found = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
        // A file that is replaced is another one, and one that is written has another time.
        Some(format!("{}.{}.{}.{}", found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
    }

    fn resolve(&self, path: &Path) -> io::Result<Resolved> {
        git_checkout::resolve(path)
    }

    fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        // Ids, reservations and keys need these bytes: without them the process must stop.
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        bytes
    }
}

/// Keeps the copy of the name, if there is none. Without one the machine works all the same.
fn keep_copy(copy: &Path, name: &str) {
    if copy.exists() {
        return;
    }
    let folder = copy.parent().unwrap_or(copy);
    let kept = unix::make_private_folder(folder).and_then(|()| {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let draft = copy.with_extension(format!("{:016x}", u64::from_ne_bytes(bytes)));
        write_name(&draft, name).and_then(|()| fs::rename(&draft, copy)).inspect_err(|_| drop(fs::remove_file(&draft)))
    });
    if let Err(error) = kept {
        tracing::debug!(%error, "there is no copy of this machine's name");
    }
}

fn write_name(path: &Path, name: &str) -> io::Result<()> {
    let mut file = unix::create_private_file(path)?;
    writeln!(file, "{name}")?;
    file.sync_all()
}

fn is_name(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST_NAME)
}

fn machine_name(path: &Path) -> io::Result<String> {
    match read_machine_name(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_machine_name(path),
        outcome => outcome,
    }
}

fn read_machine_name(path: &Path) -> io::Result<String> {
    let name = fs::read_to_string(path)?;
    let name = name.trim();
    if name.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
    }
    Ok(name.to_owned())
}

/// Several processes may do this at once: each writes its own file with a name in full, and the first to link it wins.
fn make_machine_name(path: &Path) -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let digits = hex::encode(bytes);
    let system = unix::node_name();
    let first_label = system.split('.').next().unwrap_or_default();
    let own = path.with_extension(&digits);
    write_name(&own, &format!("{first_label}-{digits}"))?;
    let linked = fs::hard_link(&own, path);
    fs::remove_file(&own)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => read_machine_name(path),
    }
}

#[cfg(test)]
mod tests {
    use mesh::ports::machine::Life;

    use super::*;

    #[test]
    fn this_process_lives_and_an_impossible_one_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let machine = ThisMachine::named_in(folder.path()).expect("a machine");
        let this = machine.this_process();
        assert!(machine.runs(this));
        let life = |other: Process| machine.life(other);
        assert_eq!(life(Process { start: this.start + 1, ..this }), Life::Ended, "the same number, of another time");
        let (space, elsewhere) = (this.space.expect("a place"), "another namespace");
        let other = ProcessSpace { namespace: space.namespace + 1, ..space };
        assert_eq!(life(Process { space: Some(other), ..this }), Life::Unknown, "{elsewhere}");
        let other = ProcessSpace { boot: space.boot + 1, ..space };
        assert_eq!(life(Process { space: Some(other), ..this }), Life::Ended, "the system was started again");
        let other = ProcessSpace { system: space.system + 1, boot: space.boot + 1, ..space };
        assert_eq!(life(Process { space: Some(other), ..this }), Life::Unknown, "another system, on the same files");
        assert_eq!(life(Process { space: None, ..this }), Life::Runs, "of an earlier version");
        assert!(machine.process(u32::MAX).is_none());
    }

    #[test]
    fn a_machine_whose_name_was_deleted_knows_it_still() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = || ThisMachine::named_in(folder.path()).expect("a machine").name().to_owned();
        let name = named();
        fs::remove_file(folder.path().join(NAME_FILE)).expect("removed");
        assert_eq!(named(), name);
        fs::remove_file(folder.path().join(NAME_COPY)).expect("removed");
        assert_ne!(named(), name, "nothing is left that says it");
    }

    #[test]
    fn a_machine_keeps_its_name_and_leaves_no_other_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = || ThisMachine::named_in(folder.path()).expect("a machine").name().to_owned();
        let together: Vec<String> = std::thread::scope(|scope| {
            (0..8).map(|_| scope.spawn(named)).map(|thread| thread.join().expect("a name")).collect()
        });
        assert!(together.iter().all(|name| *name == together[0]), "{together:?}");
        assert_eq!(named(), together[0]);
        assert_eq!(fs::read_dir(folder.path()).expect("a listing").count(), 2, "its name, and the folder of the copy");
        assert_eq!(fs::read_dir(folder.path().join("keys")).expect("a listing").count(), 1);
    }
}
