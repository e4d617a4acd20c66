//! One log of the files backend: its lock, its segments, and the operations on them.
//!
//! Writers lock the log exclusively and readers share the lock, so no reader sees a half-done write. A process that
//! died in the middle leaves a line without an end, which the next writer cuts off.

use std::fs;
use std::io;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::commit::{Commit, SyncOutcome, SyncTarget};
use super::disk::{self, Access};
use super::executor;
use super::layout::{LogPaths, position, segment_and_offset};
use super::lines;
use super::locked::{self, Active, Allowed, Handles, Locked};
use super::mark::SyncRange;
use super::reading;
use super::segments::{SegmentState, Segments};
use super::shared::Shared;
use crate::unix::MetadataExt;
use crate::unix::flock::Sharing;
use crate::{AppendError, Batch, Durability, Expect, Key, Position, StoreError};

/// One log, with the files that this process has open for it.
pub(super) struct Log {
    pub(super) shared: Arc<Shared>,
    pub(super) key: Key,
    pub(super) paths: LogPaths,
    /// Serialises the tasks of this process; the file lock inside is for other processes.
    handles: Arc<Mutex<Handles>>,
    /// One task of this process at a time waits for the disk; the others then find it done.
    commit: Arc<Mutex<Option<Commit>>>,
}

impl Log {
    pub(super) fn new(shared: Arc<Shared>, key: &Key) -> Log {
        let paths = LogPaths::of(&shared.root, key);
        Log { shared, key: key.clone(), paths, handles: Arc::default(), commit: Arc::default() }
    }

    pub(super) async fn append(
        &self,
        entries: &[Vec<u8>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Position, AppendError> {
        let lines = lines::frame(entries)?;
        let mut sealed = false;
        let (end, active) = {
            let mut locked = self.lock_to_write().await?;
            let segments = locked.segments(&self.shared, &self.paths)?;
            let length = locked.repaired_length(segments, &self.shared, &self.paths)?;
            let end = end_of(segments, length);
            match expect {
                Expect::Any => {}
                Expect::End(seen) => {
                    if !reading::nothing_after(segments, seen, end, length) {
                        return Err(AppendError::Moved);
                    }
                }
            }
            if lines.is_empty() {
                return Ok(end);
            }
            match length {
                Some(length) if length > 0 && length + lines.len() as u64 > self.shared.rotate_at => {
                    sealed = true;
                    let segments = self.seal(&mut locked, segments).await?;
                    locked.write(segments, None, &lines, &self.shared, &self.paths)?
                }
                Some(_) | None => locked.write(segments, length, &lines, &self.shared, &self.paths)?,
            }
        };
        match (self.shared.durability, durability) {
            (Durability::Synced, Durability::Synced) => self.settle(end, active).await?,
            (Durability::Process, _) | (Durability::Synced, Durability::Process) => {}
        }
        if sealed {
            self.index_sealed().await;
        }
        Ok(end)
    }

    pub(super) async fn sync(&self, before: Position) -> Result<(), StoreError> {
        let written = {
            let Some(mut locked) = self.lock_to_read().await? else { return Ok(()) };
            let segments = locked.segments_as_read(&self.paths)?;
            match segment_and_offset(before) {
                (segment, offset) if segment == segments.latest && matches!(segments.state, SegmentState::Open) => {
                    locked.open_active(segments, &self.paths)?.map(|(active, length)| (active, offset.min(length)))
                }
                (segment, offset) if segment <= segments.latest => self.open_sealed(segment, offset)?,
                // Past the end: the whole last segment.
                _ => match locked.open_active(segments, &self.paths)? {
                    Some(active) => Some(active),
                    None => self.open_sealed(segments.latest, u64::MAX)?,
                },
            }
        };
        match written {
            Some((segment, offset)) => self.settle(position(segment.number, offset), segment).await,
            None => Ok(()),
        }
    }

    /// A sealed segment, and the end of the range in it; none if it was retired.
    fn open_sealed(&self, number: u64, offset: u64) -> Result<Option<(Active, u64)>, StoreError> {
        let path = self.paths.sealed(number);
        let file = match disk::open(&path, Access::InPlace) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("could not open", &path)(error)),
        };
        let found = file.metadata().map_err(StoreError::io("could not look at", &path))?;
        Ok(Some((Active { number, inode: found.ino(), file: Arc::new(file) }, offset.min(found.len()))))
    }

    pub(super) async fn read(&self, from: Position, limit: usize) -> Result<Batch, StoreError> {
        let Some(mut locked) = self.lock_to_read().await? else {
            // A position in a log that is gone means nothing: the next one begins at the start.
            return Ok(Batch { next: Position::START, at_end: true, ..Batch::default() });
        };
        let segments = locked.segments_as_read(&self.paths)?;
        let active = locked.open_active(segments, &self.paths)?;
        reading::read(&self.paths, segments, active.map(|(active, _)| active), from, limit)
    }

    pub(super) async fn end(&self) -> Result<Position, StoreError> {
        let Some(mut locked) = self.lock_to_read().await? else { return Ok(Position::START) };
        let segments = locked.segments_as_read(&self.paths)?;
        let length = match locked.open_active(segments, &self.paths)? {
            Some((active, length)) => Some(reading::whole_length(&active.file, length, &self.paths.active)?),
            None => None,
        };
        Ok(end_of(segments, length))
    }

    pub(super) async fn retire(&self, before: Position) -> Result<usize, StoreError> {
        // Checked first, so that retiring nothing writes nothing.
        if !self.paths.lock.exists() && !self.paths.active.exists() {
            return Ok(0);
        }
        let mut locked = self.lock_to_write().await?;
        let mut segments = locked.segments(&self.shared, &self.paths)?;
        self.finish_retiring(segments.first)?;
        if let Some(length) = locked.repaired_length(segments, &self.shared, &self.paths)?
            && position(segments.latest, length) <= before
        {
            segments = self.seal(&mut locked, segments).await?;
        }
        let past = segments.latest + u64::from(matches!(segments.state, SegmentState::Sealed));
        let mut gone = 0;
        while segments.first < past {
            let sealed = self.paths.sealed(segments.first);
            let length = match fs::metadata(&sealed) {
                Ok(found) => Some(found.len()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(StoreError::io("could not look at", &sealed)(error)),
            };
            if length.is_some_and(|length| position(segments.first, length) > before) {
                break;
            }
            // The record first: a file that it no longer lists is only left over, while a listed file that is gone
            // would be looked for again and again.
            segments.first += 1;
            locked.record(segments, &self.shared, &self.paths)?;
            if length.is_some() {
                self.shared.disk.unlink(&sealed).map_err(StoreError::io("could not remove", &sealed))?;
                // It may never have been built.
                drop(fs::remove_file(self.paths.index(segments.first - 1)));
                gone += 1;
            }
        }
        if gone > 0 && segments.first >= past {
            drop(fs::remove_file(self.paths.catalog()));
        }
        Ok(gone)
    }

    /// Deletes the segments before the first one: of a process that was killed between its record and the file.
    fn finish_retiring(&self, first: u64) -> Result<(), StoreError> {
        let left: Vec<u64> = fs::read_dir(&self.paths.folder)
            .map_err(StoreError::io("could not list", &self.paths.folder))?
            .filter_map(|file| self.paths.sealed_number(file.ok()?.file_name().to_str()?))
            .filter(|number| *number < first)
            .collect();
        for number in left {
            let sealed = self.paths.sealed(number);
            self.shared.disk.unlink(&sealed).map_err(StoreError::io("could not remove", &sealed))?;
            drop(fs::remove_file(self.paths.index(number)));
        }
        Ok(())
    }

    pub(super) async fn remove(&self) -> Result<(), StoreError> {
        self.retire(Position(u64::MAX)).await.map(|_| ())
    }

    /// Waits until a range of a segment is on disk. A failed sync closes the segment, because the kernel would report
    /// later syncs of it as good.
    async fn settle(&self, end: Position, active: Active) -> Result<(), StoreError> {
        let wanted = SyncRange { segment: active.number, file: active.inode, end: segment_and_offset(end).1 };
        let failed = StoreError::io("could not sync", &self.paths.active);
        let settled = {
            let commit = self.open_commit().await?;
            // Often another process has synced it by now.
            let known = match &*commit {
                Some(commit) => commit.look(wanted),
                None => Ok(None),
            };
            match known {
                Ok(Some(outcome)) => Ok(outcome),
                Ok(None) => self.with_commit(&commit, &active, |commit, at| commit.settle(at, wanted)),
                Err(reason) => Err(reason),
            }
        };
        match settled {
            Ok(SyncOutcome::Synced) => Ok(()),
            Ok(SyncOutcome::Lost(reason)) => {
                let mut locked = self.lock_to_write().await?;
                let segments = locked.segments(&self.shared, &self.paths)?;
                if segments.latest == wanted.segment && matches!(segments.state, SegmentState::Open) {
                    locked.put_aside(segments, &self.shared, &self.paths)?;
                }
                Err(failed(reason))
            }
            Err(reason) => Err(failed(reason)),
        }
    }

    /// Ends the active segment: syncs it as a whole and renames it to its number. Returns the new segments.
    async fn seal(&self, locked: &mut Locked, segments: Segments) -> Result<Segments, StoreError> {
        let Some((active, length)) = locked.open_active(segments, &self.paths)? else { return Ok(segments) };
        if matches!(self.shared.durability, Durability::Synced) {
            let whole = SyncRange { segment: active.number, file: active.inode, end: length };
            let commit = self.open_commit().await?;
            let sealed = self.with_commit(&commit, &active, |commit, at| commit.seal(at, whole));
            match sealed.map_err(StoreError::io("could not sync", &self.paths.active))? {
                SyncOutcome::Synced => {}
                // Waiting processes see the failure in the mark. It is closed all the more.
                SyncOutcome::Lost(error) => {
                    tracing::warn!(path = %self.paths.active.display(), %error, "a segment may not be whole on disk");
                }
            }
        }
        locked.put_aside(segments, &self.shared, &self.paths)
    }

    async fn open_commit(&self) -> Result<OwnedMutexGuard<Option<Commit>>, StoreError> {
        let mut commit = Arc::clone(&self.commit).lock_owned().await;
        if commit.is_none() {
            let opened = Commit::open(&*self.shared.disk, &self.shared.root, &self.paths);
            *commit = Some(opened.map_err(StoreError::io("could not open", &self.paths.mark))?);
        }
        Ok(commit)
    }

    fn with_commit(
        &self,
        commit: &Option<Commit>,
        active: &Active,
        work: impl FnOnce(&Commit, &SyncTarget<'_>) -> io::Result<SyncOutcome>,
    ) -> io::Result<SyncOutcome> {
        let Some(commit) = commit else { return Err(io::Error::from(io::ErrorKind::NotFound)) };
        let place =
            SyncTarget { disk: &*self.shared.disk, root: &self.shared.root, paths: &self.paths, data: &active.file };
        executor::may_block(|| work(commit, &place))
    }

    /// Takes the log's lock exclusively, creating the log's folder and lock file if they are missing.
    async fn lock_to_write(&self) -> Result<Locked, StoreError> {
        let mut handles = Arc::clone(&self.handles).lock_owned().await;
        match handles.allowed {
            Allowed::Everything => {}
            Allowed::Reading => *handles = Handles::default(),
        }
        if handles.lock.is_none() {
            handles.is_new = !self.paths.lock.exists() && !self.paths.active.exists();
            let opened = disk::open_or_create(&*self.shared.disk, &self.shared.root, &self.paths.lock, Access::InPlace);
            handles.lock = Some(opened.map_err(StoreError::io("could not open", &self.paths.lock))?);
        }
        Locked::acquire(handles, Sharing::Alone).map_err(StoreError::io("could not lock", &self.paths.lock))
    }

    /// Takes the log's lock as a reader; none if there is no log.
    pub(super) async fn lock_to_read(&self) -> Result<Option<Locked>, StoreError> {
        let mut handles = Arc::clone(&self.handles).lock_owned().await;
        if handles.lock.is_none() {
            locked::open_to_read(&mut handles, &*self.shared.disk, &self.shared.root, &self.paths)?;
        }
        if handles.lock.is_none() && !self.paths.active.exists() {
            return Ok(None);
        }
        let locked = Locked::acquire(handles, Sharing::Shared);
        locked.map(Some).map_err(StoreError::io("could not lock", &self.paths.lock))
    }
}

/// The position after the last entry, given the length of the active segment if there is one.
fn end_of(segments: Segments, length: Option<u64>) -> Position {
    match length {
        Some(length) => position(segments.latest, length),
        None if segments == Segments::default() => Position::START,
        None => position(segments.latest + 1, 0),
    }
}
