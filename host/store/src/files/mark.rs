//! The mark of a log: how far it is on disk, for all processes. Pure, except for reading the boot id.

use std::fs;
use std::sync::OnceLock;

use crate::unix;

/// How far a log is on disk. Void after a reboot: data that was only in memory is lost, while the mark's file is still
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The boot in which this was true.
    pub(super) boot: String,
    /// The last synced segment: its number and its file's inode.
    pub(super) segment: u64,
    pub(super) file: u64,
    /// Everything before this offset of that segment is on disk.
    pub(super) offset: u64,
    /// The last segment of which a sync failed. Nothing after its offset is known to be on disk, or ever will be: the
    /// kernel forgets which pages it could not write.
    pub(super) failed: Option<Failed>,
    /// Which gate is locked during the next sync.
    pub(super) gate: Gate,
}

/// The two gates that syncs use in turn: see `commit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gate {
    /// The segment's own file.
    #[default]
    Even,
    /// A separate file.
    Odd,
}

impl Gate {
    fn other(self) -> Gate {
        match self {
            Gate::Even => Gate::Odd,
            Gate::Odd => Gate::Even,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Gate::Even => "even",
            Gate::Odd => "odd",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) segment: u64,
    pub(super) offset: u64,
}

/// A range of a log that has to reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyncRange {
    pub(super) segment: u64,
    pub(super) file: u64,
    /// The end of the range.
    pub(super) end: u64,
}

/// What a mark says about a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncState {
    /// It is on disk.
    Synced,
    /// It is not synced yet.
    Pending,
    /// A sync failed, so it may never be on disk.
    Lost,
}

/// Judges a range by the mark of this boot, if there is one.
///
/// A segment is synced as a whole before it is sealed, unless a sync of it failed; so a mark in a later segment covers
/// all earlier ones except those that failed. Only the last failure is remembered, so earlier segments are not assumed
/// to be on disk.
pub(super) fn judge(mark: Option<&Mark>, wanted: SyncRange) -> SyncState {
    let Some(mark) = mark else { return SyncState::Pending };
    if let Some(failed) = mark.failed {
        let known = wanted.segment == failed.segment && wanted.end <= failed.offset;
        if wanted.segment <= failed.segment && !known {
            return SyncState::Lost;
        }
    }
    if wanted.segment < mark.segment {
        return SyncState::Synced;
    }
    let covered = wanted.segment == mark.segment && wanted.file == mark.file && wanted.end <= mark.offset;
    if covered { SyncState::Synced } else { SyncState::Pending }
}

/// The mark after everything before `synced.end` reached the disk. Never moves back within the same file.
pub(super) fn advance(mark: Option<&Mark>, synced: SyncRange, boot: &str) -> Mark {
    let gate = next_gate(mark);
    let offset = match mark {
        Some(mark) if mark.segment == synced.segment && mark.file == synced.file => mark.offset.max(synced.end),
        Some(mark) if mark.segment > synced.segment => return Mark { gate, ..mark.clone() },
        Some(_) | None => synced.end,
    };
    Mark {
        boot: boot.to_owned(),
        segment: synced.segment,
        file: synced.file,
        offset,
        failed: mark.and_then(|mark| mark.failed),
        gate,
    }
}

fn next_gate(mark: Option<&Mark>) -> Gate {
    mark.map_or(Gate::default(), |mark| mark.gate).other()
}

/// The mark after a sync of this segment failed: bytes that were on disk before still are.
pub(super) fn fail(mark: Option<&Mark>, segment: u64, file: u64, boot: &str) -> Mark {
    let offset = match mark {
        Some(mark) if mark.segment == segment && mark.file == file => mark.offset,
        Some(_) | None => 0,
    };
    let failed = Some(Failed { segment, offset });
    let gate = next_gate(mark);
    match mark {
        Some(mark) if mark.segment > segment => Mark { failed, gate, ..mark.clone() },
        Some(_) | None => Mark { boot: boot.to_owned(), segment, file, offset, failed, gate },
    }
}

/// The length of every record, so that one write replaces another.
pub(super) const RECORD_BYTES: usize = 192;

impl Mark {
    /// The record, padded with blanks.
    pub(super) fn record(&self) -> String {
        let failed = match self.failed {
            Some(failed) => format!("{}+{}", failed.segment, failed.offset),
            None => "-".to_owned(),
        };
        let Mark { boot, segment, file, offset, failed: _, gate } = self;
        let words = format!("boot {boot} synced {segment}+{offset} of {file} failed {failed} gate {}", gate.word());
        let checksum = crc32fast::hash(words.as_bytes());
        let line = format!("{words} check {checksum:08x}");
        format!("{line:<width$}\n", width = RECORD_BYTES - 1)
    }

    /// Reads a record. None if it is of another boot, or half written: then the reader looks again or syncs for
    /// itself.
    pub(super) fn parse(record: &[u8], boot: &str) -> Option<Mark> {
        let text = std::str::from_utf8(record).ok()?.trim_end();
        let (words, checksum) = text.rsplit_once(" check ")?;
        if u32::from_str_radix(checksum, 16).ok()? != crc32fast::hash(words.as_bytes()) {
            return None;
        }
        let mut words = words.split(' ');
        let mut value_of = |name: &str| if words.next()? == name { words.next() } else { None };
        let found_boot = value_of("boot")?;
        let (segment, offset) = value_of("synced")?.split_once('+')?;
        let file = value_of("of")?;
        let failed = match value_of("failed")?.split_once('+') {
            Some((segment, offset)) => Some(Failed { segment: segment.parse().ok()?, offset: offset.parse().ok()? }),
            None => None,
        };
        // Marks from before 0.1 say `turn`: a failed sync in them still counts.
        let gate = match (words.next()?, words.next()?) {
            ("gate" | "turn", word) => word,
            _ => return None,
        };
        let gate = [Gate::Even, Gate::Odd].into_iter().find(|known| known.word() == gate)?;
        (found_boot == boot).then_some(Mark {
            boot: found_boot.to_owned(),
            segment: segment.parse().ok()?,
            file: file.parse().ok()?,
            offset: offset.parse().ok()?,
            failed,
            gate,
        })
    }
}

/// The id of this boot of the machine. If the system has none, an id of this process alone, so that it trusts no other
/// process's mark.
pub(super) fn this_boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Ok(boot) => boot.trim().to_owned(),
        Err(_) => {
            let now = unix::now();
            format!("process-{}-{}-{}", std::process::id(), now.tv_sec, now.tv_nsec)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(segment: u64, offset: u64, failed: Option<(u64, u64)>) -> Mark {
        let failed = failed.map(|(segment, offset)| Failed { segment, offset });
        Mark { boot: "b".to_owned(), segment, file: 9, offset, failed, gate: Gate::Even }
    }

    /// The mark that follows one of an even gate.
    fn next(segment: u64, offset: u64, failed: Option<(u64, u64)>) -> Mark {
        Mark { gate: Gate::Odd, ..mark(segment, offset, failed) }
    }

    #[test]
    fn a_stretch_is_synced_pending_or_lost() {
        let wanted = SyncRange { segment: 3, file: 9, end: 100 };
        for (mark, expected) in [
            (None, SyncState::Pending),
            (Some(mark(3, 100, None)), SyncState::Synced),
            (Some(mark(3, 99, None)), SyncState::Pending),
            (Some(mark(2, 500, None)), SyncState::Pending),
            (Some(mark(4, 0, None)), SyncState::Synced),
            (Some(mark(3, 50, Some((3, 50)))), SyncState::Lost),
            (Some(mark(4, 10, Some((3, 50)))), SyncState::Lost),
            (Some(mark(4, 10, Some((3, 100)))), SyncState::Synced),
            (Some(mark(4, 10, Some((2, 7)))), SyncState::Synced),
            (Some(mark(5, 10, Some((4, 7)))), SyncState::Lost),
            (Some(Mark { file: 8, ..mark(3, 100, None) }), SyncState::Pending),
        ] {
            assert_eq!(judge(mark.as_ref(), wanted), expected, "{mark:?}");
        }
    }

    #[test]
    fn a_mark_never_takes_back_what_it_said() {
        let synced = SyncRange { segment: 3, file: 9, end: 100 };
        assert_eq!(advance(Some(&mark(3, 200, None)), synced, "b"), next(3, 200, None));
        assert_eq!(advance(Some(&mark(4, 1, None)), synced, "b"), next(4, 1, None));
        assert_eq!(advance(Some(&mark(3, 50, Some((2, 1)))), synced, "b"), next(3, 100, Some((2, 1))));
        assert_eq!(advance(None, synced, "b"), next(3, 100, None));
        assert_eq!(fail(Some(&mark(3, 50, None)), 3, 9, "b"), next(3, 50, Some((3, 50))));
        assert_eq!(fail(None, 3, 9, "b"), next(3, 0, Some((3, 0))));
        assert_eq!(fail(Some(&mark(4, 50, None)), 3, 9, "b"), next(4, 50, Some((3, 0))));
        assert_eq!(advance(Some(&next(3, 50, None)), synced, "b"), mark(3, 100, None), "turns alternate");
    }

    #[test]
    fn a_record_is_believed_in_its_own_boot_and_only_whole() {
        for mark in [mark(3, 100, None), mark(u64::MAX, u64::MAX, Some((u64::MAX, u64::MAX)))] {
            let boot = "0f9f2bd2-5a43-4f6c-8f5e-0a5d6b3a2c11".to_owned();
            let mark = Mark { boot, file: u64::MAX, gate: Gate::Even, ..mark };
            let record = mark.record();
            assert_eq!(record.len(), RECORD_BYTES, "{record:?}");
            assert_eq!(Mark::parse(record.as_bytes(), &mark.boot), Some(mark.clone()));
            assert_eq!(Mark::parse(record.as_bytes(), "another"), None);
            let words = record.rsplit_once(" check ").expect("a checksum").0.replace(" gate ", " turn ");
            let old = format!("{words} check {:08x}", crc32fast::hash(words.as_bytes()));
            assert_eq!(Mark::parse(old.as_bytes(), &mark.boot), Some(mark.clone()), "a mark of before 0.1");
            assert_eq!(Mark::parse(&record.as_bytes()[..60], &mark.boot), None);
        }
        assert_eq!(Mark::parse(&[0; RECORD_BYTES], "b"), None);
    }
}
