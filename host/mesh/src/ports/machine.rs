//! What the mesh asks of the machine it runs on: the time, randomness, whether a process
//! lives, and where a path leads.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::reservations::repository::{Checkout, Found, Resolved};

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(pub u64);

impl Instant {
    /// Milliseconds from `earlier` to here; zero where the clock went backwards.
    pub fn since(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// So many milliseconds later.
    #[must_use]
    pub fn plus(self, milliseconds: u64) -> Instant {
        Instant(self.0.saturating_add(milliseconds))
    }
}

/// A process, told apart from a later one that was given the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the machine's own measure; zero where that could not be learned.
    pub start: u64,
}

/// The machine, as far as the mesh needs it. The binary implements it; tests have one of their own.
pub trait Machine: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Instant;
    /// The process that now has this number; none where nothing has.
    fn process(&self, pid: u32) -> Option<Process>;
    /// This process.
    fn this_process(&self) -> Process;
    /// A name for this machine that stays the same over restarts.
    fn name(&self) -> &str;
    /// Fresh random bytes.
    fn random(&self) -> [u8; 16];

    /// The working copy that a folder lies in: of a repository where there is one, else the folder itself.
    /// A machine that shows no folders has none.
    fn checkout(&self, folder: &Path) -> io::Result<Checkout> {
        let _unseen: &Path = folder;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Where an absolute path leads when every symlink on it is followed, and what lies there. The last parts
    /// of it may not be there yet.
    fn resolve(&self, path: &Path) -> io::Result<Resolved> {
        Ok(Resolved { path: PathBuf::from(path), found: Found::Nothing })
    }

    /// Whether this very process still runs.
    fn lives(&self, process: Process) -> bool {
        self.process(process.pid).is_some_and(|now| now.start == process.start || process.start == 0)
    }
}
