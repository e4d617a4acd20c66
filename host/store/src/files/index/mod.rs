//! The index of a sealed segment: a small file beside it, written once, that finds its entries by their terms.
//!
//! An index is derived from its segment. A missing, torn or outdated one is built again by the next lookup, and one that
//! cannot be written costs that lookup a scan. See docs/adr/0019.

mod catalog;
mod format;
mod rows;
mod search;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

pub(super) use self::catalog::{Catalog, Verdict, WRITTEN_AFTER};
pub(super) use self::format::{Header, Highest, key_of, prefix};
use self::rows::Builder;
pub(super) use self::search::{entries_at, scan};
use crate::unix::{FileExt as _, OpenOptionsExt};
use crate::{IndexRule, Key};

/// After this time the draft of an index is taken for that of a process that was killed.
const DRAFT_ABANDONED: Duration = Duration::from_secs(60);

/// An index, in a file or just built.
pub(super) struct SegmentIndex {
    pub(super) header: Header,
    body: Body,
}

enum Body {
    File(File),
    Memory(Vec<u8>),
}

impl SegmentIndex {
    /// Opens the index of a segment; none if it is missing or does not fit the segment.
    pub(super) fn open(path: &Path, segment: &File, rule: &dyn IndexRule) -> io::Result<Option<SegmentIndex>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(header) = Header::read(&file)? else { return Ok(None) };
        let fits = header.rule == rule.version() && header.segment == format::fingerprint(segment)?;
        Ok(fits.then_some(SegmentIndex { header, body: Body::File(file) }))
    }

    /// Builds the index of a segment, after segments that do not exceed `before`.
    pub(super) fn build(log: &Key, segment: &File, rule: &dyn IndexRule, before: Highest) -> io::Result<SegmentIndex> {
        let mut builder = Builder::default();
        search::each_line(segment, u64::MAX, |offset, line| builder.add(offset, &rule.of(log, line)))?;
        let bytes = builder.encode(rule.version(), format::fingerprint(segment)?, before);
        let header =
            Header::parse(&bytes).ok_or_else(|| io::Error::other("an index that was just built is damaged"))?;
        Ok(SegmentIndex { header, body: Body::Memory(bytes) })
    }

    /// Writes an index that was just built. Its content is not synced: a torn file is noticed and built again.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let Body::Memory(bytes) = &self.body else { return Ok(()) };
        let draft = path.with_extension("draft");
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = match options.open(&draft) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let age = fs::metadata(&draft)?.modified()?.elapsed().unwrap_or_default();
                if age < DRAFT_ABANDONED {
                    // Another process is building the same index.
                    return Ok(());
                }
                fs::remove_file(&draft)?;
                options.open(&draft)?
            }
            opened => opened?,
        };
        let written = file.write_all(bytes).and_then(|()| fs::rename(&draft, path));
        if written.is_err() {
            drop(fs::remove_file(&draft));
        }
        written
    }

    /// The offsets in the segment at which entries with one of these terms may start, in order; none if the index is
    /// damaged.
    pub(super) fn offsets(&self, terms: &[crate::Term]) -> io::Result<Option<Vec<u64>>> {
        let mut offsets = Vec::new();
        for term in terms {
            match unless_cut(format::lookup(&self.header, term, |at, bytes| self.body.read(at, bytes)))? {
                Some(some) => offsets.extend(some),
                None => return Ok(None),
            }
        }
        offsets.sort_unstable();
        offsets.dedup();
        Ok(Some(offsets))
    }

    /// The offset in the segment before which no entry has a growing term of this key or above it; none if no entry has one,
    /// or the index is damaged.
    pub(super) fn lowest_offset(&self, key: u128) -> io::Result<Option<u64>> {
        unless_cut(format::lowest_offset(&self.header, key, |at, bytes| self.body.read(at, bytes)))
    }
}

impl Body {
    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Body::File(file) => file.read_exact_at(bytes, at),
            Body::Memory(all) => {
                let start = usize::try_from(at).map_err(io::Error::other)?;
                let part = all.get(start..start + bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
                bytes.copy_from_slice(part);
                Ok(())
            }
        }
    }
}

/// A file that is shorter than its header says is a damaged index, and no failure.
fn unless_cut<T>(found: io::Result<Option<T>>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        found => found,
    }
}
