//! The segments of a log: a record of fixed length in the log's lock file, read and written only under that lock.

use std::fs::{self, File};
use std::io;

use super::disk::Disk;
use super::layout::{LogPaths, position};
use crate::Position;
use crate::unix::FileExt;

/// The segments of a log, numbered in order of creation; a number is never used twice, so a position in a removed
/// segment never refers to another segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segments {
    /// The oldest kept segment. One more than `latest` if none is kept.
    pub(super) first: u64,
    /// The newest segment.
    pub(super) latest: u64,
    /// Whether the newest segment is still open.
    pub(super) state: SegmentState,
    /// The end of the last sealed segment. Nothing was appended between there and an empty active segment.
    pub(super) sealed_to: Position,
}

/// Whether the latest segment takes appends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SegmentState {
    /// It is `inbox.jsonl`, or will be with the next append.
    #[default]
    Open,
    /// It is `inbox.jsonl.N`, or about to be renamed to that, or gone. The next append begins another. Recorded before
    /// the file is renamed, so that processes with the file open know in time.
    Sealed,
}

impl SegmentState {
    fn word(self) -> &'static str {
        match self {
            SegmentState::Open => "open  ",
            SegmentState::Sealed => "sealed",
        }
    }
}

/// Three numbers, a word and a checksum, each with the separator after it.
const RECORD_BYTES: usize = 3 * 21 + 7 + 9;

impl Segments {
    /// Reads the record; none if it was never written or is damaged.
    pub(super) fn read(lock: &File) -> io::Result<Option<Segments>> {
        let mut bytes = [0; RECORD_BYTES];
        match lock.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(Segments::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn write(self, disk: &dyn Disk, lock: &File, paths: &LogPaths) -> io::Result<()> {
        disk.overwrite(lock, &paths.lock, self.record().as_bytes())
    }

    /// Rebuilds a lost record from the names in the folder.
    pub(super) fn recover(paths: &LogPaths) -> io::Result<Segments> {
        let mut sealed: Vec<u64> = Vec::new();
        let names = match fs::read_dir(&paths.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Segments::default()),
            names => names?,
        };
        for name in names {
            sealed.extend(name?.file_name().to_str().and_then(|name| paths.sealed_number(name)));
        }
        let latest_sealed = sealed.iter().max().copied();
        let active = paths.active.exists();
        let (latest, state) = match latest_sealed {
            Some(number) if active => (number + 1, SegmentState::Open),
            Some(number) => (number, SegmentState::Sealed),
            None => (0, SegmentState::Open),
        };
        let sealed_to = match latest_sealed {
            Some(number) => position(number, fs::metadata(paths.sealed(number))?.len()),
            None => Position::START,
        };
        Ok(Segments { first: sealed.into_iter().min().unwrap_or(latest), latest, state, sealed_to })
    }

    fn record(self) -> String {
        let numbers = format!("{:020} {:020} {:020} {} ", self.first, self.latest, self.sealed_to.0, self.state.word());
        let checksum = crc32fast::hash(numbers.as_bytes());
        format!("{numbers}{checksum:08x}\n")
    }

    fn parse(bytes: &[u8]) -> Option<Segments> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut words = text.split_ascii_whitespace();
        let (first, latest) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let sealed_to = Position(words.next()?.parse().ok()?);
        let state = [SegmentState::Open, SegmentState::Sealed].into_iter().find(|state| text.contains(state.word()))?;
        let segments = Segments { first, latest, state, sealed_to };
        (segments.record() == text).then_some(segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{FilesOptions, FilesStore};
    use crate::{Durability, Expect, Store as _};

    #[test]
    fn a_record_comes_back_and_a_changed_one_does_not() {
        let segments = Segments { first: 3, latest: 17, state: SegmentState::Sealed, sealed_to: Position(4) };
        let record = segments.record();
        assert_eq!(record.len(), RECORD_BYTES);
        assert_eq!(Segments::parse(record.as_bytes()), Some(segments));
        assert_eq!(Segments::parse(record.replace("17", "18").as_bytes()), None);
        assert_eq!(Segments::parse(&[0; RECORD_BYTES]), None);
    }

    #[test]
    fn a_lost_record_is_worked_out_from_the_files() {
        for (files, first, latest, state) in [
            (&[][..], 0, 0, SegmentState::Open),
            (&["inbox.jsonl"][..], 0, 0, SegmentState::Open),
            (&["inbox.jsonl.2", "inbox.jsonl.3", "inbox.jsonl"][..], 2, 4, SegmentState::Open),
            (&["inbox.jsonl.2", "inbox.jsonl.3"][..], 2, 3, SegmentState::Sealed),
            (&["outbox.jsonl.9", "inbox.jsonl.bak", "inbox.jsonl"][..], 0, 0, SegmentState::Open),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            for file in files {
                fs::write(folder.path().join(file), "").expect("a file");
            }
            let paths = LogPaths::of(folder.path(), &"inbox".parse().expect("a key"));
            let found = Segments::recover(&paths).expect("names");
            assert_eq!((found.first, found.latest, found.state), (first, latest, state), "{files:?}");
        }
    }

    #[tokio::test]
    async fn segments_that_were_copied_without_their_log_are_not_overwritten_by_a_new_one() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("inbox.jsonl.0"), "{\"old\":0}\n").expect("a file");
        fs::write(folder.path().join("inbox.jsonl.3"), "{\"old\":3}\n").expect("a file");
        let options = FilesOptions { rotate_at: 100, durability: Durability::Process, ..FilesOptions::default() };
        let store = FilesStore::open(folder.path(), options).expect("a store");
        let log = "inbox".parse().expect("a key");
        for number in 0..20 {
            let entry = format!("{{\"new\":{number},\"filling\":\"0123456789\"}}").into_bytes();
            store.append(&log, &[entry], Expect::Any, Durability::Process).await.expect("appended");
        }
        let read = store.read(&log, Position::START, 1 << 20).await.expect("read");
        let texts: Vec<String> =
            read.entries.iter().map(|entry| String::from_utf8_lossy(&entry.bytes).into_owned()).collect();
        assert_eq!(texts.len(), 22, "{texts:?}");
        assert!(texts[0].contains("old") && texts[1].contains("old"), "{texts:?}");
        assert!(texts[2].contains("\"new\":0,") && texts[21].contains("\"new\":19,"), "{texts:?}");
    }
}
