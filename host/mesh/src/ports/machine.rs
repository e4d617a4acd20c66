//! What the mesh needs of the machine that it runs on: the time, randomness, whether a process lives, and how a path
//! resolves.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::reservations::repository::{Checkout, PathKind, Resolved};

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(pub u64);

impl Instant {
    /// Milliseconds from `earlier` to here; zero if the clock went backwards.
    pub fn since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This many milliseconds later.
    #[must_use]
    pub fn plus(self, milliseconds: u64) -> Instant {
        Instant(self.0.saturating_add(milliseconds))
    }
}

/// A process, distinguished from a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// When it started, in the machine's own unit; zero if unknown.
    pub start: u64,
}

/// A program that runs in a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Its process.
    pub process: Process,
    /// Its current folder.
    pub folder: PathBuf,
    /// Its arguments, without the program.
    pub arguments: Vec<String>,
}

/// The machine, as far as the mesh needs it. The binary implements it; tests have their own.
pub trait Machine: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Instant;
    /// The process that has this id now, if any.
    fn process(&self, pid: u32) -> Option<Process>;
    /// This process.
    fn this_process(&self) -> Process;
    /// The set of processes that this process can see, as a number; none if the system has one set for all. A process
    /// of another set cannot be looked up here.
    fn process_space(&self) -> Option<u64> {
        None
    }
    /// The names of the files that a process of this user has open. None where the system does not tell.
    fn open_files(&self, pid: u32) -> Vec<String> {
        let _unseen: u32 = pid;
        Vec::new()
    }
    /// This user's processes of a program that have a terminal as their standard input. None where the system does not
    /// tell.
    fn terminals(&self, program: &str) -> Vec<Terminal> {
        let _unseen: &str = program;
        Vec::new()
    }
    /// A name for this machine that survives restarts.
    fn name(&self) -> &str;
    /// Fresh random bytes.
    fn random(&self) -> [u8; 16];

    /// The working copy that contains a folder; the folder itself if no repository contains it.
    /// The default is for a machine without folders: an error.
    fn checkout(&self, folder: &Path) -> io::Result<Checkout> {
        let _unseen: &Path = folder;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// A mark of a folder that stays the same if it is renamed, and that no other folder of this machine has. None if
    /// there is no such folder, or the system does not tell.
    fn folder_mark(&self, folder: &Path) -> Option<String> {
        let _unseen: &Path = folder;
        None
    }

    /// An absolute path with every symlink followed, and what is there. The last components need not exist yet.
    fn resolve(&self, path: &Path) -> io::Result<Resolved> {
        Ok(Resolved { path: PathBuf::from(path), found: PathKind::Nothing })
    }

    /// Whether this same process still runs.
    fn lives(&self, process: Process) -> bool {
        self.process(process.pid).is_some_and(|now| now.start == process.start || process.start == 0)
    }
}
