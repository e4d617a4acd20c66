//! The map of the files backend: one file per value, replaced as a whole.
//!
//! A file is `{"revision":7,"value":…}`. A swap locks the folder exclusively; readers need no lock, because a file is
//! either the old one or the new one.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;

use super::disk::{self, Access, Disk};
use super::executor;
use super::layout::{ValuePaths, value_path};
use super::recent::{Recent, Stamp};
use super::shared::Shared;
use crate::unix::flock::{self, Sharing};
use crate::unix::{self, FileExt};
use crate::{Durability, Key, Revision, StoreError, SwapError, Versioned};

pub(super) fn get(path: &Path) -> Result<Option<Versioned>, StoreError> {
    Ok(read(path)?.map(|(_, value)| value))
}

/// Reads a value, from the cache if the file is the same.
pub(super) fn get_recent(recent: &Recent, path: &Path) -> Result<Option<Versioned>, StoreError> {
    if recent.has(path)
        && let Ok(found) = fs::metadata(path)
        && let Some(value) = recent.get(path, Stamp::of(&found))
    {
        return Ok(Some(value));
    }
    let Some((stamp, value)) = read(path)? else { return Ok(None) };
    recent.keep(path, stamp, &value, unix::file_time());
    Ok(Some(value))
}

/// Reads a value and its file's state.
fn read(path: &Path) -> Result<Option<(Stamp, Versioned)>, StoreError> {
    let failed = |error| StoreError::io("could not read", path)(error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let found = file.metadata().map_err(failed)?;
    if found.is_dir() {
        return Err(damaged(path, "it is a folder".to_owned()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0).saturating_add(1));
    read_all(&file, &mut bytes).map_err(failed)?;
    match understood(&bytes) {
        Ok(Some((revision, ValueBytes::Within(at)))) => {
            bytes.truncate(at.end);
            bytes.drain(..at.start);
            Ok(Some((Stamp::of(&found), Versioned { revision, bytes })))
        }
        Ok(Some((revision, ValueBytes::Rewritten(bytes)))) => {
            Ok(Some((Stamp::of(&found), Versioned { revision, bytes })))
        }
        Ok(None) => Ok(None),
        Err(why) => Err(damaged(path, why)),
    }
}

/// Reads a whole value file into the buffer, growing it if needed. The file is written before it gets its name, so a
/// read that does not fill the buffer has reached the end.
pub(super) fn read_all(file: &File, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    loop {
        bytes.reserve(1);
        let room = bytes.capacity() - bytes.len();
        if unix::read_into_capacity(file, bytes)? < room {
            return Ok(());
        }
        bytes.reserve(4 << 10);
    }
}

/// The value in the bytes of a file.
pub(super) enum ValueBytes {
    /// This range of the file's bytes.
    Within(Range<usize>),
    /// The same value in the store's layout: the user edited the file.
    Rewritten(Vec<u8>),
}

impl ValueBytes {
    /// The value, given the file's bytes.
    pub(super) fn of<'a>(&'a self, file: &'a [u8]) -> &'a [u8] {
        match self {
            ValueBytes::Within(at) => &file[at.clone()],
            ValueBytes::Rewritten(bytes) => bytes,
        }
    }
}

/// The content of a value's file; none if it is empty, an error if it is damaged.
pub(super) fn understood(bytes: &[u8]) -> Result<Option<(Revision, ValueBytes)>, String> {
    // A power loss can leave the name of a file that was never synced, without its bytes.
    if bytes.is_empty() { Ok(None) } else { parse(bytes).map(Some) }
}

/// A change to one value.
pub(super) struct Swap<'a> {
    pub(super) paths: ValuePaths,
    pub(super) expected: Option<Revision>,
    /// None removes the value.
    pub(super) next: Option<&'a [u8]>,
    pub(super) durability: Durability,
}

/// Makes a change under the folder's lock. The lock file is opened for each change, so that tasks of one process
/// exclude each other like processes, and closing it releases the lock.
pub(super) fn swap_alone(shared: &Shared, change: &Swap<'_>) -> Result<Option<Revision>, SwapError> {
    // Removing an absent value creates no folder.
    if change.next.is_none() && change.expected.is_none() && get(&change.paths.value)?.is_none() {
        return Ok(None);
    }
    let path = &change.paths.lock;
    let opened = disk::open_or_create(&*shared.disk, &shared.root, path, Access::InPlace);
    let lock = opened.map_err(StoreError::io("could not open", path))?;
    let locked = flock::try_lock(&lock, Sharing::Alone).map_err(StoreError::io("could not lock", path))?;
    if locked && matches!(change.durability, Durability::Process) {
        return swap(shared, &lock, change);
    }
    executor::may_block(|| {
        if !locked {
            flock::lock(&lock, Sharing::Alone).map_err(StoreError::io("could not lock", path))?;
        }
        swap(shared, &lock, change)
    })
}

/// Makes a change, with the folder's lock held.
fn swap(shared: &Shared, lock: &File, change: &Swap<'_>) -> Result<Option<Revision>, SwapError> {
    let paths = &change.paths;
    let current = get(&paths.value)?.map(|value| value.revision);
    if current != change.expected {
        return Err(SwapError::Changed { current });
    }
    match change.next {
        Some(bytes) => {
            let before = match current {
                Some(revision) => revision,
                None => {
                    // Removing it later writes this much, which must be possible even if the disk is full by then.
                    let reserved = shared.disk.reserve(lock, &paths.lock, FLOOR_BYTES as u64);
                    reserved.map_err(StoreError::io("could not write to", &paths.lock))?;
                    read_floor(lock, paths)?
                }
            };
            let revision = Revision(before.0 + 1);
            replace(shared, change, revision, bytes)?;
            Ok(Some(revision))
        }
        None => {
            if let Some(revision) = current {
                remove(&*shared.disk, lock, change, revision)?;
            }
            Ok(None)
        }
    }
}

/// The keys of the values at and under a prefix, in order.
pub(super) fn list(root: &Path, prefix: &Key) -> Result<Vec<Key>, StoreError> {
    let mut keys = Vec::new();
    if value_path(root, prefix).is_file() {
        keys.push(prefix.clone());
    }
    collect(&root.join(prefix.as_str()), prefix.as_str(), &mut keys)?;
    keys.sort();
    Ok(keys)
}

fn collect(folder: &Path, prefix: &str, keys: &mut Vec<Key>) -> Result<(), StoreError> {
    let failed = || StoreError::io("could not list", folder);
    let names = match fs::read_dir(folder) {
        Ok(names) => names,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => return Err(failed()(error)),
    };
    for name in names {
        let name = name.map_err(failed())?;
        let kind = name.file_type().map_err(failed())?;
        let file_name = name.file_name();
        // A name that is not a key segment is not the store's.
        let Some(text) = file_name.to_str() else { continue };
        let leaf = if kind.is_dir() { Some(text) } else { text.strip_suffix(".json") };
        let Some(key) = leaf.and_then(|leaf| format!("{prefix}/{leaf}").parse::<Key>().ok()) else { continue };
        if kind.is_dir() {
            match collect(&name.path(), key.as_str(), keys) {
                // Another user's folder hides what is in it, and nothing else.
                Err(error @ StoreError::Damaged { .. }) => tracing::warn!(%error, "a folder is skipped"),
                listed => listed?,
            }
        } else {
            keys.push(key);
        }
    }
    Ok(())
}

/// Writes the next value beside the current one and renames it into place.
fn replace(shared: &Shared, change: &Swap<'_>, revision: Revision, value: &[u8]) -> Result<(), StoreError> {
    let disk = &*shared.disk;
    let (paths, synced) = (&change.paths, matches!(change.durability, Durability::Synced));
    match disk.unlink(&paths.draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(StoreError::io("could not remove", &paths.draft)(error));
        }
        Ok(()) | Err(_) => {}
    }
    let mut text = format!("{{\"revision\":{},\"value\":", revision.0).into_bytes();
    text.extend_from_slice(value);
    text.extend_from_slice(b"}\n");
    let written = disk.create(&paths.draft).and_then(|draft| {
        disk::append_all(disk, &draft, &paths.draft, &text)?;
        if synced { disk.sync(&draft, &paths.draft) } else { Ok(()) }
    });
    let placed = written.and_then(|()| disk.rename(&paths.draft, &paths.value));
    if let Err(reason) = placed {
        // On a full disk the draft takes space that others need.
        if let Err(error) = disk.unlink(&paths.draft)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %paths.draft.display(), %error, "could not remove a draft");
        }
        return Err(StoreError::io("could not write", &paths.value)(reason));
    }
    if synced {
        // The first time up to the root, because the folder's own name may be new.
        shared.sync_names(&paths.folder).map_err(StoreError::io("could not sync", &paths.folder))?;
    }
    Ok(())
}

/// The length of the record of the highest removed revision.
const FLOOR_BYTES: usize = 21;

/// Removes a value, recording its revision first: a later value of the key continues from there, so that no reader
/// mistakes it for the one it had read.
fn remove(disk: &dyn Disk, lock: &File, change: &Swap<'_>, revision: Revision) -> Result<(), StoreError> {
    let (paths, synced) = (&change.paths, matches!(change.durability, Durability::Synced));
    let floor = read_floor(lock, paths)?.max(revision);
    let record = format!("{:020}\n", floor.0);
    disk.overwrite(lock, &paths.lock, record.as_bytes()).map_err(StoreError::io("could not write to", &paths.lock))?;
    if synced {
        disk.sync(lock, &paths.lock).map_err(StoreError::io("could not sync", &paths.lock))?;
    }
    disk.unlink(&paths.value).map_err(StoreError::io("could not remove", &paths.value))?;
    if synced {
        disk.sync_folder(&paths.folder).map_err(StoreError::io("could not sync", &paths.folder))?;
    }
    Ok(())
}

/// The highest removed revision of a folder.
fn read_floor(lock: &File, paths: &ValuePaths) -> Result<Revision, StoreError> {
    let mut bytes = [0; FLOOR_BYTES];
    match lock.read_exact_at(&mut bytes, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Revision(0)),
        Err(error) => return Err(StoreError::io("could not read", &paths.lock)(error)),
    }
    let floor = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim_end().parse().ok());
    floor.map(Revision).ok_or_else(|| damaged(&paths.lock, "it does not hold a revision".to_owned()))
}

/// The content of a file that the user may have rewritten.
#[derive(Deserialize)]
struct Stored {
    revision: Revision,
    value: serde_json::Value,
}

/// Parses a value's file. The store's own layout is used as it is; a layout of the user's is parsed as JSON.
fn parse(bytes: &[u8]) -> Result<(Revision, ValueBytes), String> {
    if let Some((revision, at)) = parse_own(bytes) {
        return Ok((revision, ValueBytes::Within(at)));
    }
    let stored: Stored = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if stored.revision == Revision(0) {
        return Err("its revision is zero".to_owned());
    }
    let bytes = serde_json::to_vec(&stored.value).map_err(|error| error.to_string())?;
    Ok((stored.revision, ValueBytes::Rewritten(bytes)))
}

/// Recognises a file in this store's layout by its start and its end. It does not check that the value between is JSON,
/// because every reader parses it anyway: parsing twice would be the main cost of reading many values.
fn parse_own(bytes: &[u8]) -> Option<(Revision, Range<usize>)> {
    const BEFORE: &[u8] = b"{\"revision\":";
    const BETWEEN: &[u8] = b",\"value\":";
    let rest = bytes.strip_prefix(BEFORE)?.strip_suffix(b"}\n")?;
    let comma = rest.iter().position(|byte| *byte == b',')?;
    let revision: u64 = std::str::from_utf8(&rest[..comma]).ok()?.parse().ok()?;
    let value = rest[comma..].strip_prefix(BETWEEN)?;
    let begin = BEFORE.len() + comma + BETWEEN.len();
    (revision > 0).then(|| (Revision(revision), begin..begin + value.len()))
}

/// The error for a file that does not hold a value.
pub(super) fn damaged(path: &Path, why: String) -> StoreError {
    StoreError::Damaged { what: path.display().to_string(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, expected: Option<(u64, &str)>) {
        let found = parse(file.as_bytes()).ok();
        let found = found.map(|(revision, value_bytes)| (revision.0, value_bytes.of(file.as_bytes()).to_vec()));
        assert_eq!(found, expected.map(|(revision, value)| (revision, value.as_bytes().to_vec())), "{file}");
    }

    #[test]
    fn a_value_is_read_as_the_store_writes_it_and_as_a_person_does() {
        check("{\"revision\":7,\"value\":{\"a\": 1}}\n", Some((7, "{\"a\": 1}")));
        check("{\n  \"revision\": 7,\n  \"value\": {\n \"a\": 1 } }", Some((7, "{\"a\":1}")));
        check("{\"value\":[1],\"revision\":2}", Some((2, "[1]")));
    }

    #[test]
    fn a_torn_or_foreign_file_is_damaged() {
        for file in ["{", "\0\0", "{\"revision\":7,\"val", "{\"revision\":0,\"value\":1}\n", "[]", "{\"a\":1}", "null"]
        {
            check(file, None);
        }
    }
}
