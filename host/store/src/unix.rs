//! What only Unix has: permissions, owners and identities of files, reads and writes at an offset, files named relative
//! to an open folder, locks, and the clock of file timestamps. No other module of this crate names an interface of
//! Unix, so this is what another system replaces.

pub(crate) mod flock;

use std::fs::{File, Metadata};
use std::io;
pub(crate) use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{Access, AtFlags, Mode, OFlags, access, accessat, openat};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The clock of file timestamps.
#[cfg(target_os = "linux")]
const FILE_CLOCK: ClockId = ClockId::RealtimeCoarse;
#[cfg(not(target_os = "linux"))]
const FILE_CLOCK: ClockId = ClockId::Realtime;

/// The time of the system's clock, since 1970.
pub(crate) fn now() -> Timespec {
    clock_gettime(ClockId::Realtime)
}

/// The seconds since 1970 that a file written now would have.
pub(crate) fn file_time() -> i64 {
    clock_gettime(FILE_CLOCK).tv_sec
}

/// The number of the user who runs this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// An error if this user may not list a folder and open what is in it.
pub(crate) fn check_listable(folder: &Path) -> io::Result<()> {
    Ok(access(folder, Access::READ_OK | Access::EXEC_OK)?)
}

/// Opens a file for reading, by its name in an open folder.
pub(crate) fn open_in(folder: &File, name: &str) -> io::Result<File> {
    let opened = retry_on_intr(|| openat(folder, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()))?;
    Ok(File::from(opened))
}

/// Whether an open file still has a name. A process that has one open which another has removed must not go on with it.
pub fn has_name(found: &Metadata) -> bool {
    found.nlink() > 0
}

/// Whether an open folder has nothing of this name.
pub(crate) fn is_missing_in(folder: &File, name: &str) -> bool {
    accessat(folder, name, Access::EXISTS, AtFlags::empty()) == Err(Errno::NOENT)
}

/// Reads once, into the buffer's free capacity. Returns the number of bytes read.
pub(crate) fn read_into_capacity(file: &File, bytes: &mut Vec<u8>) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::read(file, spare_capacity(bytes)))?)
}

/// Reserves disk space for the first bytes of a file, whose length does not change. If the system does not support
/// this, nothing is reserved.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Err(error @ (Errno::NOSPC | Errno::DQUOT)) =
        rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, bytes)
    {
        return Err(error.into());
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, bytes);
    Ok(())
}
