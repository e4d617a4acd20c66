//! The bytes of an index file: a header, then two tables of rows, one for each order of terms.
//!
//! A row is a term's key of 16 bytes and the offset of its entry. Rows are sorted and stand in blocks, each with its own
//! checksum; the header holds the first key of each block, so that a lookup reads the header and one block.

use std::fs::File;
use std::io;

use sha2::{Digest, Sha256};

use crate::unix::FileExt;
use crate::{Term, TermOrder};

const MAGIC: &[u8; 8] = b"relayix1";
/// Rows of one block.
pub(super) const ROWS: usize = 200;
/// Bytes of one row: key and offset.
pub(super) const ROW: usize = 16 + 8;
/// Bytes of one block: its rows and a checksum.
const BLOCK: usize = ROWS * ROW + 4;
/// Bytes of the header without the first keys of blocks and the checksum.
const FIXED: usize = 8 + 4 + 4 + 12 + 3 * 8 + 2 * 8 + 2 * 16 + 8 + 16;
/// How much of a header is read at first.
const FIRST_READ: usize = 4096;
/// How much of a segment's beginning and end its fingerprint covers.
const EDGE: u64 = 256;

/// What tells one segment from another: its length and a checksum of its first and last bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    length: u64,
    edges: u32,
}

pub(super) fn fingerprint(segment: &File) -> io::Result<Fingerprint> {
    let length = segment.metadata()?.len();
    let edge = length.min(EDGE);
    let mut bytes = vec![0; usize::try_from(edge).unwrap_or_default()];
    segment.read_exact_at(&mut bytes, 0)?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes);
    segment.read_exact_at(&mut bytes, length - edge)?;
    hasher.update(&bytes);
    Ok(Fingerprint { length, edges: hasher.finalize() })
}

/// The key of a term in its table. Keys of growing terms have the order of their texts.
pub(in crate::files) fn key_of(term: &Term) -> u128 {
    match term.order {
        TermOrder::Growing => prefix(&term.text),
        TermOrder::Scattered => {
            let digest = Sha256::digest(term.text.as_bytes());
            let mut key = [0; 16];
            key.copy_from_slice(&digest[..16]);
            u128::from_be_bytes(key)
        }
    }
}

/// The first 16 bytes of a text, as a number with the same order.
pub(in crate::files) fn prefix(text: &str) -> u128 {
    let mut key = [0; 16];
    let taken = text.len().min(16);
    key[..taken].copy_from_slice(&text.as_bytes()[..taken]);
    u128::from_be_bytes(key)
}

/// The header of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::files) struct Header {
    pub(super) rule: u32,
    pub(super) segment: Fingerprint,
    /// Number of entries.
    pub(in crate::files) entries: u64,
    /// The earliest and the latest time of an entry; the first is above the second if no entry has a time.
    pub(in crate::files) times: (u64, u64),
    /// The lowest and the highest key of a growing term; the first is above the second if there is none.
    pub(in crate::files) growing: (u128, u128),
    /// What no earlier segment exceeds.
    pub(in crate::files) before: Highest,
    /// Number of rows in each table.
    rows: [u64; 2],
    /// The first key of each block, of both tables.
    firsts: Vec<u128>,
    /// Where the blocks begin in the file.
    body: u64,
}

/// The highest time and the highest key of a growing term in some segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::files) struct Highest {
    pub(in crate::files) time: u64,
    pub(in crate::files) growing: u128,
}

impl Highest {
    /// Of segments that cannot be read: they may have held anything.
    pub(in crate::files) const UNKNOWN: Highest = Highest { time: u64::MAX, growing: u128::MAX };
}

/// The number of a table.
fn table(order: TermOrder) -> usize {
    match order {
        TermOrder::Growing => 0,
        TermOrder::Scattered => 1,
    }
}

fn blocks_of(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX).div_ceil(ROWS)
}

impl Header {
    /// Reads the header at the beginning of a file; none if it is damaged.
    pub(super) fn read(file: &File) -> io::Result<Option<Header>> {
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(FIRST_READ)];
        file.read_exact_at(&mut bytes, 0)?;
        if let Some(whole) = Header::length(&bytes)
            && whole > bytes.len()
            && whole <= length
        {
            bytes.resize(whole, 0);
            file.read_exact_at(&mut bytes, 0)?;
        }
        Ok(Header::parse(&bytes))
    }

    /// The length that a header says it has.
    fn length(bytes: &[u8]) -> Option<usize> {
        let mut fields = Fields(bytes);
        (fields.take(8)? == MAGIC).then_some(())?;
        fields.u32()?;
        usize::try_from(fields.u32()?).ok()
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Header> {
        let whole = Header::length(bytes)?;
        let (content, checksum) = bytes.get(..whole)?.split_at_checked(whole.checked_sub(4)?)?;
        (crc32fast::hash(content).to_le_bytes() == *checksum).then_some(())?;
        let mut fields = Fields(content.get(8..)?);
        let rule = fields.u32()?;
        fields.u32()?;
        let segment = Fingerprint { length: fields.u64()?, edges: fields.u32()? };
        let entries = fields.u64()?;
        let times = (fields.u64()?, fields.u64()?);
        let rows = [fields.u64()?, fields.u64()?];
        let growing = (fields.u128()?, fields.u128()?);
        let before = Highest { time: fields.u64()?, growing: fields.u128()? };
        let mut firsts = Vec::with_capacity(blocks_of(rows[0]) + blocks_of(rows[1]));
        while !fields.0.is_empty() {
            firsts.push(fields.u128()?);
        }
        let complete = firsts.len() == blocks_of(rows[0]) + blocks_of(rows[1]);
        complete.then_some(Header { rule, segment, entries, times, growing, before, rows, firsts, body: whole as u64 })
    }

    /// What neither this segment nor an earlier one exceeds.
    pub(in crate::files) fn highest(&self) -> Highest {
        Highest { time: self.before.time.max(self.times.1), growing: self.before.growing.max(self.growing.1) }
    }

    /// Whether a term can be in the segment.
    pub(super) fn may_have(&self, term: &Term) -> bool {
        let key = key_of(term);
        match term.order {
            TermOrder::Growing => (self.growing.0..=self.growing.1).contains(&key),
            TermOrder::Scattered => self.rows[1] > 0,
        }
    }
}

/// The file of an index, from its sorted rows.
pub(super) fn encode(
    rule: u32,
    segment: Fingerprint,
    entries: u64,
    times: (u64, u64),
    before: Highest,
    tables: [&[(u128, u64)]; 2],
) -> Vec<u8> {
    let firsts = || tables.iter().flat_map(|rows| rows.chunks(ROWS)).filter_map(|block| block.first());
    let whole = FIXED + firsts().count() * 16 + 4;
    let mut bytes = Vec::with_capacity(whole + tables.iter().map(|rows| rows.len() * ROW + BLOCK).sum::<usize>());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&rule.to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(whole).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(&segment.length.to_le_bytes());
    bytes.extend_from_slice(&segment.edges.to_le_bytes());
    for number in [entries, times.0, times.1, tables[0].len() as u64, tables[1].len() as u64] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let growing = match (tables[0].first(), tables[0].last()) {
        (Some(first), Some(last)) => (first.0, last.0),
        (None, _) | (_, None) => (u128::MAX, 0),
    };
    bytes.extend_from_slice(&growing.0.to_le_bytes());
    bytes.extend_from_slice(&growing.1.to_le_bytes());
    bytes.extend_from_slice(&before.time.to_le_bytes());
    bytes.extend_from_slice(&before.growing.to_le_bytes());
    for (key, _) in firsts() {
        bytes.extend_from_slice(&key.to_le_bytes());
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    for block in tables.iter().flat_map(|rows| rows.chunks(ROWS)) {
        let start = bytes.len();
        for (key, offset) in block {
            bytes.extend_from_slice(&key.to_le_bytes());
            bytes.extend_from_slice(&offset.to_le_bytes());
        }
        // Blocks have one length, so that the place of each is known.
        bytes.resize(start + ROWS * ROW, 0xff);
        let checksum = crc32fast::hash(&bytes[start..]);
        bytes.extend_from_slice(&checksum.to_le_bytes());
    }
    bytes
}

/// The offsets of a term's entries; none if a block is damaged.
pub(super) fn lookup(
    header: &Header,
    term: &Term,
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Option<Vec<u64>>> {
    if !header.may_have(term) {
        return Ok(Some(Vec::new()));
    }
    let key = key_of(term);
    let mut offsets = Vec::new();
    let whole = each_row(header, term.order, (key, key), read, |found, offset| {
        if found == key {
            offsets.push(offset);
        }
    })?;
    Ok(whole.then_some(offsets))
}

/// Where the first entry is with a growing term of this key or above it; none if the index has none, or a block is damaged.
pub(super) fn lowest_offset(
    header: &Header,
    key: u128,
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Option<u64>> {
    let mut lowest = None;
    let whole = each_row(header, TermOrder::Growing, (key, u128::MAX), read, |found, offset| {
        if found >= key {
            lowest = Some(lowest.map_or(offset, |lowest: u64| lowest.min(offset)));
        }
    })?;
    Ok(lowest.filter(|_| whole))
}

/// Takes every row of the blocks that may have a key from the first to the last. False if one of them is damaged.
fn each_row(
    header: &Header,
    order: TermOrder,
    (first_key, last_key): (u128, u128),
    read: impl Fn(u64, &mut [u8]) -> io::Result<()>,
    mut take: impl FnMut(u128, u64),
) -> io::Result<bool> {
    let (start, rows) = match table(order) {
        0 => (0, header.rows[0]),
        _ => (blocks_of(header.rows[0]), header.rows[1]),
    };
    let firsts = &header.firsts[start..start + blocks_of(rows)];
    // A key that fills several blocks begins in the one before the first that starts with it.
    let from = firsts.partition_point(|first| *first < first_key).saturating_sub(1);
    for (number, _) in firsts.iter().enumerate().skip(from).take_while(|(_, first)| **first <= last_key) {
        let mut block = vec![0; BLOCK];
        read(header.body + ((start + number) * BLOCK) as u64, &mut block)?;
        let (content, checksum) = block.split_at(ROWS * ROW);
        if crc32fast::hash(content).to_le_bytes() != *checksum {
            return Ok(false);
        }
        let left = usize::try_from(rows).unwrap_or(usize::MAX) - number * ROWS;
        for row in content.chunks_exact(ROW).take(left) {
            let mut fields = Fields(row);
            if let (Some(found), Some(offset)) = (fields.u128(), fields.u64()) {
                take(found, offset);
            }
        }
    }
    Ok(true)
}

/// Numbers, taken from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn u128(&mut self) -> Option<u128> {
        Some(u128::from_le_bytes(self.take(16)?.try_into().ok()?))
    }
}
