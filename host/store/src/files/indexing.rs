//! Writes the indexes of sealed segments: right after sealing, or when a lookup finds none.

use std::fs::File;
use std::io;

use super::executor;
use super::index::{Catalog, Header, Highest, SegmentIndex};
use super::log::Log;
use super::lookup::Segment;
use crate::IndexRule;

impl Log {
    /// A sealed segment; none if it was retired meanwhile.
    pub(super) fn open_sealed_file(&self, number: u64) -> io::Result<Option<File>> {
        match File::open(self.paths.sealed(number)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A sealed segment and its index, built if it is missing, after those of earlier segments; none if the segment was
    /// retired meanwhile. An index that cannot be written is built again next time.
    pub(super) fn index_of(
        &self,
        segments: &[Segment],
        place: usize,
        rule: &dyn IndexRule,
    ) -> io::Result<Option<(File, SegmentIndex)>> {
        let open = |place: usize| -> io::Result<(File, Option<SegmentIndex>)> {
            let number = segments[place].number();
            let file = self.open_sealed_file(number)?.ok_or(io::ErrorKind::NotFound)?;
            let index = SegmentIndex::open(&self.paths.index(number), &file, rule).unwrap_or_default();
            Ok((file, index))
        };
        if let Ok((file, Some(index))) = open(place) {
            return Ok(Some((file, index)));
        }
        // Back to the last segment that has one, and then forwards again.
        let (mut from, mut before) = (place, Highest::default());
        while from > 0 {
            match open(from - 1) {
                Ok((_, Some(index))) => {
                    before = index.header.highest();
                    break;
                }
                Ok((_, None)) => from -= 1,
                // Retired meanwhile, or removed by hand: nothing is known of what is before it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    before = Highest::UNKNOWN;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let mut last = None;
        for segment in &segments[from..=place] {
            let Some(file) = self.open_sealed_file(segment.number())? else {
                (last, before) = (None, Highest::UNKNOWN);
                continue;
            };
            let index = self.write_index(segment.number(), &file, rule, before)?;
            before = index.header.highest();
            last = Some((file, index));
        }
        Ok(last)
    }

    pub(super) fn write_index(
        &self,
        number: u64,
        segment: &File,
        rule: &dyn IndexRule,
        before: Highest,
    ) -> io::Result<SegmentIndex> {
        let index = SegmentIndex::build(&self.key, segment, rule, before)?;
        let path = self.paths.index(number);
        if let Err(error) = index.write(&path) {
            tracing::debug!(path = %path.display(), %error, "an index was not written");
        }
        Ok(index)
    }

    /// Adds a segment to the catalog, and leaves those before `first` out. A lookup does so if this fails.
    pub(super) fn note_in_catalog(
        &self,
        number: u64,
        header: &Header,
        rule: &dyn IndexRule,
        first: u64,
    ) -> io::Result<()> {
        let path = self.paths.catalog();
        let mut catalog = Catalog::read(&path, rule.version());
        catalog.add(number, header);
        catalog.write(&path, rule.version(), first)
    }

    /// Builds the index of the segment that was just sealed, while its bytes are still in memory. A lookup builds it if
    /// this fails.
    pub(super) async fn index_sealed(&self) {
        let Some(rule) = self.shared.rule.as_deref() else { return };
        let built = match self.segments_now().await {
            Ok(segments) => match segments.iter().rposition(|segment| matches!(segment, Segment::Sealed { .. })) {
                Some(place) => executor::may_block(|| {
                    let Some((_, index)) = self.index_of(&segments, place, rule)? else { return Ok(()) };
                    let first = segments.first().map_or(0, Segment::number);
                    self.note_in_catalog(segments[place].number(), &index.header, rule, first)
                }),
                None => Ok(()),
            },
            Err(error) => Err(io::Error::other(error)),
        };
        if let Err(error) = built {
            tracing::debug!(log = %self.key, %error, "a sealed segment has no index yet");
        }
    }
}
