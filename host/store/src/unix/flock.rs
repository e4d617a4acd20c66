//! File locks. The system releases them however the process ends.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};

/// Whether others may share a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// For readers, so that none of them sees a half-done write.
    Shared,
    /// For a writer, exclusively.
    Alone,
}

/// Takes a lock; waits without a limit.
pub(crate) fn lock(file: &File, sharing: Sharing) -> io::Result<()> {
    let operation = match sharing {
        Sharing::Shared => FlockOperation::LockShared,
        Sharing::Alone => FlockOperation::LockExclusive,
    };
    Ok(rustix::io::retry_on_intr(|| flock(file, operation))?)
}

/// Takes a lock if it is free; returns whether it was taken.
pub(crate) fn try_lock(file: &File, sharing: Sharing) -> io::Result<bool> {
    let operation = match sharing {
        Sharing::Shared => FlockOperation::NonBlockingLockShared,
        Sharing::Alone => FlockOperation::NonBlockingLockExclusive,
    };
    match rustix::io::retry_on_intr(|| flock(file, operation)) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A lock that is released on drop.
pub(crate) struct UntilDropped<'file>(pub(crate) &'file File);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        unlock(self.0);
    }
}

/// Releases a lock. If the system refuses, this only logs it: closing the file releases the lock too.
pub(crate) fn unlock(file: &File) {
    if let Err(error) = flock(file, FlockOperation::Unlock) {
        tracing::warn!(%error, "a lock could not be given back before its file is closed");
    }
}
