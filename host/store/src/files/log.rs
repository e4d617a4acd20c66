//! One log of the files backend: its lock, its segments, and what is done to them.
//!
//! Writers have the log's lock alone and readers share it, so nobody sees a write half done. A
//! process that died in the middle leaves a line without an end, which the next writer cuts off.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::commit::{Commit, Outcome, Place};
use super::disk::{self, Access, Disk};
use super::executor;
use super::flock::{self, Sharing};
use super::layout::{LogPaths, position, segment_and_offset};
use super::lines;
use super::mark::Wanted;
use super::reading;
use super::segments::{Segments, State};
use crate::{AppendError, Batch, Durability, Expect, Position, StoreError};

/// What all logs of a store have in common.
pub(super) struct Shared {
    pub(super) root: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    /// The most that is ever waited for.
    pub(super) durability: Durability,
    /// The length past which a segment is not appended to.
    pub(super) rotate_at: u64,
    /// Folders whose names, all the way up, this process has synced.
    pub(super) named: std::sync::Mutex<HashSet<PathBuf>>,
}

impl Shared {
    /// Makes the names in a folder last, and the first time those of the folders above it too.
    pub(super) fn sync_names(&self, folder: &Path) -> io::Result<()> {
        let known = self.named.lock().unwrap_or_else(PoisonError::into_inner).contains(folder);
        if known {
            return self.disk.sync_folder(folder);
        }
        disk::sync_folders(&*self.disk, &self.root, folder)?;
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_path_buf());
        Ok(())
    }
}

/// One log, with the files that this process has open for it.
pub(super) struct Log {
    shared: Arc<Shared>,
    paths: LogPaths,
    /// One task of this process at a time; the file lock inside is for the other processes.
    handles: Arc<Mutex<Handles>>,
    /// One task of this process at a time waits for the disk, and the others find it done.
    commit: Arc<Mutex<Option<Commit>>>,
}

/// Files kept open between calls. Written by whoever has the mutex.
#[derive(Default)]
pub(super) struct Handles {
    lock: Option<File>,
    /// The segment that is appended to, as it was when it was last used.
    active: Option<Active>,
}

/// The segment that is appended to.
#[derive(Clone)]
pub(super) struct Active {
    pub(super) number: u64,
    /// Its identity as a file, which tells it apart from another that took its name.
    inode: u64,
    pub(super) file: Arc<File>,
}

impl Log {
    pub(super) fn new(shared: Arc<Shared>, paths: LogPaths) -> Log {
        Log { shared, paths, handles: Arc::default(), commit: Arc::default() }
    }

    pub(super) async fn append(
        &self,
        entries: &[Vec<u8>],
        expect: Expect,
        durability: Durability,
    ) -> Result<Position, AppendError> {
        let lines = lines::frame(entries)?;
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
        Ok(end)
    }

    pub(super) async fn read(&self, from: Position, limit: usize) -> Result<Batch, StoreError> {
        let Some(mut locked) = self.lock_to_read().await? else {
            return Ok(Batch { next: from, at_end: true, ..Batch::default() });
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
        // Looked at first, so that retiring nothing writes nothing.
        if !self.paths.lock.exists() && !self.paths.active.exists() {
            return Ok(0);
        }
        let mut locked = self.lock_to_write().await?;
        let mut segments = locked.segments(&self.shared, &self.paths)?;
        if let Some(length) = locked.repaired_length(segments, &self.shared, &self.paths)?
            && position(segments.latest, length) <= before
        {
            segments = self.seal(&mut locked, segments).await?;
        }
        let past = segments.latest + u64::from(matches!(segments.state, State::Sealed));
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
            // The record first: a file that it no longer counts is only left over, while a file
            // that it counts and that is gone would be looked for again and again.
            segments.first += 1;
            locked.record(segments, &self.shared, &self.paths)?;
            if length.is_some() {
                self.shared.disk.unlink(&sealed).map_err(StoreError::io("could not remove", &sealed))?;
                gone += 1;
            }
        }
        Ok(gone)
    }

    pub(super) async fn remove(&self) -> Result<(), StoreError> {
        self.retire(Position(u64::MAX)).await.map(|_| ())
    }

    /// Waits until a stretch is on disk. A sync that failed closes the segment, because the kernel
    /// would report later syncs of it as good.
    async fn settle(&self, end: Position, active: Active) -> Result<(), StoreError> {
        let wanted = Wanted { segment: active.number, file: active.inode, end: segment_and_offset(end).1 };
        let failed = StoreError::io("could not sync", &self.paths.active);
        let turn = self.commit_turn().await?;
        // Often somebody else has synced it by now, and no thread is needed to find that out.
        let known = match &*turn {
            Some(commit) => commit.look(wanted),
            None => Ok(None),
        };
        let settled = match known {
            Ok(Some(outcome)) => Ok(outcome),
            Ok(None) => self.with_commit(turn, active, move |commit, at| commit.settle(at, wanted)).await,
            Err(reason) => Err(reason),
        };
        match settled {
            Ok(Outcome::Synced) => Ok(()),
            Ok(Outcome::Lost(reason)) => {
                let mut locked = self.lock_to_write().await?;
                let segments = locked.segments(&self.shared, &self.paths)?;
                if segments.latest == wanted.segment && matches!(segments.state, State::Open) {
                    locked.put_aside(segments, &self.shared, &self.paths)?;
                }
                Err(failed(reason))
            }
            Err(reason) => Err(failed(reason)),
        }
    }

    /// Ends the segment that is appended to: syncs it as a whole and gives it its number. Gives
    /// the segments as they are then.
    async fn seal(&self, locked: &mut Locked, segments: Segments) -> Result<Segments, StoreError> {
        let Some((active, length)) = locked.open_active(segments, &self.paths)? else { return Ok(segments) };
        if matches!(self.shared.durability, Durability::Synced) {
            let whole = Wanted { segment: active.number, file: active.inode, end: length };
            let turn = self.commit_turn().await?;
            let sealed = self.with_commit(turn, active, move |commit, at| commit.seal(at, whole)).await;
            match sealed.map_err(StoreError::io("could not sync", &self.paths.active))? {
                Outcome::Synced => {}
                // Those who wait for the segment learn it from the mark. It is closed all the more.
                Outcome::Lost(error) => {
                    tracing::warn!(path = %self.paths.active.display(), %error, "a segment may not be whole on disk");
                }
            }
        }
        locked.put_aside(segments, &self.shared, &self.paths)
    }

    async fn commit_turn(&self) -> Result<OwnedMutexGuard<Option<Commit>>, StoreError> {
        let mut turn = Arc::clone(&self.commit).lock_owned().await;
        if turn.is_none() {
            let opened = Commit::open(&*self.shared.disk, &self.shared.root, &self.paths);
            *turn = Some(opened.map_err(StoreError::io("could not open", &self.paths.mark))?);
        }
        Ok(turn)
    }

    async fn with_commit(
        &self,
        turn: OwnedMutexGuard<Option<Commit>>,
        active: Active,
        work: impl FnOnce(&Commit, &Place<'_>) -> io::Result<Outcome> + Send + 'static,
    ) -> io::Result<Outcome> {
        let (shared, paths) = (Arc::clone(&self.shared), self.paths.clone());
        executor::may_block(move || match &*turn {
            Some(commit) => {
                let place = Place { disk: &*shared.disk, root: &shared.root, paths: &paths, data: &active.file };
                work(commit, &place)
            }
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        })
        .await
    }

    /// Takes the log's lock alone, making the log's folder and lock file if need be.
    async fn lock_to_write(&self) -> Result<Locked, StoreError> {
        let mut handles = Arc::clone(&self.handles).lock_owned().await;
        if handles.lock.is_none() {
            let opened = disk::open_or_create(&*self.shared.disk, &self.shared.root, &self.paths.lock, Access::InPlace);
            handles.lock = Some(opened.map_err(StoreError::io("could not open", &self.paths.lock))?);
        }
        Locked::acquire(handles, Sharing::Alone).await.map_err(StoreError::io("could not lock", &self.paths.lock))
    }

    /// Takes a share of the log's lock; none where there is no log.
    async fn lock_to_read(&self) -> Result<Option<Locked>, StoreError> {
        let mut handles = Arc::clone(&self.handles).lock_owned().await;
        if handles.lock.is_none() {
            handles.lock = open_lock_to_read(&*self.shared.disk, &self.shared.root, &self.paths)?;
        }
        if handles.lock.is_none() && !self.paths.active.exists() {
            return Ok(None);
        }
        let locked = Locked::acquire(handles, Sharing::Shared).await;
        locked.map(Some).map_err(StoreError::io("could not lock", &self.paths.lock))
    }
}

/// Opens the lock file for a reader. A log that was copied here without it gets one; a log that
/// lies where nothing can be written is read without, since nobody writes to it either.
fn open_lock_to_read(disk: &dyn Disk, root: &Path, paths: &LogPaths) -> Result<Option<File>, StoreError> {
    let failed = StoreError::io("could not open", &paths.lock);
    match disk::open(&paths.lock, Access::InPlace) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !paths.active.exists() => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match disk::open_or_create(disk, root, &paths.lock, Access::InPlace) {
                Ok(lock) => Ok(Some(lock)),
                Err(error) if is_read_only(&error) => Ok(None),
                Err(error) => Err(failed(error)),
            }
        }
        Err(error) if is_read_only(&error) => File::open(&paths.lock).map(Some).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// The log's lock, held. Given back when dropped, so also when the task that took it is cancelled.
pub(super) struct Locked {
    handles: OwnedMutexGuard<Handles>,
}

impl Drop for Locked {
    fn drop(&mut self) {
        if let Some(lock) = &self.handles.lock {
            flock::unlock(lock);
        }
    }
}

impl Locked {
    async fn acquire(handles: OwnedMutexGuard<Handles>, sharing: Sharing) -> io::Result<Locked> {
        let Some(lock) = &handles.lock else { return Ok(Locked { handles }) };
        // Nearly always the lock is free or is free again within microseconds.
        if flock::try_lock(lock, sharing)? {
            return Ok(Locked { handles });
        }
        executor::may_block(move || {
            if let Some(lock) = &handles.lock {
                flock::lock(lock, sharing)?;
            }
            Ok(Locked { handles })
        })
        .await
    }

    /// Which segments there are, for a writer: a lost record is written anew.
    fn segments(&mut self, shared: &Shared, paths: &LogPaths) -> Result<Segments, StoreError> {
        let Some(lock) = &self.handles.lock else { return Ok(Segments::default()) };
        match Segments::read(lock).map_err(StoreError::io("could not read", &paths.lock))? {
            Some(segments) => Ok(segments),
            None => {
                let segments = Segments::recover(paths).map_err(StoreError::io("could not list", &paths.folder))?;
                self.record(segments, shared, paths)?;
                Ok(segments)
            }
        }
    }

    /// Which segments there are, for a reader, who writes nothing.
    fn segments_as_read(&self, paths: &LogPaths) -> Result<Segments, StoreError> {
        let recorded = match &self.handles.lock {
            Some(lock) => Segments::read(lock).map_err(StoreError::io("could not read", &paths.lock))?,
            None => None,
        };
        match recorded {
            Some(segments) => Ok(segments),
            None => Segments::recover(paths).map_err(StoreError::io("could not list", &paths.folder)),
        }
    }

    fn record(&self, segments: Segments, shared: &Shared, paths: &LogPaths) -> Result<(), StoreError> {
        let Some(lock) = &self.handles.lock else { return Ok(()) };
        segments.write(&*shared.disk, lock, paths).map_err(StoreError::io("could not write to", &paths.lock))?;
        // Sealed files must never be numbered by a record older than they are.
        if matches!(shared.durability, Durability::Synced) && segments != Segments::default() {
            shared.disk.sync(lock, &paths.lock).map_err(StoreError::io("could not sync", &paths.lock))?;
        }
        Ok(())
    }

    /// The segment that is appended to and its length, if it is there. What is kept open is used
    /// while it still is that segment: another process may have sealed it, and a person may have
    /// removed it.
    fn open_active(&mut self, segments: Segments, paths: &LogPaths) -> Result<Option<(Active, u64)>, StoreError> {
        if matches!(segments.state, State::Sealed) {
            self.handles.active = None;
            return Ok(None);
        }
        let look = StoreError::io("could not look at", &paths.active);
        if let Some(active) = &self.handles.active
            && active.number == segments.latest
        {
            let found = active.file.metadata().map_err(look)?;
            if found.nlink() > 0 {
                return Ok(Some((active.clone(), found.len())));
            }
        }
        self.handles.active = None;
        let failed = StoreError::io("could not open", &paths.active);
        let file = match disk::open(&paths.active, Access::Append) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if is_read_only(&error) => File::open(&paths.active).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        };
        let found = file.metadata().map_err(StoreError::io("could not look at", &paths.active))?;
        let active = Active { number: segments.latest, inode: found.ino(), file: Arc::new(file) };
        self.handles.active = Some(active.clone());
        Ok(Some((active, found.len())))
    }

    /// The length of the active segment after a torn tail was cut off; none where it is not there.
    fn repaired_length(
        &mut self,
        segments: Segments,
        shared: &Shared,
        paths: &LogPaths,
    ) -> Result<Option<u64>, StoreError> {
        let Some((active, length)) = self.open_active(segments, paths)? else { return Ok(None) };
        let whole = reading::whole_length(&active.file, length, &paths.active)?;
        if whole < length {
            let torn = length - whole;
            tracing::warn!(path = %paths.active.display(), torn, "cut off a line that was torn");
            let cut = shared.disk.truncate(&active.file, &paths.active, whole);
            cut.map_err(StoreError::io("could not cut a torn line off", &paths.active))?;
        }
        Ok(Some(whole))
    }

    /// Writes lines to the end of the active segment, beginning one if there is none. After a
    /// failure the log is as it was.
    fn write(
        &mut self,
        segments: Segments,
        length: Option<u64>,
        lines: &[u8],
        shared: &Shared,
        paths: &LogPaths,
    ) -> Result<(Position, Active), StoreError> {
        let (active, before) = match (length, &self.handles.active) {
            (Some(length), Some(active)) => (active.clone(), length),
            (None, _) | (Some(_), None) => (self.begin(segments, shared, paths)?, 0),
        };
        if let Err(reason) = disk::append_all(&*shared.disk, &active.file, &paths.active, lines) {
            if let Err(error) = shared.disk.truncate(&active.file, &paths.active, before) {
                tracing::warn!(path = %paths.active.display(), %error, "could not take a failed append back");
            }
            return Err(StoreError::io("could not append to", &paths.active)(reason));
        }
        Ok((position(active.number, before + lines.len() as u64), active))
    }

    /// Begins a segment. Its number is recorded before its file is there, so that the file is
    /// never taken for the segment before it.
    fn begin(&mut self, segments: Segments, shared: &Shared, paths: &LogPaths) -> Result<Active, StoreError> {
        // A segment that was sealed just before its process died still has to be renamed.
        if matches!(segments.state, State::Sealed) {
            match shared.disk.rename(&paths.active, &paths.sealed(segments.latest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io("could not rename", &paths.active)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        // A log that was never synced and never rotated has told nobody of a segment yet.
        let fresh = segments == Segments::default() && !paths.mark.exists();
        let latest = if fresh { 0 } else { segments.latest + 1 };
        self.record(Segments { latest, state: State::Open, ..segments }, shared, paths)?;
        let file = shared.disk.create(&paths.active).map_err(StoreError::io("could not create", &paths.active))?;
        let inode = file.metadata().map_err(StoreError::io("could not look at", &paths.active))?.ino();
        let active = Active { number: latest, inode, file: Arc::new(file) };
        self.handles.active = Some(active.clone());
        Ok(active)
    }

    /// Gives the active segment its number in its name, so that the next append begins another.
    /// The record comes first: what is kept open elsewhere is then known to be sealed.
    fn put_aside(&mut self, segments: Segments, shared: &Shared, paths: &LogPaths) -> Result<Segments, StoreError> {
        let sealed = paths.sealed(segments.latest);
        if sealed.exists() {
            return Err(StoreError::Damaged {
                what: sealed.display().to_string(),
                why: "a segment that is still appended to has this number too".to_owned(),
            });
        }
        let found = fs::metadata(&paths.active).map_err(StoreError::io("could not look at", &paths.active))?;
        let sealed_to = position(segments.latest, found.len());
        let segments = Segments { state: State::Sealed, sealed_to, ..segments };
        self.record(segments, shared, paths)?;
        self.handles.active = None;
        shared.disk.rename(&paths.active, &sealed).map_err(StoreError::io("could not rename", &paths.active))?;
        if matches!(shared.durability, Durability::Synced) {
            let synced = shared.disk.sync_folder(&paths.folder);
            synced.map_err(StoreError::io("could not sync", &paths.folder))?;
        }
        Ok(segments)
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
