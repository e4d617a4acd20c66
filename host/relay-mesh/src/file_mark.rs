//! Which file or folder a path leads to, however it is named: its device, its number, and when it was made, since the
//! number of a deleted one is given to a later one.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The mark, if the file system knows when the file was made. `found` is what the path leads to.
pub(crate) fn of(path: &Path, found: &Metadata) -> Option<String> {
    Some(format!("{}-{}-{}", found.dev(), found.ino(), made(path, found)?))
}

/// In nanoseconds since 1970. The standard library does not know it where it stands on musl, as releases do.
#[cfg(target_os = "linux")]
fn made(path: &Path, _: &Metadata) -> Option<i128> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let known = statx(CWD, path, AtFlags::empty(), StatxFlags::BTIME).ok()?;
    let made = known.stx_btime;
    let has_it = StatxFlags::from_bits_retain(known.stx_mask).contains(StatxFlags::BTIME);
    has_it.then(|| i128::from(made.tv_sec) * 1_000_000_000 + i128::from(made.tv_nsec))
}

#[cfg(not(target_os = "linux"))]
fn made(_: &Path, found: &Metadata) -> Option<i128> {
    let made = found.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i128::try_from(made.as_nanos()).ok()
}
