//! Finds entries in a segment: at the offsets that an index names, or by reading all of it.

use std::fs::File;
use std::io;

use aho_corasick::AhoCorasick;

use crate::backend::{LONGEST_ENTRY, has_any, is_json};
use crate::unix::FileExt;
use crate::{Entry, Position, Term};

/// How much is read at a time.
const CHUNK: usize = 1 << 20;
/// Room for most lines.
const LINE: usize = 2048;

/// The entries that start at these offsets and contain one of the terms; none if one does not, so that the index that
/// named it is wrong. Positions are offsets.
pub(in crate::files) fn entries_at(segment: &File, offsets: &[u64], terms: &[Term]) -> io::Result<Option<Vec<Entry>>> {
    let mut entries = Vec::with_capacity(offsets.len());
    for offset in offsets {
        let Some(line) = line_at(segment, *offset)? else { return Ok(None) };
        // A key is shorter than its term, so another term may have the same one: such an entry is passed over.
        if !is_json(&line) {
            return Ok(None);
        }
        let next = Position(offset + line.len() as u64 + 1);
        let entry = Entry { at: Position(*offset), next, bytes: line };
        if has_any(&entry.bytes, terms) {
            entries.push(entry);
        }
    }
    Ok(Some(entries))
}

/// The line that starts at an offset; none if none starts there.
fn line_at(segment: &File, offset: u64) -> io::Result<Option<Vec<u8>>> {
    let length = segment.metadata()?.len();
    if offset >= length {
        return Ok(None);
    }
    let mut span = LINE;
    loop {
        let start = offset.saturating_sub(1);
        let before = usize::try_from(offset - start).unwrap_or_default();
        let left = usize::try_from(length - offset).unwrap_or(usize::MAX);
        let mut bytes = vec![0; before + span.min(left)];
        segment.read_exact_at(&mut bytes, start)?;
        if before == 1 && bytes[0] != b'\n' {
            return Ok(None);
        }
        bytes.drain(..before);
        if let Some(end) = memchr::memchr(b'\n', &bytes) {
            bytes.truncate(end);
            return Ok(Some(bytes));
        }
        if span >= left || span > 2 * LONGEST_ENTRY {
            return Ok(None);
        }
        span *= 4;
    }
}

/// The entries of a file's first `length` bytes that contain one of these terms, in order. Positions are offsets.
pub(in crate::files) fn scan(segment: &File, length: u64, terms: &[Term]) -> io::Result<Vec<Entry>> {
    let texts = AhoCorasick::new(terms.iter().map(|term| &term.text)).map_err(io::Error::other)?;
    let mut entries = Vec::new();
    each_chunk(segment, length, |start, chunk| {
        let mut from = 0;
        while let Some(found) = texts.find(&chunk[from..]) {
            let at = from + found.start();
            let begin = memchr::memrchr(b'\n', &chunk[..at]).map_or(0, |end| end + 1);
            let end = memchr::memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |end| at + end);
            let line = &chunk[begin..end];
            if is_json(line) {
                let offset = start + begin as u64;
                let next = Position(start + end as u64 + 1);
                entries.push(Entry { at: Position(offset), next, bytes: line.to_vec() });
            }
            from = (end + 1).min(chunk.len());
        }
    })?;
    Ok(entries)
}

/// Passes on each entry of a file's first `length` bytes, with its offset. Lines that are no entries are passed over.
pub(super) fn each_line(segment: &File, length: u64, mut take: impl FnMut(u64, &[u8])) -> io::Result<()> {
    each_chunk(segment, length, |start, chunk| {
        let mut offset = start;
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            let content = line.strip_suffix(b"\n").unwrap_or(line);
            if is_json(content) {
                take(offset, content);
            }
            offset += line.len() as u64;
        }
    })
}

/// Passes on whole lines, about a megabyte at a time, with the offset of the first. A last line without an end is left
/// out.
fn each_chunk(segment: &File, length: u64, mut take: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let length = segment.metadata()?.len().min(length);
    let (mut start, mut span) = (0, CHUNK);
    let mut chunk = Vec::new();
    while start < length {
        let left = usize::try_from(length - start).unwrap_or(usize::MAX);
        chunk.resize(span.min(left), 0);
        segment.read_exact_at(&mut chunk, start)?;
        match memchr::memrchr(b'\n', &chunk) {
            Some(end) => {
                take(start, &chunk[..=end]);
                start += end as u64 + 1;
                span = CHUNK;
            }
            None if span >= left => break,
            None => span *= 4,
        }
    }
    Ok(())
}
