//! Measures what retiring would delete, from the files alone and without a lock.

use std::fs;
use std::path::{Path, PathBuf};

use super::layout::{LogPaths, position, segment_and_offset};
use crate::{Key, Position};

/// The segments of a log that end at or before a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentsBefore {
    /// Their files.
    pub files: Vec<PathBuf>,
    /// Their bytes.
    pub bytes: u64,
    /// Where the first segment after them begins.
    pub kept_from: Position,
}

/// What [`crate::Store::retire`] would delete of a log in the store of a folder; none if the log has no files there.
pub fn segments_before(root: &Path, log: &Key, before: Position) -> Option<SegmentsBefore> {
    let paths = LogPaths::of(root, log);
    let active = fs::metadata(&paths.active).map(|found| found.len()).ok();
    let files = fs::read_dir(&paths.folder).into_iter().flatten().flatten();
    let mut sealed: Vec<(u64, u64)> = files
        .filter_map(|file| Some((paths.sealed_number(file.file_name().to_str()?)?, file.metadata().ok()?.len())))
        .collect();
    sealed.sort_unstable();
    if sealed.is_empty() && active.is_none() {
        return None;
    }
    let mut found = SegmentsBefore { files: Vec::new(), bytes: 0, kept_from: before };
    for (number, length) in &sealed {
        if position(*number, *length) > before {
            return Some(SegmentsBefore { kept_from: position(*number, 0), ..found });
        }
        found.files.push(paths.sealed(*number));
        found.bytes += length;
    }
    // Whatever comes after the sealed segments is the active one. Only a position in it tells its number.
    let (number, _) = segment_and_offset(before);
    let is_active = sealed.last().is_none_or(|(last, _)| number > *last);
    if let Some(length) = active.filter(|length| *length > 0 && is_active && position(number, *length) <= before) {
        found.files.push(paths.active);
        found.bytes += length;
        return Some(found);
    }
    let kept_from = if is_active { position(number, 0) } else { before };
    Some(SegmentsBefore { kept_from, ..found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{FilesOptions, FilesStore};
    use crate::{Durability, Expect, Store as _};

    #[tokio::test]
    async fn segments_are_measured_as_they_are_deleted() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = FilesOptions { rotate_at: 300, durability: Durability::Process, ..FilesOptions::default() };
        let store = FilesStore::open(folder.path(), options).expect("a store");
        let log: Key = "agents/bob/inbox".parse().expect("a key");
        assert_eq!(segments_before(folder.path(), &log, Position(u64::MAX)), None);
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
                let Some(measured) = segments_before(folder.path(), &log, *before) else {
                    assert_eq!(store.retire(&log, *before).await.expect("retired"), 0, "nothing is left");
                    continue;
                };
                let there = size(());
                let count = store.retire(&log, *before).await.expect("retired");
                assert_eq!((measured.files.len(), measured.bytes), (count, there - size(())));
                assert!(measured.files.iter().filter(|file| !file.ends_with("inbox.jsonl")).all(|file| !file.exists()));
                let left = store.read(&log, Position::START, 1).await.expect("read");
                assert!(left.entries.first().is_none_or(|entry| entry.at >= measured.kept_from), "{measured:?}");
            }
        }
    }
}
