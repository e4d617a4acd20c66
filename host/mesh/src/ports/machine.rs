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

/// The processes among which a process id names one: those of one PID namespace, such as a container's, of one boot.
/// Each part is an opaque number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessSpace {
    /// The installed system, which outlives a boot; zero if it is not known.
    pub system: u64,
    pub boot: u64,
    /// The PID namespace.
    pub namespace: u64,
}

/// What can be told of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Runs,
    /// It has ended.
    Ended,
    /// It is in another PID namespace, or the system does not tell: only what it does shows that it lives.
    Unknown,
}

/// A process, distinguished from a later one with the same id, and from one that has this id in another PID namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// When it started, in the machine's own unit; zero if unknown.
    pub start: u64,
    /// Where its id counts; none if the system has one set of ids for all, or in a record of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<ProcessSpace>,
}

impl Process {
    /// Whether both name the same process. In a record of an earlier version, nothing is known of where its id counts.
    pub fn is(&self, other: &Process) -> bool {
        let same_space = self.space.is_none() || other.space.is_none() || self.space == other.space;
        self.pid == other.pid && self.start == other.start && same_space
    }
}

/// A program that runs in a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    pub process: Process,
    /// Its current folder.
    pub folder: PathBuf,
    /// Its arguments, without the program.
    pub arguments: Vec<String>,
}

/// The machine, as far as the mesh needs it. The binary implements it; tests have their own.
pub trait Machine: Send + Sync + 'static {
    fn now(&self) -> Instant;
    /// The process that has this id now, if any.
    fn process(&self, pid: u32) -> Option<Process>;
    /// This process.
    fn this_process(&self) -> Process;
    /// Where this process's id counts; none if the system has one set of ids for all. A process of another space cannot
    /// be looked up here.
    fn process_space(&self) -> Option<ProcessSpace> {
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

    /// A mark of a file that changes whenever its content does. None if there is no such file, or the system does not tell.
    fn file_mark(&self, file: &Path) -> Option<String> {
        let _unseen: &Path = file;
        None
    }

    /// An absolute path with every symlink followed, and what is there. The last components need not exist yet.
    fn resolve(&self, path: &Path) -> io::Result<Resolved> {
        Ok(Resolved { path: PathBuf::from(path), found: PathKind::Nothing })
    }

    /// Whether this same process still runs.
    fn life(&self, process: Process) -> Life {
        match (process.space, self.process_space()) {
            (None, _) => {}
            (Some(its), Some(own)) if its == own => {}
            // What ran before this system was started again has ended. Another system may be one that runs beside it
            // on the same files, such as a virtual machine.
            (Some(its), Some(own)) if its.system == own.system && its.boot != own.boot => return Life::Ended,
            (Some(_), _) => return Life::Unknown,
        }
        match self.process(process.pid) {
            None => Life::Ended,
            Some(now) if now.start == process.start => Life::Runs,
            Some(now) if now.start == 0 || process.start == 0 => Life::Unknown,
            Some(_) => Life::Ended,
        }
    }

    /// Whether it is certain that this same process runs.
    fn runs(&self, process: Process) -> bool {
        self.life(process) == Life::Runs
    }

    /// Whether it is certain that this process has ended.
    fn has_ended(&self, process: Process) -> bool {
        self.life(process) == Life::Ended
    }
}
