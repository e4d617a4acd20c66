//! Checks the lines of the data folder's logs, and remembers how far: a log only grows, so what was read once and found
//! whole is not read again. The daily cleanup goes on where the last check ended; `doctor --store --all` reads everything.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use store::Durability;

use crate::{atomic_write, file_mark};

/// The file in the data folder with what was checked.
const NOTES: &str = ".checked-logs.json";
/// How much of a file is read at a time.
const STEP: usize = 1 << 20;
/// How much `doctor --store` reads of what was not checked before, in bytes: a second of reading.
pub(crate) const AT_ONCE: u64 = 64 << 20;

/// How much of the logs to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What was not checked before, up to so many bytes.
    New(u64),
    /// Everything.
    All,
}

/// What was found in the logs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckedLogs {
    /// Lines that are whole, also those that were checked before.
    pub(crate) whole: u64,
    /// Files with lines that are not, and their number.
    pub(crate) damaged: Vec<(PathBuf, u64)>,
    /// Files that cannot be read.
    pub(crate) unreadable: Vec<(PathBuf, String)>,
    /// Bytes that were left for another time.
    pub(crate) unchecked: u64,
}

/// How far one file was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CheckedFile {
    /// The end of the last whole line that was read.
    to: u64,
    whole: u64,
    damaged: u64,
}

/// By the marks of the files, which they keep when a segment is sealed and so renamed.
type Notes = BTreeMap<String, CheckedFile>;

/// Checks the logs among these files, the newest first.
pub(crate) fn check(root: &Path, logs: Vec<PathBuf>, depth: Depth) -> CheckedLogs {
    let before: Notes = match depth {
        Depth::New(_) => fs::read(root.join(NOTES)).ok().and_then(|text| serde_json::from_slice(&text).ok()),
        Depth::All => None,
    }
    .unwrap_or_default();
    let mut left = match depth {
        Depth::New(most) => most,
        Depth::All => u64::MAX,
    };
    let (mut found, mut notes) = (CheckedLogs::default(), Notes::new());
    let mut logs: Vec<(Option<Metadata>, PathBuf)> =
        logs.into_iter().map(|path| (fs::metadata(&path).ok(), path)).collect();
    let changed = |about: &Metadata| about.modified().unwrap_or(UNIX_EPOCH);
    logs.sort_by_cached_key(|(about, _)| std::cmp::Reverse(about.as_ref().map(changed)));
    for (about, path) in logs {
        if let Some((mark, checked)) = about.and_then(|about| checked_whole(&path, &about, &before)) {
            found.take(path, checked);
            notes.insert(mark, checked);
            continue;
        }
        match check_file(&path, &before, &mut left) {
            Ok((mark, checked, unread)) => {
                found.unchecked += unread;
                found.take(path, checked);
                notes.insert(mark, checked);
            }
            // It was deleted or sealed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.unreadable.push((path, error.to_string())),
        }
    }
    if notes != before
        && let Err(error) = serde_json::to_vec(&notes)
            .map_err(io::Error::from)
            .and_then(|text| atomic_write::replace(&root.join(NOTES), &text, 0o600, Durability::Process))
    {
        tracing::debug!(%error, "what was checked is not remembered");
    }
    found
}

/// Whether a file is a log or a sealed segment of one: `inbox.jsonl`, `inbox.jsonl.3`.
pub(crate) fn is_log(name: &str) -> bool {
    match name.split_once(".jsonl") {
        Some((leaf, rest)) => {
            let sealed = rest.strip_prefix('.').is_some_and(|number| number.parse::<u64>().is_ok());
            !leaf.starts_with('.') && !leaf.is_empty() && (rest.is_empty() || sealed)
        }
        None => false,
    }
}

impl CheckedLogs {
    fn take(&mut self, path: PathBuf, checked: CheckedFile) {
        self.whole += checked.whole;
        if checked.damaged > 0 {
            self.damaged.push((path, checked.damaged));
        }
    }
}

/// A file that was checked to its end before, as most sealed segments were: it need not be opened.
fn checked_whole(path: &Path, about: &Metadata, before: &Notes) -> Option<(String, CheckedFile)> {
    let mark = file_mark::of(path, about)?;
    let checked = *before.get(&mark).filter(|checked| checked.to == about.len())?;
    Some((mark, checked))
}

/// Reads on in a file. Returns its mark, how far it is checked now, and how much is left.
fn check_file(path: &Path, before: &Notes, left: &mut u64) -> io::Result<(String, CheckedFile, u64)> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    // Without a mark it is read from its beginning each time.
    let mark = file_mark::of(path, &about).unwrap_or_else(|| format!("?{}", path.display()));
    // One that is shorter than it was is another one, or was cut.
    let mut checked = before
        .get(&mark)
        .filter(|_| !mark.starts_with('?'))
        .copied()
        .filter(|checked| checked.to <= about.len())
        .unwrap_or_default();
    file.seek(SeekFrom::Start(checked.to))?;
    let mut rest = Vec::new();
    let mut piece = vec![0; STEP.min(usize::try_from(about.len() - checked.to).unwrap_or(STEP))];
    while *left > 0 && !piece.is_empty() {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        *left = left.saturating_sub(read as u64);
        rest.extend_from_slice(&piece[..read]);
        // An unfinished last line is still being written.
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1) else { continue };
        for line in rest[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<serde::de::IgnoredAny>(line) {
                Ok(_) => checked.whole += 1,
                Err(_) => checked.damaged += 1,
            }
        }
        checked.to += end as u64;
        rest.drain(..end);
    }
    let unread = about.len().saturating_sub(checked.to + rest.len() as u64);
    Ok((mark, checked, unread))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn logs(root: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(root).expect("readable").flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| is_log(&path.file_name().unwrap_or_default().to_string_lossy()))
            .collect()
    }

    /// Whole lines, damaged lines, and unchecked bytes.
    fn found(root: &Path, depth: Depth) -> (u64, u64, u64) {
        let found = check(root, logs(root), depth);
        (found.whole, found.damaged.iter().map(|(_, lines)| lines).sum(), found.unchecked)
    }

    fn append(path: &Path, text: &str) {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("opened");
        file.write_all(text.as_bytes()).expect("written");
    }

    #[test]
    fn lines_are_counted_and_what_is_being_written_is_none() {
        for (text, expected) in [
            ("", (0, 0, 0)),
            ("{}\n[1]\n", (2, 0, 0)),
            ("{}\n{ torn\n{}\n", (2, 1, 0)),
            ("{}\n{ bei", (1, 0, 0)),
            ("\0\0\n", (0, 1, 0)),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            append(&folder.path().join("inbox.jsonl"), text);
            assert_eq!(found(folder.path(), Depth::All), expected, "{text:?}");
        }
    }

    #[test]
    fn what_was_checked_is_not_read_again_also_once_it_is_sealed() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        append(&root.join("inbox.jsonl"), "{}\n{ torn\n");
        assert_eq!(found(root, Depth::New(1000)), (1, 1, 0));
        fs::rename(root.join("inbox.jsonl"), root.join("inbox.jsonl.0")).expect("sealed");
        append(&root.join("inbox.jsonl"), "{}\n");
        // Room for the new line alone: what was checked is known.
        assert_eq!(found(root, Depth::New(3)), (2, 1, 0));
        append(&root.join("inbox.jsonl"), "{}\n{}\n");
        assert_eq!(found(root, Depth::New(6)), (4, 1, 0), "it reads on where it was");
        // Damage that comes later to what was checked is found by reading everything.
        fs::write(root.join("inbox.jsonl.0"), "{}\n{ broken").expect("written");
        fs::write(root.join("inbox.jsonl.0"), "X}\n{ torn\n").expect("written");
        assert_eq!(found(root, Depth::New(1000)), (4, 1, 0));
        assert_eq!(found(root, Depth::All), (3, 2, 0));
        assert_eq!(found(root, Depth::New(0)), (3, 2, 0), "and is remembered");
    }

    #[test]
    fn what_is_too_much_for_once_is_said_and_done_the_next_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        append(&root.join("inbox.jsonl.0"), &"{}\n".repeat(1_000_000));
        append(&root.join("sent.jsonl.0"), &"{}\n".repeat(1_000_000));
        let (whole, _, unchecked) = found(root, Depth::New(3_000_000));
        assert!((900_000..1_500_000).contains(&whole) && unchecked > 2_000_000, "{whole} {unchecked}");
        found(root, Depth::New(3_000_000));
        assert_eq!(found(root, Depth::New(3_000_000)), (2_000_000, 0, 0));
    }

    #[test]
    fn a_file_that_was_cut_is_read_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        append(&root.join("inbox.jsonl"), "{}\n{}\n");
        found(root, Depth::New(1000));
        File::options().write(true).open(root.join("inbox.jsonl")).and_then(|file| file.set_len(3)).expect("cut");
        assert_eq!(found(root, Depth::New(1000)), (1, 0, 0));
    }

    #[test]
    fn only_logs_and_their_segments_are_logs() {
        for (name, expected) in [
            ("inbox.jsonl", true),
            ("inbox.jsonl.17", true),
            ("inbox.jsonl.bak", false),
            (".inbox.index.3", false),
            ("meta.json", false),
        ] {
            assert_eq!(is_log(name), expected, "{name}");
        }
    }
}
