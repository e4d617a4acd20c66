//! A cache of recently read values, valid while their file is the same.
//!
//! A server looks up the same few records for each message. Checking that a file is still the same costs a fraction of
//! opening, reading and parsing it again. A value is replaced by another file with the same name, so its inode and
//! change time distinguish the two, unless both were written within one tick of the file system's clock. So values that
//! changed that recently are not cached.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::Versioned;
use crate::unix::MetadataExt;

/// The most cached values, and the longest one in bytes.
const MOST: usize = 512;
const LONGEST: usize = 16 << 10;

/// How old a change must be, in seconds, to be distinguishable from the next one.
const SETTLED: i64 = 2;

/// The values of one store that this process has read recently.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// A std mutex: nothing is awaited while it is held.
    values: Mutex<HashMap<PathBuf, (Stamp, Versioned)>>,
}

/// The metadata that distinguishes two states of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Stamp {
    pub(super) fn of(file: &Metadata) -> Stamp {
        Stamp {
            device: file.dev(),
            inode: file.ino(),
            length: file.len(),
            changed: (file.ctime(), file.ctime_nsec()),
            modified: (file.mtime(), file.mtime_nsec()),
        }
    }

    /// Whether any later change would show, at this time in seconds. If the clock was set back, changes are in the
    /// future, and those are never old enough.
    fn is_settled(self, now: i64) -> bool {
        self.changed.0.max(self.modified.0) + SETTLED <= now
    }
}

impl Recent {
    /// Whether a value is cached at all, so that checking its file is worth it.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.values.lock().unwrap_or_else(PoisonError::into_inner).contains_key(path)
    }

    /// The cached value, if the file is still in this state.
    pub(super) fn get(&self, path: &Path, stamp: Stamp) -> Option<Versioned> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(path).filter(|(kept, _)| *kept == stamp).map(|(_, value)| value.clone())
    }

    /// Caches a value read from a file in this state, if a later change would show.
    pub(super) fn keep(&self, path: &Path, stamp: Stamp, value: &Versioned, now: i64) {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        if value.bytes.len() > LONGEST || !stamp.is_settled(now) {
            values.remove(path);
            return;
        }
        if values.len() >= MOST {
            values.clear();
        }
        values.insert(path.to_path_buf(), (stamp, value.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Revision;

    fn stamp(inode: u64, changed: i64) -> Stamp {
        Stamp { device: 1, inode, length: 9, changed: (changed, 5), modified: (changed, 5) }
    }

    fn check(kept: Stamp, now: i64, asked: Stamp, expected: bool) {
        let (recent, path) = (Recent::default(), Path::new("/a"));
        let value = Versioned { revision: Revision(3), bytes: b"{}".to_vec() };
        recent.keep(path, kept, &value, now);
        assert_eq!(recent.get(path, asked), expected.then_some(value), "{kept:?} kept at {now}, asked for {asked:?}");
    }

    #[test]
    fn a_value_is_given_back_while_its_file_is_the_same() {
        check(stamp(7, 100), 102, stamp(7, 100), true);
        check(stamp(7, 100), 102, stamp(8, 100), false);
        check(stamp(7, 100), 102, stamp(7, 103), false);
    }

    #[test]
    fn what_was_changed_just_now_is_not_kept() {
        check(stamp(7, 100), 101, stamp(7, 100), false);
        check(stamp(7, 100), 90, stamp(7, 100), false);
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let recent = Recent::default();
        let value = Versioned { revision: Revision(1), bytes: b"1".to_vec() };
        for number in 0..=MOST {
            recent.keep(Path::new(&number.to_string()), stamp(1, 1), &value, 10);
        }
        assert!(recent.has(Path::new(&MOST.to_string())), "the latest is kept");
        assert!(!recent.has(Path::new("0")), "the first made room");
        let long = Versioned { revision: Revision(1), bytes: vec![b'1'; LONGEST + 1] };
        recent.keep(Path::new("long"), stamp(1, 1), &long, 10);
        assert!(!recent.has(Path::new("long")));
    }
}
