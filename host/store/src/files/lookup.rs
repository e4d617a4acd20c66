//! Lookups in a log of the files backend. Sealed segments are read without the lock, because they never change.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::executor;
use super::index::{self, Catalog, Highest, SegmentIndex, Verdict, WRITTEN_AFTER, prefix};
use super::layout::{position, segment_and_offset};
use super::lines;
use super::log::Log;
use super::reading;
use crate::unix::FileExt;
use crate::{Batch, Entry, Position, Seek, StoreError, Term, TermOrder};

/// The least number of bytes per read.
const CHUNK: u64 = 64 << 10;

/// A segment of a log, as it was when the log was locked.
pub(super) enum Segment {
    /// It has its own name and never changes any more, so it may have an index.
    Sealed { number: u64 },
    /// The last one: it may be appended to, or is about to be renamed.
    Last { number: u64, file: Arc<File>, length: u64 },
}

/// What a lookup knows of segments that it does not look into.
#[derive(Default)]
struct Ranges {
    /// Read once it is worth it.
    catalog: Option<Catalog>,
    /// How many segments had to be looked into since.
    missed: usize,
}

impl Segment {
    pub(super) fn number(&self) -> u64 {
        match self {
            Segment::Sealed { number } | Segment::Last { number, .. } => *number,
        }
    }

    fn placed(&self, mut entry: Entry) -> Entry {
        let at = |offset: Position| position(self.number(), offset.0);
        (entry.at, entry.next) = (at(entry.at), at(entry.next));
        entry
    }
}

impl Log {
    /// See [`crate::Store::find`].
    pub(super) async fn find(&self, terms: &[Term]) -> Result<Vec<Entry>, StoreError> {
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        // The newest segments first: what is looked up is mostly recent, and older segments say what they do not reach.
        let (mut found, segments) = (Vec::new(), self.segments_now().await?);
        let mut ranges = Ranges::default();
        for (place, segment) in segments.iter().enumerate().rev() {
            if matches!(segment, Segment::Sealed { .. }) {
                match self.verdict(segment.number(), terms, &mut ranges) {
                    Verdict::Look => {}
                    Verdict::Skip => continue,
                    Verdict::Stop => break,
                }
            }
            let looked = executor::may_block(|| self.find_in(&segments, place, terms, &mut ranges));
            let path = self.paths.sealed(segment.number());
            let (entries, goes_on) = looked.map_err(StoreError::io("could not search", &path))?;
            found.extend(entries.into_iter().rev().map(|entry| segment.placed(entry)));
            if !goes_on {
                break;
            }
        }
        self.keep(&ranges, segments.first().map_or(0, Segment::number));
        found.reverse();
        Ok(found)
    }

    /// Whether a sealed segment has to be looked into.
    fn verdict(&self, number: u64, terms: &[Term], ranges: &mut Ranges) -> Verdict {
        let Some(rule) = self.shared.rule.as_deref() else { return Verdict::Look };
        let catalog = ranges.catalog.get_or_insert_with(|| Catalog::read(&self.paths.catalog(), rule.version()));
        catalog.verdict(number, terms)
    }

    /// Writes the catalog, if enough segments were missing in it.
    fn keep(&self, ranges: &Ranges, first: u64) {
        let (Some(rule), Some(catalog)) = (self.shared.rule.as_deref(), &ranges.catalog) else { return };
        if ranges.missed >= WRITTEN_AFTER
            && let Err(error) = catalog.write(&self.paths.catalog(), rule.version(), first)
        {
            tracing::debug!(log = %self.key, %error, "the catalog was not written");
        }
    }

    /// The entries of one segment, and whether earlier segments may have some too.
    fn find_in(
        &self,
        segments: &[Segment],
        place: usize,
        terms: &[Term],
        ranges: &mut Ranges,
    ) -> io::Result<(Vec<Entry>, bool)> {
        let number = match &segments[place] {
            Segment::Last { file, length, .. } => return Ok((index::scan(file, *length, terms)?, true)),
            Segment::Sealed { number } => *number,
        };
        let Some(rule) = self.shared.rule.as_deref() else {
            let file = self.open_sealed_file(number)?;
            return Ok((file.map_or(Ok(Vec::new()), |file| index::scan(&file, u64::MAX, terms))?, true));
        };
        let Some((file, index)) = self.index_of(segments, place, rule)? else { return Ok((Vec::new(), true)) };
        if let Some(catalog) = &mut ranges.catalog {
            catalog.add(number, &index.header);
            ranges.missed += 1;
        }
        let before = index.header.before;
        let goes_on = terms.iter().any(|term| match term.order {
            TermOrder::Growing => index::key_of(term) <= before.growing,
            TermOrder::Scattered => term.since.is_none_or(|since| since <= before.time),
        });
        if let Some(offsets) = index.offsets(terms)?
            && let Some(entries) = index::entries_at(&file, &offsets, terms)?
        {
            return Ok((entries, goes_on));
        }
        // The index is damaged, or names what is not there.
        self.write_index(number, &file, rule, index.header.before)?;
        Ok((index::scan(&file, u64::MAX, terms)?, true))
    }

    /// See [`crate::Store::seek`].
    pub(super) async fn seek(&self, to: Seek<'_>) -> Result<Option<Position>, StoreError> {
        let Some(rule) = self.shared.rule.as_deref() else { return Ok(None) };
        let segments = self.segments_now().await?;
        let mut reached = segments.last().map_or(Position::START, |segment| position(segment.number(), 0));
        for (place, segment) in segments.iter().enumerate().rev() {
            let Segment::Sealed { number } = segment else { continue };
            let index = executor::may_block(|| self.index_of(&segments, place, rule));
            let index = index.map_err(StoreError::io("could not read", &self.paths.sealed(*number)))?;
            let Some((_, index)) = index else { continue };
            let header = &index.header;
            let is_below = |highest: Highest| match to {
                Seek::Time(at) => highest.time < at,
                Seek::Term(text) => highest.growing < prefix(text),
            };
            if is_below(header.highest()) {
                break;
            }
            reached = position(*number, 0);
            if is_below(header.before) {
                // It begins in this segment. Where, only terms tell: times are not in the rows of an index.
                if let Seek::Term(text) = to {
                    let offset = executor::may_block(|| index.lowest_offset(prefix(text)));
                    let offset = offset.map_err(StoreError::io("could not read", &self.paths.sealed(*number)))?;
                    reached = position(*number, offset.unwrap_or_default());
                }
                break;
            }
        }
        Ok(Some(reached))
    }

    /// See [`crate::Store::lowest_term`].
    pub(super) async fn lowest_term(&self, from: Position) -> Result<Option<String>, StoreError> {
        let Some(rule) = self.shared.rule.as_deref() else { return Ok(None) };
        let mut lowest: Option<u128> = None;
        let segments = self.segments_now().await?;
        let is_before = |segment: &Segment| match segment {
            Segment::Sealed { number } => *number < segment_and_offset(from).0,
            Segment::Last { number, length, .. } => position(*number, *length) <= from,
        };
        for (place, segment) in segments.iter().enumerate().filter(|(_, segment)| !is_before(segment)) {
            let index = executor::may_block(|| match segment {
                Segment::Sealed { .. } => Ok(self.index_of(&segments, place, rule)?.map(|(_, index)| index)),
                Segment::Last { file, .. } => SegmentIndex::build(&self.key, file, rule, Highest::default()).map(Some),
            });
            let index = index.map_err(StoreError::io("could not read", &self.paths.active))?;
            let Some(SegmentIndex { header, .. }) = index else { continue };
            if header.growing.0 <= header.growing.1 {
                lowest = Some(lowest.map_or(header.growing.0, |lowest| lowest.min(header.growing.0)));
            }
        }
        let text = |key: u128| {
            let bytes = key.to_be_bytes();
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        Ok(lowest.map(text))
    }

    /// See [`crate::Store::read_back`].
    pub(super) async fn read_back(&self, before: Position, limit: usize) -> Result<Batch, StoreError> {
        let mut batch = Batch { next: before, at_end: true, ..Batch::default() };
        let (last, offset) = segment_and_offset(before);
        let segments = self.segments_now().await?;
        for segment in segments.iter().rev().filter(|segment| segment.number() <= last) {
            if !batch.entries.is_empty() {
                batch.at_end = false;
                break;
            }
            let (file, length) = match segment {
                Segment::Last { file, length, .. } => (Arc::clone(file), *length),
                Segment::Sealed { number } => {
                    let opened = self.open_sealed_file(*number);
                    match opened.map_err(StoreError::io("could not open", &self.paths.sealed(*number)))? {
                        Some(file) => (Arc::new(file), u64::MAX),
                        None => continue,
                    }
                }
            };
            let path = self.paths.sealed(segment.number());
            let failed = || StoreError::io("could not read", &path);
            let length = length.min(file.metadata().map_err(failed())?.len());
            let mut end = if segment.number() == last { offset.min(length) } else { length };
            // Only damage may be in between, so it goes on until there is an entry.
            while end > 0 && batch.entries.is_empty() {
                let (start, lines) = executor::may_block(|| read_before(&file, end, limit)).map_err(failed())?;
                let mut lines = lines.placed(|at| position(segment.number(), start + at));
                lines.damage.append(&mut batch.damage);
                batch.damage = lines.damage;
                batch.entries = lines.entries;
                batch.next = position(segment.number(), start);
                end = start;
            }
            batch.at_end = end == 0;
        }
        Ok(batch)
    }

    /// The segments at this time, oldest first.
    pub(super) async fn segments_now(&self) -> Result<Vec<Segment>, StoreError> {
        let Some(mut locked) = self.lock_to_read().await? else { return Ok(Vec::new()) };
        let record = locked.segments_as_read(&self.paths)?;
        let mut segments: Vec<Segment> =
            (record.first..record.latest).map(|number| Segment::Sealed { number }).collect();
        let number = record.latest;
        if let Some((active, length)) = locked.open_active(record, &self.paths)? {
            let length = reading::whole_length(&active.file, length, &self.paths.active)?;
            segments.push(Segment::Last { number, file: active.file, length });
        } else if self.paths.sealed(number).exists() {
            segments.push(Segment::Sealed { number });
        } else if let Some(file) = reading::open_sealed(&self.paths, record, number)
            .map_err(StoreError::io("could not open", &self.paths.active))?
        {
            segments.push(Segment::Last { number, file: Arc::new(file), length: u64::MAX });
        }
        Ok(segments)
    }
}

/// The whole lines that end at or before an offset, about `limit` bytes and at least one, and where they start.
fn read_before(file: &File, end: u64, limit: usize) -> io::Result<(u64, lines::Lines)> {
    let mut span = CHUNK.max(limit as u64);
    loop {
        let start = end.saturating_sub(span);
        // One byte more shows whether a line starts there.
        let from = start.saturating_sub(1);
        let mut bytes = vec![0; usize::try_from(end - from).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, from)?;
        let begin = if start == 0 { Some(0) } else { memchr::memchr(b'\n', &bytes).map(|at| at + 1) };
        match begin {
            Some(begin) if begin < bytes.len() || start == 0 => {
                return Ok((from + begin as u64, lines::split(&bytes[begin..], usize::MAX)));
            }
            Some(_) | None => span *= 4,
        }
    }
}
