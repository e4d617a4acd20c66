//! What only Unix has: permissions, owners and states of files, reads and writes at an offset, sockets with a path, and
//! a thread's processor time. No other module of this crate names an interface of Unix, so this is what another system
//! replaces.

pub(crate) mod socket;

use std::io;
pub(crate) use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use rustix::fs::{Access, OFlags, access};
use rustix::time::{ClockId, clock_gettime};
pub(crate) use store::make_private_folder;

/// A flag for opening a file: opening a named pipe does not wait for its other end.
pub(crate) const NON_BLOCKING: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// The number of the user who runs this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// An error if this user may not create files in a folder.
pub(crate) fn check_writable(folder: &Path) -> io::Result<()> {
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Whether this user may run a file as a program.
pub(crate) fn is_executable(file: &Path) -> bool {
    access(file, Access::EXEC_OK).is_ok()
}

/// The number of the signal that ended a program.
pub(crate) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Nanoseconds of processor time that this thread has used.
pub(crate) fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}
