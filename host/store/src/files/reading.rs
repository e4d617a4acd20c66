//! Reads a log's segments, with the log's lock shared.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::layout::{LogPaths, position, segment_and_offset};
use super::lines::{self, Lines};
use super::locked::Active;
use super::segments::{SegmentState, Segments};
use crate::backend::LONGEST_ENTRY;
use crate::unix::FileExt;
use crate::{Batch, Position, StoreError};

/// The least number of bytes per read.
const CHUNK: usize = 64 << 10;

/// Reads entries from a position on, across segments.
pub(super) fn read(
    paths: &LogPaths,
    segments: Segments,
    active: Option<Active>,
    from: Position,
    limit: usize,
) -> Result<Batch, StoreError> {
    let (mut number, mut offset) = segment_and_offset(from);
    if number < segments.first || number > segments.latest + 1 {
        // Before the kept segments, or from a log that was removed: start at the first existing entry.
        (number, offset) = (segments.first, 0);
    }
    let mut batch = Batch { next: position(number, offset), at_end: true, ..Batch::default() };
    let mut room = limit;
    while number <= segments.latest {
        let path = if number == segments.latest { &paths.active } else { &paths.sealed(number) };
        let file = match &active {
            Some(active) if active.number == number => Some(Arc::clone(&active.file)),
            Some(_) | None => {
                open_sealed(paths, segments, number).map_err(StoreError::io("could not read", path))?.map(Arc::new)
            }
        };
        let mut finished = file.is_none();
        if finished {
            // Whatever the position was in this segment, nothing is left of it.
            batch.next = position(number, 0);
        }
        while let Some(file) = &file
            && !finished
        {
            let stretch = read_stretch(file, offset, room).map_err(StoreError::io("could not read", path))?;
            finished = stretch.finished;
            offset = stretch.start + stretch.lines.used;
            room = room.saturating_sub(usize::try_from(stretch.lines.used).unwrap_or(usize::MAX));
            let lines = stretch.lines.placed(|at| position(number, stretch.start + at));
            batch.entries.extend(lines.entries);
            batch.damage.extend(lines.damage);
            batch.next = position(number, offset);
            if !batch.entries.is_empty() && !finished {
                batch.at_end = false;
                return Ok(batch);
            }
        }
        if number == segments.latest && matches!(segments.state, SegmentState::Open) {
            break;
        }
        number += 1;
        offset = 0;
        batch.next = position(number, 0);
        if room == 0 && !batch.entries.is_empty() && number <= segments.latest {
            batch.at_end = false;
            break;
        }
    }
    Ok(batch)
}

/// Whether nothing was appended after a position, given the end of the log and the length of its
/// active segment.
pub(super) fn nothing_after(segments: Segments, seen: Position, end: Position, length: Option<u64>) -> bool {
    match length {
        Some(length) if length > 0 => seen == end,
        Some(_) | None => (segments.sealed_to..=end).contains(&seen),
    }
}

/// The length of a file up to the end of its last whole line.
pub(super) fn whole_length(file: &File, length: u64, path: &Path) -> Result<u64, StoreError> {
    last_line_end(file, length).map_err(StoreError::io("could not read", path))
}

fn last_line_end(file: &File, length: u64) -> io::Result<u64> {
    let mut end = length;
    // One byte is nearly always enough; only a torn tail makes it look further back.
    let mut span = 1;
    while end > 0 {
        let start = end.saturating_sub(span);
        let mut bytes = vec![0; usize::try_from(end - start).unwrap_or(CHUNK)];
        file.read_exact_at(&mut bytes, start)?;
        if let Some(at) = bytes.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
        span = CHUNK as u64;
    }
    Ok(0)
}

/// Opens a sealed segment; none if it was removed.
pub(super) fn open_sealed(paths: &LogPaths, segments: Segments, number: u64) -> io::Result<Option<File>> {
    match File::open(paths.sealed(number)) {
        Ok(file) => Ok(Some(file)),
        // Sealed in the record, but its process died before it renamed the file.
        Err(error) if error.kind() == io::ErrorKind::NotFound && number == segments.latest => {
            match File::open(&paths.active) {
                Ok(file) => Ok(Some(file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whole lines of one segment.
struct Stretch {
    /// The offset in the segment.
    start: u64,
    lines: Lines,
    /// Whether no whole line follows.
    finished: bool,
}

/// Reads about `room` bytes of whole lines, at least one line if there is one.
fn read_stretch(file: &File, offset: u64, room: usize) -> io::Result<Stretch> {
    let length = file.metadata()?.len();
    let start = if starts_a_line(file, offset, length)? { offset } else { 0 };
    let left = usize::try_from(length - start).unwrap_or(usize::MAX);
    let mut span = room.clamp(CHUNK, 2 * LONGEST_ENTRY);
    loop {
        let mut bytes = vec![0; span.min(left)];
        file.read_exact_at(&mut bytes, start)?;
        let whole = bytes.len() == left;
        // A line longer than `room` is still read whole, so that the reader gets past it.
        if !whole && !bytes.contains(&b'\n') {
            span = span.saturating_mul(2);
            continue;
        }
        let lines = lines::split(&bytes, room);
        let finished = whole && !lines.cut_short;
        return Ok(Stretch { start, lines, finished });
    }
}

/// Whether an offset is between two lines. If it is not, or is past the end, it comes from a log that lost its tail in
/// a power loss. The read then starts at the segment's beginning: a reader recognises entries that it reads twice, but
/// skipped entries would be lost.
fn starts_a_line(file: &File, offset: u64, length: u64) -> io::Result<bool> {
    if offset == 0 {
        return Ok(true);
    }
    if offset > length {
        return Ok(false);
    }
    let mut before = [0];
    file.read_exact_at(&mut before, offset - 1)?;
    Ok(before == *b"\n")
}
