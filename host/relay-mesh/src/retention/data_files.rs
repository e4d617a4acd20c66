//! The files of the data folder, as a cleanup sees them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use mesh::DryRun;
use mesh::names::AgentName;
use mesh::ports::data_files::{Amount, DataFiles, OldSegments};
use store::{Key, Position};

use crate::config::Shared;

/// The bits of a position in a log of the files store that hold the offset. A test holds this against the store.
const OFFSET_BITS: u32 = 36;

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
        let (folder, leaf) = self.place(log);
        let active = fs::metadata(folder.join(format!("{leaf}.jsonl"))).map(|found| found.len()).ok();
        let mut sealed = sealed(&folder, &leaf);
        sealed.sort_unstable();
        if sealed.is_empty() && active.is_none() {
            return None;
        }
        let mut amount = Amount::default();
        for (number, length) in &sealed {
            if position(*number, *length) > before {
                return Some(OldSegments { amount, kept_from: position(*number, 0) });
            }
            amount.add(*length);
        }
        // Whatever comes after the sealed segments is the active one. Only a position in it tells its number.
        let number = before.0 >> OFFSET_BITS;
        let is_active = sealed.last().is_none_or(|(last, _)| number > *last);
        if let Some(length) = active.filter(|length| *length > 0 && is_active && position(number, *length) <= before) {
            amount.add(length);
            return Some(OldSegments { amount, kept_from: before });
        }
        let kept_from = if is_active { position(number, 0) } else { before };
        Some(OldSegments { amount, kept_from })
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
}

fn position(segment: u64, offset: u64) -> Position {
    Position((segment << OFFSET_BITS) | offset)
}

/// The sealed segments of a log: their numbers and lengths.
fn sealed(folder: &Path, leaf: &str) -> Vec<(u64, u64)> {
    let begins = format!("{leaf}.jsonl.");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter_map(|file| {
            let number = file.file_name().to_str()?.strip_prefix(&begins)?.parse().ok()?;
            Some((number, file.metadata().ok()?.len()))
        })
        .collect()
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
    let _held = held(&lock)?;
    gone(&lock)
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

#[cfg(test)]
mod tests {
    use store::files::{FilesOptions, FilesStore};
    use store::{Durability, Expect, Store as _};

    use super::*;

    #[tokio::test]
    async fn segments_are_measured_as_the_store_deletes_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = FilesOptions { rotate_at: 300, durability: Durability::Process, ..FilesOptions::default() };
        let store = FilesStore::open(folder.path(), options).expect("a store");
        let files = DataFolder { root: folder.path().to_owned(), shared: true };
        let log: Key = "agents/bob/inbox".parse().expect("a key");
        assert_eq!(files.segments_before(&log, Position(u64::MAX)), None);
        for _ in 0..2 {
            let mut ends = Vec::new();
            for number in 0..40 {
                let entry = format!("{{\"number\":{number},\"text\":\"some text of a message\"}}").into_bytes();
                ends.push(store.append(&log, &[entry], Expect::Any, Durability::Process).await.expect("appended"));
            }
            for before in ends.iter().step_by(3).chain(ends.last()) {
                let size = |_: ()| -> u64 {
                    let all = fs::read_dir(folder.path().join("agents/bob")).expect("a folder").flatten();
                    let logs = all.filter(|file| file.file_name().to_string_lossy().starts_with("inbox.jsonl"));
                    logs.map(|file| file.metadata().expect("a file").len()).sum()
                };
                let Some(measured) = files.segments_before(&log, *before) else {
                    assert_eq!(store.retire(&log, *before).await.expect("retired"), 0, "nothing is left");
                    continue;
                };
                let there = size(());
                let count = store.retire(&log, *before).await.expect("retired");
                assert_eq!(measured.amount, Amount { count, bytes: there - size(()) });
                let left = store.read(&log, Position::START, 1).await.expect("read");
                assert!(left.entries.first().is_none_or(|entry| entry.at >= measured.kept_from), "{measured:?}");
            }
        }
    }
}
