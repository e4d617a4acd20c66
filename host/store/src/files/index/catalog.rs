//! The ranges of a log's sealed segments in one small file, so that a lookup of an old id opens the index of its own
//! segment and not those of all later ones.
//!
//! A catalog is derived from the headers of indexes, as those are from their segments: a row is written once and says of
//! a segment what never changes. A missing or torn one is made again by the next lookup that misses it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::format::{Header, key_of};
use crate::unix::OpenOptionsExt;
use crate::{Term, TermOrder};

const MAGIC: &[u8; 8] = b"relayct2";
/// Bytes of a row: number, lowest and highest key, and the highest of earlier segments.
const ROW: usize = 8 + 16 + 16 + 16;
/// So many segments have to be missing in it before a lookup writes it again.
pub(in crate::files) const WRITTEN_AFTER: usize = 3;

/// What is known of some segments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::files) struct Catalog {
    /// By number, ascending.
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    number: u64,
    growing: (u128, u128),
    before: u128,
}

/// What a catalog says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::files) enum Verdict {
    /// It is not in the catalog, or may have such an entry.
    Look,
    /// It has none, and earlier ones may.
    Skip,
    /// Neither it nor an earlier one has.
    Stop,
}

impl Catalog {
    /// Reads a catalog; an empty one if it is missing, damaged, or of another rule.
    pub(in crate::files) fn read(path: &Path, rule: u32) -> Catalog {
        fs::read(path).ok().and_then(|bytes| Catalog::parse(&bytes, rule)).unwrap_or_default()
    }

    /// Whether a segment may have an entry with one of these terms. A sealed segment never gets new entries, so what is
    /// known of it stays true, also if it is cut.
    pub(in crate::files) fn verdict(&self, number: u64, terms: &[Term]) -> Verdict {
        let Ok(place) = self.rows.binary_search_by_key(&number, |row| row.number) else { return Verdict::Look };
        let Row { growing: (lowest, highest), before, .. } = self.rows[place];
        let mut verdict = Verdict::Stop;
        for term in terms {
            match term.order {
                TermOrder::Growing => {
                    let key = key_of(term);
                    if (lowest..=highest).contains(&key) {
                        return Verdict::Look;
                    }
                    if key <= before {
                        verdict = Verdict::Skip;
                    }
                }
                TermOrder::Scattered => return Verdict::Look,
            }
        }
        verdict
    }

    /// Adds what the header of a segment's index says.
    pub(in crate::files) fn add(&mut self, number: u64, header: &Header) {
        let row = Row { number, growing: header.growing, before: header.before.growing };
        match self.rows.binary_search_by_key(&number, |row| row.number) {
            Ok(place) => self.rows[place] = row,
            Err(place) => self.rows.insert(place, row),
        }
    }

    /// Writes it, without the segments before `first`, which are retired. Not synced: a torn one is noticed.
    pub(in crate::files) fn write(&self, path: &Path, rule: u32, first: u64) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(16 + self.rows.len() * ROW);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&rule.to_le_bytes());
        for row in self.rows.iter().filter(|row| row.number >= first) {
            bytes.extend_from_slice(&row.number.to_le_bytes());
            for key in [row.growing.0, row.growing.1, row.before] {
                bytes.extend_from_slice(&key.to_le_bytes());
            }
        }
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        let draft = path.with_extension("draft");
        let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft) {
            // Another process is writing it, or an index of the log.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            opened => opened?,
        };
        let written = file.write_all(&bytes).and_then(|()| fs::rename(&draft, path));
        if written.is_err() {
            drop(fs::remove_file(&draft));
        }
        written
    }

    fn parse(bytes: &[u8], rule: u32) -> Option<Catalog> {
        let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        (crc32fast::hash(content).to_le_bytes() == *checksum).then_some(())?;
        let (head, rows) = content.split_at_checked(12)?;
        (&head[..8] == MAGIC && head[8..] == rule.to_le_bytes() && rows.len() % ROW == 0).then_some(())?;
        let number = |row: &[u8], at: usize| row.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let key = |row: &[u8], at: usize| row.get(at..at + 16)?.try_into().ok().map(u128::from_le_bytes);
        let row = |row: &[u8]| {
            let growing = (key(row, 8)?, key(row, 24)?);
            Some(Row { number: number(row, 0)?, growing, before: key(row, 40)? })
        };
        Some(Catalog { rows: rows.chunks_exact(ROW).map(row).collect::<Option<_>>()? })
    }
}
