//! File locks, which end with the process however it ends.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};

/// Whether others may share a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Readers share it, so that none of them sees a write half done.
    Shared,
    /// A writer has it alone.
    Alone,
}

/// Takes a lock, waiting as long as it takes.
pub(super) fn lock(file: &File, sharing: Sharing) -> io::Result<()> {
    let operation = match sharing {
        Sharing::Shared => FlockOperation::LockShared,
        Sharing::Alone => FlockOperation::LockExclusive,
    };
    Ok(rustix::io::retry_on_intr(|| flock(file, operation))?)
}

/// Takes a lock if nobody else has it; whether it was taken.
pub(super) fn try_lock(file: &File, sharing: Sharing) -> io::Result<bool> {
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

/// A lock that is given back at the end of a scope, however the scope is left.
pub(super) struct UntilDropped<'file>(pub(super) &'file File);

impl Drop for UntilDropped<'_> {
    fn drop(&mut self) {
        unlock(self.0);
    }
}

/// Gives a lock back. Should the system refuse, closing the file gives it back too, so this says
/// so and goes on.
pub(super) fn unlock(file: &File) {
    if let Err(error) = flock(file, FlockOperation::Unlock) {
        tracing::warn!(%error, "a lock could not be given back before its file is closed");
    }
}
