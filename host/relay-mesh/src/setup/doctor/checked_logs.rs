//! Checks the lines of the data folder's logs, and remembers how far: a log only grows, so what was read once and found
//! whole is not read again. The daily cleanup goes on where the last check ended; `doctor --store --all` reads everything.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

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
    pub(crate) damaged: Vec<DamagedLog>,
    /// Files that end within a line, as a log does also while somebody writes it.
    pub(crate) unfinished: Vec<UnfinishedLog>,
    /// Files that cannot be read.
    pub(crate) unreadable: Vec<(PathBuf, String)>,
    /// Bytes that were left for another time.
    pub(crate) unchecked: u64,
}

/// A file with lines that are no JSON.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DamagedLog {
    pub(crate) path: PathBuf,
    pub(crate) lines: u64,
    /// The number of the first of them, as an editor counts; none if the file is gone meanwhile.
    pub(crate) first: Option<u64>,
}

/// A file whose last line has no end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnfinishedLog {
    pub(crate) path: PathBuf,
    /// Where the line begins.
    from: u64,
    line: Vec<u8>,
}

/// How far one file was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CheckedFile {
    /// The end of the last whole line that was read.
    to: u64,
    whole: u64,
    damaged: u64,
    /// Where the first damaged line begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_damaged: Option<u64>,
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
            Ok((mark, checked, unread, line)) => {
                found.unchecked += unread;
                if unread == 0 && !line.is_empty() {
                    found.unfinished.push(UnfinishedLog { path: path.clone(), from: checked.to, line });
                }
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
            let first = checked.first_damaged.and_then(|at| line_number(&path, at).ok());
            self.damaged.push(DamagedLog { path, lines: checked.damaged, first });
        }
    }
}

/// How long a write may take that is seen halfway. Each line is written at once, so one that stays so is torn.
const WRITTEN_WITHIN: Duration = Duration::from_millis(300);

/// Those of the files that end within the same line also a moment later: nobody is writing it.
pub(crate) fn torn(unfinished: Vec<UnfinishedLog>) -> Vec<UnfinishedLog> {
    if !unfinished.is_empty() {
        thread::sleep(WRITTEN_WITHIN);
    }
    unfinished.into_iter().filter(|log| log.is_as_it_was().unwrap_or(false)).collect()
}

impl UnfinishedLog {
    /// How many bytes the last line has.
    pub(crate) fn length(&self) -> usize {
        self.line.len()
    }

    /// Whether the file has been sealed. Nothing is appended to it any more, so nothing cuts the line off.
    pub(crate) fn is_sealed(&self) -> bool {
        self.path.extension().is_some_and(|ending| ending != "jsonl")
    }

    fn is_as_it_was(&self) -> io::Result<bool> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.from))?;
        let mut line = Vec::new();
        // One more byte, which is there if the line went on.
        file.take(self.line.len() as u64 + 1).read_to_end(&mut line)?;
        Ok(line == self.line)
    }
}

/// The number of the line that begins at an offset.
fn line_number(path: &Path, at: u64) -> io::Result<u64> {
    let mut before = File::open(path)?.take(at);
    let (mut number, mut piece) = (1, vec![0; STEP]);
    loop {
        match before.read(&mut piece)? {
            0 => return Ok(number),
            read => number += piece[..read].iter().filter(|byte| **byte == b'\n').count() as u64,
        }
    }
}

/// A file that was checked to its end before, as most sealed segments were: it need not be opened.
fn checked_whole(path: &Path, about: &Metadata, before: &Notes) -> Option<(String, CheckedFile)> {
    let mark = file_mark::of(path, about)?;
    let checked = *before.get(&mark).filter(|checked| checked.to == about.len() && checked.is_complete())?;
    Some((mark, checked))
}

impl CheckedFile {
    /// A note of an older version does not say where its damaged lines are.
    fn is_complete(&self) -> bool {
        self.damaged == 0 || self.first_damaged.is_some()
    }
}

/// Reads on in a file. Returns its mark, how far it is checked now, how much is left, and what was read of a line that
/// has no end.
fn check_file(path: &Path, before: &Notes, left: &mut u64) -> io::Result<(String, CheckedFile, u64, Vec<u8>)> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    // Without a mark it is read from its beginning each time.
    let mark = file_mark::of(path, &about).unwrap_or_else(|| format!("?{}", path.display()));
    // One that is shorter than it was is another one, or was cut.
    let mut checked = before
        .get(&mark)
        .filter(|_| !mark.starts_with('?'))
        .copied()
        .filter(|checked| checked.to <= about.len() && checked.is_complete())
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
        let mut at = checked.to;
        for line in rest[..end].split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n").unwrap_or(line) {
                b"" => {}
                line if serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok() => checked.whole += 1,
                _ => {
                    checked.damaged += 1;
                    checked.first_damaged.get_or_insert(at);
                }
            }
            at += line.len() as u64;
        }
        checked.to += end as u64;
        rest.drain(..end);
    }
    let unread = about.len().saturating_sub(checked.to + rest.len() as u64);
    Ok((mark, checked, unread, rest))
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
        (found.whole, found.damaged.iter().map(|log| log.lines).sum(), found.unchecked)
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
    fn a_damaged_line_is_told_by_its_number_also_the_next_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        append(&root.join("inbox.jsonl"), "{}\n\n{}\n{\"broken\": fal\n{}\n[\n");
        for depth in [Depth::New(1000), Depth::New(1000), Depth::All] {
            let found = check(root, logs(root), depth);
            let told = DamagedLog { path: root.join("inbox.jsonl"), lines: 2, first: Some(4) };
            assert_eq!(found.damaged, [told], "{depth:?}");
        }
        // What an older version noted does not say where.
        let noted = fs::read_to_string(root.join(NOTES)).expect("notes");
        let older = noted.replace(",\"first_damaged\":7", "");
        assert_ne!(older, noted);
        fs::write(root.join(NOTES), older).expect("written");
        assert_eq!(check(root, logs(root), Depth::New(1000)).damaged[0].first, Some(4));
    }

    #[test]
    fn a_line_is_torn_only_if_nobody_is_writing_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        for name in ["inbox.jsonl", "sent.jsonl", "events.jsonl", "inbox.jsonl.3"] {
            append(&root.join(name), "{}\n{ bei");
        }
        let unfinished = check(root, logs(root), Depth::New(1000)).unfinished;
        assert_eq!(unfinished.len(), 4);
        append(&root.join("sent.jsonl"), "ng\":1}\n");
        fs::remove_file(root.join("events.jsonl")).expect("removed");
        let mut torn = torn(unfinished);
        torn.sort_by(|one, other| one.path.cmp(&other.path));
        let told: Vec<_> = torn.iter().map(|log| (log.path.clone(), log.length(), log.is_sealed())).collect();
        assert_eq!(told, [(root.join("inbox.jsonl"), 5, false), (root.join("inbox.jsonl.3"), 5, true)]);
        // What was left for another time is not looked at.
        assert_eq!(check(root, logs(root), Depth::New(0)).unfinished, []);
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
