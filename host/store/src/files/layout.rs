//! The file of each key. Names that start with a dot are the store's own, and no segment of a key starts with one, so
//! they never collide.

use std::path::{Path, PathBuf};

use crate::{Key, Position};

/// The bits of a position that hold the offset: a segment is far shorter than 64 GiB.
const OFFSET_BITS: u32 = 36;

/// The longest segment that the options allow, well within the range of a position.
pub(super) const LONGEST_SEGMENT: u64 = 1 << 34;

/// The files of one log.
#[derive(Clone, Debug)]
pub(super) struct LogPaths {
    /// Their folder.
    pub(super) folder: PathBuf,
    /// The last part of the key.
    leaf: String,
    /// The segment that is appended to: `inbox.jsonl`.
    pub(super) active: PathBuf,
    /// Locked around each append and read; records which segments exist: `.inbox.lock`.
    pub(super) lock: PathBuf,
    /// Records how far the log is on disk; the syncing process locks it: `.inbox.synced`.
    pub(super) mark: PathBuf,
    /// Locked during every second sync, for the processes that wait for it: `.inbox.gate`.
    pub(super) gate: PathBuf,
}

impl LogPaths {
    pub(super) fn of(root: &Path, log: &Key) -> LogPaths {
        let (folder, leaf) = folder_and_leaf(root, log);
        LogPaths {
            active: folder.join(format!("{leaf}.jsonl")),
            lock: folder.join(format!(".{leaf}.lock")),
            mark: folder.join(format!(".{leaf}.synced")),
            gate: folder.join(format!(".{leaf}.gate")),
            leaf: leaf.to_owned(),
            folder,
        }
    }

    /// The file of a sealed segment: `inbox.jsonl.3`. No key has this file: logs end in `.jsonl` and values in `.json`.
    pub(super) fn sealed(&self, segment: u64) -> PathBuf {
        let mut name = self.active.clone().into_os_string();
        name.push(format!(".{segment}"));
        PathBuf::from(name)
    }

    /// The index of a sealed segment: `.inbox.index.3`.
    pub(super) fn index(&self, segment: u64) -> PathBuf {
        self.folder.join(format!(".{}.index.{segment}", self.leaf))
    }

    /// The ranges of the sealed segments: `.inbox.index.all`.
    pub(super) fn catalog(&self) -> PathBuf {
        self.folder.join(format!(".{}.index.all", self.leaf))
    }

    /// The number of a sealed segment of this log, if the file name is that of one.
    pub(super) fn sealed_number(&self, name: &str) -> Option<u64> {
        let active = self.active.file_name()?.to_str()?;
        name.strip_prefix(active)?.strip_prefix('.')?.parse().ok()
    }
}

/// The files that one value needs.
#[derive(Clone, Debug)]
pub(super) struct ValuePaths {
    /// Their folder.
    pub(super) folder: PathBuf,
    /// The value: `meta.json`.
    pub(super) value: PathBuf,
    /// Locked around each swap in this folder; records the highest removed revision.
    pub(super) lock: PathBuf,
    /// The next value is written here and then renamed. One name is enough for the folder, because only the process
    /// with the lock writes it; so crashes leave no pile of files.
    pub(super) draft: PathBuf,
}

impl ValuePaths {
    pub(super) fn of(root: &Path, key: &Key) -> ValuePaths {
        let (folder, _) = folder_and_leaf(root, key);
        ValuePaths {
            value: value_path(root, key),
            lock: folder.join(".values.lock"),
            draft: folder.join(".draft"),
            folder,
        }
    }
}

/// The file of a value, which is all that a reader needs.
pub(super) fn value_path(root: &Path, key: &Key) -> PathBuf {
    const ENDING: &str = ".json";
    let mut path = PathBuf::with_capacity(root.as_os_str().len() + 1 + key.as_str().len() + ENDING.len());
    path.push(root);
    path.push(key.as_str());
    path.as_mut_os_string().push(ENDING);
    path
}

/// The file whose lock is the hold of a key.
pub(super) fn hold_path(root: &Path, key: &Key) -> PathBuf {
    let (folder, leaf) = folder_and_leaf(root, key);
    folder.join(format!(".{leaf}.hold"))
}

/// The folder of a key's file, and the first part of the file's name.
pub(super) fn folder_and_leaf<'key>(root: &Path, key: &'key Key) -> (PathBuf, &'key str) {
    match key.as_str().rsplit_once('/') {
        Some((folder, leaf)) => (root.join(folder), leaf),
        None => (root.to_path_buf(), key.as_str()),
    }
}

/// Packs a segment and an offset in it.
pub(super) fn position(segment: u64, offset: u64) -> Position {
    Position((segment << OFFSET_BITS) | offset)
}

/// Unpacks what [`position`] packed.
pub(super) fn segment_and_offset(position: Position) -> (u64, u64) {
    (position.0 >> OFFSET_BITS, position.0 & ((1 << OFFSET_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_its_sealed_segments_and_a_value_of_the_same_key_are_different_files() {
        let key: Key = "agents/bob/inbox".parse().expect("a key");
        let log = LogPaths::of(Path::new("/r"), &key);
        assert_eq!(log.active, Path::new("/r/agents/bob/inbox.jsonl"));
        assert_eq!(log.sealed(3), Path::new("/r/agents/bob/inbox.jsonl.3"));
        assert_eq!(log.sealed_number("inbox.jsonl.3"), Some(3));
        assert_eq!(log.sealed_number("inbox.jsonl"), None);
        assert_eq!(log.sealed_number("inbox.jsonl.x"), None);
        assert_eq!(ValuePaths::of(Path::new("/r"), &key).value, Path::new("/r/agents/bob/inbox.json"));
    }

    #[test]
    fn positions_are_ordered_by_segment_and_then_by_offset() {
        assert_eq!(position(0, 0), Position::START);
        assert!(position(0, LONGEST_SEGMENT) < position(1, 0));
        assert_eq!(segment_and_offset(position(7, 42)), (7, 42));
    }
}
