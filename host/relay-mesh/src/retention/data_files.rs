//! The files of the data folder, as a cleanup sees them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use mesh::DryRun;
use mesh::names::AgentName;
use mesh::ports::data_files::{Amount, DataFiles, OldSegments};
use store::files::has_name;
use store::{Key, Position};

use crate::config::Shared;

/// The data folder.
#[derive(Clone, Debug)]
pub(crate) struct DataFolder {
    pub(crate) root: PathBuf,
    /// Whether the shared data is in it. If not, agents' files in it are those of a mesh that moved to servers.
    pub(crate) shared: bool,
}

impl DataFolder {
    pub(crate) fn new(root: &Path, shared: &Shared) -> DataFolder {
        let shared = match shared {
            Shared::InTheFolder => true,
            Shared::Nats(_) => false,
        };
        DataFolder { root: root.to_owned(), shared }
    }

    /// The folder and the file name stem of a key.
    fn place(&self, key: &Key) -> (PathBuf, String) {
        let path = self.root.join(key.as_str());
        let leaf = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        (path.parent().map(Path::to_owned).unwrap_or_default(), leaf)
    }
}

impl DataFiles for DataFolder {
    fn segments_before(&self, log: &Key, before: Position) -> Option<OldSegments> {
        if !self.shared {
            return None;
        }
        let found = store::files::segments_before(&self.root, log, before)?;
        let amount = Amount { count: found.files.len(), bytes: found.bytes };
        let name = |file: &PathBuf| file.strip_prefix(&self.root).unwrap_or(file).display().to_string();
        Some(OldSegments { amount, names: found.files.iter().map(name).collect(), kept_from: found.kept_from })
    }

    fn forget(&self, log: &Key, holds: &[Key], dry_run: DryRun) -> Option<Amount> {
        let (folder, leaf) = self.place(log);
        let mut amount = Amount::default();
        if let Ok(found) = fs::metadata(folder.join(format!("{leaf}.jsonl"))) {
            amount.add(found.len());
        }
        if dry_run == DryRun::No {
            let forgotten = forget_log(&folder, &leaf).and_then(|()| {
                holds.iter().map(|hold| self.place(hold)).try_for_each(|(folder, leaf)| forget_hold(&folder, &leaf))
            });
            if let Err(error) = forgotten {
                // The next run tries again: it finds what has no session.
                tracing::debug!(%log, %error, "files of a session that is over stay");
                return Some(Amount::default());
            }
        }
        Some(amount)
    }

    fn agents(&self) -> Vec<AgentName> {
        if !self.shared {
            return Vec::new();
        }
        let folders = fs::read_dir(self.root.join("agents")).into_iter().flatten().flatten();
        folders.filter_map(|folder| Key::decode(folder.file_name().to_str()?).parse().ok()).collect()
    }

    fn has_worktree(&self, folder: &Path) -> bool {
        folder.exists()
    }
}

/// Deletes the files of a log that nobody uses, with the log's lock held. A process that still has one open notices that
/// it has no name any more.
pub(crate) fn forget_log(folder: &Path, leaf: &str) -> io::Result<()> {
    let lock = folder.join(format!(".{leaf}.lock"));
    let _held = held(&lock)?;
    for name in [format!("{leaf}.jsonl"), format!(".{leaf}.synced"), format!(".{leaf}.gate")] {
        gone(&folder.join(name))?;
    }
    gone(&lock)
}

pub(crate) fn forget_hold(folder: &Path, leaf: &str) -> io::Result<()> {
    let lock = folder.join(format!(".{leaf}.hold"));
    match held(&lock)? {
        // If another process has removed the file meanwhile, its name may be that of one which is held.
        Some(held) if has_name(&held.metadata()?) => gone(&lock),
        Some(_) | None => Ok(()),
    }
}

/// A lock file, locked; none if it does not exist, an error while another process has it.
fn held(lock: &Path) -> io::Result<Option<File>> {
    let file = match File::open(lock) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes a file; one that is gone already is as good.
pub(crate) fn gone(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
