//! The group commit: one process syncs, and thereby answers all that wait for bytes before the log's end.
//!
//! A process whose bytes are not yet on disk tries to lock the mark. The one that gets the lock (the leader) syncs the
//! segment and writes the synced offset to the mark; the others wait until that is done and check again. They do not
//! queue for the mark's lock: then a leader that comes back would be behind the queue, and each sync would serve one
//! process. They wait at a gate, a second file that the leader keeps locked during its sync, and all pass at once when
//! it is unlocked. Two gates alternate, so that the next leader never locks the one at which processes still wait. A
//! gate only tells when to check; only the mark tells what is on disk.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::disk::{self, Access, Disk};
use super::layout::LogPaths;
use super::mark::{self, Gate, Mark, SyncRange, SyncState, judge};
use crate::unix::FileExt;
use crate::unix::flock::{self, Sharing, UntilDropped};

/// How long to sleep if the gate is open although a sync is in progress: the leader is about to lock it, or has just
/// unlocked it.
const NAP: Duration = Duration::from_micros(100);

/// How often to try to lock a gate at which processes still wait.
const TRIES_TO_SHUT: usize = 20;

/// The files needed to sync a log: its mark, and a way to see that no append is in progress.
#[derive(Debug)]
pub(super) struct Commit {
    /// The mark's file; the leader has its lock.
    mark: File,
    /// The append lock, opened a second time: a lock belongs to one opening of a file, and an append of this same
    /// process may be using the other opening.
    probe: File,
    /// The gate of every second sync. The other syncs use the segment's own file.
    gate: File,
}

/// What to sync: a segment of a log, and the log's paths.
pub(super) struct SyncTarget<'log> {
    pub(super) disk: &'log dyn Disk,
    pub(super) root: &'log Path,
    pub(super) paths: &'log LogPaths,
    pub(super) data: &'log File,
}

/// How the wait for a sync range ended.
#[derive(Debug)]
pub(super) enum SyncOutcome {
    /// It is on disk.
    Synced,
    /// It may not be on disk, and the segment should take no further appends.
    Lost(io::Error),
}

impl SyncOutcome {
    /// What the mark's verdict means for a waiting process; none if it must keep waiting.
    fn of(verdict: SyncState) -> Option<SyncOutcome> {
        match verdict {
            SyncState::Pending => None,
            SyncState::Synced => Some(SyncOutcome::Synced),
            SyncState::Lost => Some(SyncOutcome::Lost(io::Error::other("the segment could not be synced earlier"))),
        }
    }
}

impl Commit {
    pub(super) fn open(disk: &dyn Disk, root: &Path, paths: &LogPaths) -> io::Result<Commit> {
        Ok(Commit {
            mark: disk::open_or_create(disk, root, &paths.mark, Access::InPlace)?,
            probe: disk::open_or_create(disk, root, &paths.lock, Access::InPlace)?,
            gate: disk::open_or_create(disk, root, &paths.gate, Access::InPlace)?,
        })
    }

    /// The current outcome for a range; none until a process has synced it. Never waits.
    pub(super) fn look(&self, wanted: SyncRange) -> io::Result<Option<SyncOutcome>> {
        Ok(SyncOutcome::of(judge(self.read()?.as_ref(), wanted)))
    }

    /// Returns once a range is on disk, by syncing it or by waiting for a leader that does.
    pub(super) fn settle(&self, at: &SyncTarget<'_>, wanted: SyncRange) -> io::Result<SyncOutcome> {
        loop {
            if flock::try_lock(&self.mark, Sharing::Alone)? {
                let lead = UntilDropped(&self.mark);
                return self.lead(lead, at, wanted, self.reach(wanted.end, at.data)?);
            }
            let mark = self.read()?;
            if let Some(outcome) = SyncOutcome::of(judge(mark.as_ref(), wanted)) {
                return Ok(outcome);
            }
            self.wait_at(self.gate_of(mark.as_ref(), at.data))?;
        }
    }

    /// Waits until a gate is open.
    fn wait_at(&self, gate: &File) -> io::Result<()> {
        if flock::try_lock(gate, Sharing::Shared)? {
            flock::unlock(gate);
            thread::sleep(NAP);
        } else {
            flock::lock(gate, Sharing::Shared)?;
            flock::unlock(gate);
        }
        Ok(())
    }

    /// The gate that is shut during the sync that follows this mark.
    fn gate_of<'gate>(&'gate self, mark: Option<&Mark>, data: &'gate File) -> &'gate File {
        match mark.map_or(Gate::default(), |mark| mark.gate) {
            Gate::Even => data,
            Gate::Odd => &self.gate,
        }
    }

    /// Syncs a whole segment that is about to be sealed, so that a later mark covers it. The caller has the append lock
    /// exclusively.
    pub(super) fn seal(&self, at: &SyncTarget<'_>, whole: SyncRange) -> io::Result<SyncOutcome> {
        // Queueing is right here: the lock is released soon, and an append is blocked until then.
        flock::lock(&self.mark, Sharing::Alone)?;
        self.lead(UntilDropped(&self.mark), at, whole, whole.end)
    }

    /// Syncs up to `reach` for all waiting processes, with the mark's lock held.
    fn lead(
        &self,
        lead: UntilDropped<'_>,
        at: &SyncTarget<'_>,
        wanted: SyncRange,
        reach: u64,
    ) -> io::Result<SyncOutcome> {
        let before = self.read()?;
        // Another leader may have synced it between the check and the lock.
        if let Some(outcome) = SyncOutcome::of(judge(before.as_ref(), wanted)) {
            return Ok(outcome);
        }
        let gate = self.gate_of(before.as_ref(), at.data);
        let _shut = shut(gate)?;
        // Unlocked before the gate, so that one of the waiting processes can be the next leader.
        let _lead = lead;
        let known = before.as_ref().is_some_and(|mark| mark.segment == wanted.segment && mark.file == wanted.file);
        let synced = at.disk.sync(at.data, &at.paths.active).and_then(|()| {
            // The first sync of a segment also makes its name durable.
            if known { Ok(()) } else { disk::sync_folders(at.disk, at.root, &at.paths.folder) }
        });
        match synced {
            Ok(()) => {
                let reached = SyncRange { end: reach, ..wanted };
                self.publish(at.disk, at.paths, &mark::advance(before.as_ref(), reached, mark::this_boot()));
                Ok(SyncOutcome::Synced)
            }
            Err(error) => {
                let failed = mark::fail(before.as_ref(), wanted.segment, wanted.file, mark::this_boot());
                self.publish(at.disk, at.paths, &failed);
                Ok(SyncOutcome::Lost(error))
            }
        }
    }

    /// How far a sync that starts now reaches: to the file's end if no append is in progress, because a half-written
    /// append may still be undone.
    fn reach(&self, own: u64, data: &File) -> io::Result<u64> {
        if data.metadata()?.len() <= own {
            return Ok(own);
        }
        if !flock::try_lock(&self.probe, Sharing::Shared)? {
            return Ok(own);
        }
        let _share = UntilDropped(&self.probe);
        whole_length(data, own)
    }

    fn read(&self) -> io::Result<Option<Mark>> {
        let mut record = [0; mark::RECORD_BYTES];
        match self.mark.read_exact_at(&mut record, 0) {
            Ok(()) => Ok(Mark::parse(&record, mark::this_boot())),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the synced offset to the mark. If this fails, waiting processes sync for themselves, so it is only
    /// logged.
    fn publish(&self, disk: &dyn Disk, paths: &LogPaths, mark: &Mark) {
        if let Err(error) = disk.overwrite(&self.mark, &paths.mark, mark.record().as_bytes()) {
            tracing::warn!(path = %paths.mark.display(), %error, "could not say how far the log is synced");
        }
    }
}

/// Locks a gate once the processes at it have passed. It does not wait for a process that was stopped there: the gate
/// then stays open, and later processes sleep instead of waiting at it.
fn shut(gate: &File) -> io::Result<Option<UntilDropped<'_>>> {
    for _ in 0..TRIES_TO_SHUT {
        if flock::try_lock(gate, Sharing::Alone)? {
            return Ok(Some(UntilDropped(gate)));
        }
        thread::yield_now();
    }
    Ok(None)
}

/// The file's length. If a process died and left a torn last line, the length known to be whole, because the next
/// append cuts the rest off.
fn whole_length(data: &File, own: u64) -> io::Result<u64> {
    let length = data.metadata()?.len();
    let mut last = [0];
    if length <= own {
        return Ok(own);
    }
    data.read_exact_at(&mut last, length - 1)?;
    Ok(if last == *b"\n" { length } else { own })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use super::super::disk::RealDisk;
    use super::*;

    #[test]
    fn a_sync_speaks_for_whole_lines_that_nobody_is_writing_and_for_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = LogPaths::of(folder.path(), &"a/log".parse().expect("a key"));
        fs::create_dir_all(&paths.folder).expect("a folder");
        let commit = Commit::open(&RealDisk, folder.path(), &paths).expect("opened");
        let appender = OpenOptions::new().write(true).open(&paths.lock).expect("the append lock");
        let check = |text: &str, reach: u64, what: &str| {
            fs::write(&paths.active, text).expect("written");
            let data = File::open(&paths.active).expect("opened");
            assert_eq!(commit.reach(4, &data).expect("looked"), reach, "{what}");
        };
        check("one\n", 4, "its own line");
        check("one\ntwo\n", 8, "another's whole line");
        check("one\ntwo\nthr", 4, "a line that was torn is cut off by the next one who appends");
        flock::lock(&appender, Sharing::Alone).expect("locked");
        check("one\ntwo\n", 4, "an append that is under way may yet be taken back");
        flock::unlock(&appender);
        check("one\ntwo\n", 8, "until it is over");
    }
}
