//! A log with its lock held: the files that a process has open for it, and the steps that need the lock.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::disk::{self, Access, Disk};
use super::executor;
use super::layout::{LogPaths, position};
use super::reading;
use super::segments::{SegmentState, Segments};
use super::shared::Shared;
use crate::unix::flock::{self, Sharing};
use crate::unix::{MetadataExt, has_name};
use crate::{Durability, Position, StoreError};

/// The log's lock, held. Released on drop, so also when the task that took it is cancelled.
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
    pub(super) fn acquire(handles: OwnedMutexGuard<Handles>, sharing: Sharing) -> io::Result<Locked> {
        let Some(lock) = &handles.lock else { return Ok(Locked { handles }) };
        // Nearly always the lock is free or is free again within microseconds.
        if flock::try_lock(lock, sharing)? {
            return Ok(Locked { handles });
        }
        executor::may_block(|| flock::lock(lock, sharing))?;
        Ok(Locked { handles })
    }

    /// The segments, for a writer: a lost record is written again.
    pub(super) fn segments(&mut self, shared: &Shared, paths: &LogPaths) -> Result<Segments, StoreError> {
        if let Some(segments) = self.recorded(paths)? {
            return Ok(segments);
        }
        if self.handles.is_new && !paths.active.exists() {
            // Neither lock nor log was there: what its folder holds of other logs need not be listed.
            let segments = Segments::default();
            self.record(segments, shared, paths)?;
            return Ok(segments);
        }
        let segments = Segments::recover(paths).map_err(StoreError::io("could not list", &paths.folder))?;
        self.record(segments, shared, paths)?;
        Ok(segments)
    }

    /// The segments, for a reader, which writes nothing.
    pub(super) fn segments_as_read(&self, paths: &LogPaths) -> Result<Segments, StoreError> {
        match self.recorded(paths)? {
            Some(segments) => Ok(segments),
            None => Segments::recover(paths).map_err(StoreError::io("could not list", &paths.folder)),
        }
    }

    /// The record; none if the files show that it is older than they are, as it may be after a power loss if nothing
    /// was synced.
    fn recorded(&self, paths: &LogPaths) -> Result<Option<Segments>, StoreError> {
        let Some(lock) = &self.handles.lock else { return Ok(None) };
        let Some(segments) = Segments::read(lock).map_err(StoreError::io("could not read", &paths.lock))? else {
            return Ok(None);
        };
        // Whatever this process has seen since boot needs no second check.
        let open = self.handles.active.as_ref().is_some_and(|active| active.number == segments.latest);
        let outdated = match segments.state {
            SegmentState::Open => !open && paths.sealed(segments.latest).exists(),
            SegmentState::Sealed => paths.sealed(segments.latest).exists() && paths.active.exists(),
        };
        Ok((!outdated).then_some(segments))
    }

    pub(super) fn record(&self, segments: Segments, shared: &Shared, paths: &LogPaths) -> Result<(), StoreError> {
        let Some(lock) = &self.handles.lock else { return Ok(()) };
        segments.write(&*shared.disk, lock, paths).map_err(StoreError::io("could not write to", &paths.lock))?;
        // Sealed files must never be numbered by a record older than they are.
        if matches!(shared.durability, Durability::Synced) && segments != Segments::default() {
            shared.disk.sync(lock, &paths.lock).map_err(StoreError::io("could not sync", &paths.lock))?;
        }
        Ok(())
    }

    /// The active segment and its length, if it exists. The file kept open is reused while it is still that segment:
    /// another process may have sealed it, or the user removed it.
    pub(super) fn open_active(
        &mut self,
        segments: Segments,
        paths: &LogPaths,
    ) -> Result<Option<(Active, u64)>, StoreError> {
        if matches!(segments.state, SegmentState::Sealed) {
            self.handles.active = None;
            return Ok(None);
        }
        let look = StoreError::io("could not look at", &paths.active);
        if let Some(active) = &self.handles.active
            && active.number == segments.latest
        {
            let found = active.file.metadata().map_err(look)?;
            if has_name(&found) {
                return Ok(Some((active.clone(), found.len())));
            }
        }
        self.handles.active = None;
        let failed = StoreError::io("could not open", &paths.active);
        let file = match disk::open(&paths.active, Access::Append) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if is_read_only(&error) && matches!(self.handles.allowed, Allowed::Reading) => {
                File::open(&paths.active).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        let found = file.metadata().map_err(StoreError::io("could not look at", &paths.active))?;
        let active = Active { number: segments.latest, inode: found.ino(), file: Arc::new(file) };
        self.handles.active = Some(active.clone());
        Ok(Some((active, found.len())))
    }

    /// The length of the active segment after a torn tail was cut off; none if there is no active segment.
    pub(super) fn repaired_length(
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

    /// Writes lines to the end of the active segment, creating one if there is none. A failed write leaves the log
    /// unchanged.
    pub(super) fn write(
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

    /// Begins a segment. Its number is recorded before its file exists, so that the file is never mistaken for the
    /// segment before it.
    fn begin(&mut self, segments: Segments, shared: &Shared, paths: &LogPaths) -> Result<Active, StoreError> {
        // A segment that was sealed just before its process died still has to be renamed.
        if matches!(segments.state, SegmentState::Sealed) {
            match shared.disk.rename(&paths.active, &paths.sealed(segments.latest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io("could not rename", &paths.active)(error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        // A log that was never synced and never rotated has not published a segment number yet.
        let fresh = segments == Segments::default() && !paths.mark.exists();
        let latest = if fresh { 0 } else { segments.latest + 1 };
        self.record(Segments { latest, state: SegmentState::Open, ..segments }, shared, paths)?;
        let file = shared.disk.create(&paths.active).map_err(StoreError::io("could not create", &paths.active))?;
        let inode = file.metadata().map_err(StoreError::io("could not look at", &paths.active))?.ino();
        let active = Active { number: latest, inode, file: Arc::new(file) };
        self.handles.active = Some(active.clone());
        Ok(active)
    }

    /// Renames the active segment to its number, so that the next append begins another. The record comes first, so
    /// that processes with the file open know that it is sealed.
    pub(super) fn put_aside(
        &mut self,
        segments: Segments,
        shared: &Shared,
        paths: &LogPaths,
    ) -> Result<Segments, StoreError> {
        let mut segments = segments;
        if paths.sealed(segments.latest).exists() {
            // Segments that were copied here without their log: they come first, and are never overwritten.
            let listed = Segments::recover(paths).map_err(StoreError::io("could not list", &paths.folder))?;
            segments = Segments { first: listed.first, latest: listed.latest, ..segments };
        }
        let sealed = paths.sealed(segments.latest);
        let found = fs::metadata(&paths.active).map_err(StoreError::io("could not look at", &paths.active))?;
        let sealed_to = position(segments.latest, found.len());
        let segments = Segments { state: SegmentState::Sealed, sealed_to, ..segments };
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

/// Files kept open between calls. Written by the task that holds the mutex.
#[derive(Default)]
pub(super) struct Handles {
    pub(super) lock: Option<File>,
    /// Whether the log had no files when its lock was opened.
    pub(super) is_new: bool,
    /// How the system let this process open the files.
    pub(super) allowed: Allowed,
    /// The active segment, as of its last use.
    active: Option<Active>,
}

/// What the system lets a process do with a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Reading and writing, as far as tried.
    #[default]
    Everything,
    /// Reading only: the files are on read-only storage. Tried again for a write.
    Reading,
}

/// The active segment, to which entries are appended.
#[derive(Clone)]
pub(super) struct Active {
    pub(super) number: u64,
    /// The file's inode, which distinguishes it from another file that took its name.
    pub(super) inode: u64,
    pub(super) file: Arc<File>,
}

/// Opens the lock file for a reader, if there is a log. A log that was copied here without its lock file gets one; a
/// log on read-only storage is read without, because nothing writes to it either.
pub(super) fn open_to_read(
    handles: &mut Handles,
    disk: &dyn Disk,
    root: &Path,
    paths: &LogPaths,
) -> Result<(), StoreError> {
    let failed = StoreError::io("could not open", &paths.lock);
    let opened = match disk::open(&paths.lock, Access::InPlace) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && paths.active.exists() => {
            disk::open_or_create(disk, root, &paths.lock, Access::InPlace)
        }
        opened => opened,
    };
    match opened {
        Ok(lock) => handles.lock = Some(lock),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) if is_read_only(&error) => {
            handles.allowed = Allowed::Reading;
            handles.lock = match File::open(&paths.lock) {
                Ok(lock) => Some(lock),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(failed(error)),
            };
        }
        Err(error) => return Err(failed(error)),
    }
    Ok(())
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}
