//! What only Unix has: permissions, owners and identities of files, links, and sockets with a path; what it has of
//! processes is in [`process`]. No other module of this crate names an interface of Unix, so this is what another
//! system replaces.

pub(crate) mod process;

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::FileTypeExt as _;
pub(crate) use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{Access, OFlags, access, statvfs};
pub(crate) use store::{create_private_file, make_private_folder};
pub(crate) use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
pub(crate) use tokio::net::{UnixListener, UnixStream};

/// Flags for opening a file: a link is refused, and opening a named pipe does not wait for its other end.
pub(crate) const NO_LINK_NON_BLOCKING: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

/// The number of the user whose rights this process has.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The number of the user who started this process, which may have another's rights.
pub(crate) fn starter() -> u32 {
    rustix::process::getuid().as_raw()
}

/// This machine's name in its network.
pub(crate) fn node_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Opens a file to append to it. One that is missing is created for this user alone.
pub(crate) fn append_to_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Whether a path leads to a file that any user may run.
pub(crate) fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// Whether this user may run a file as a program.
pub(crate) fn is_executable(file: &Path) -> bool {
    access(file, Access::EXEC_OK).is_ok()
}

/// The bytes that this user may still write to the disk of a folder.
pub(crate) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let about = statvfs(folder)?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

/// When a file or folder was made, in nanoseconds since 1970; none if the file system does not know it. The standard
/// library does not know it where it stands on musl, as releases do.
#[cfg(target_os = "linux")]
pub(crate) fn made(path: &Path, _: &Metadata) -> Option<i128> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let known = statx(CWD, path, AtFlags::empty(), StatxFlags::BTIME).ok()?;
    let made = known.stx_btime;
    let has_it = StatxFlags::from_bits_retain(known.stx_mask).contains(StatxFlags::BTIME);
    has_it.then(|| i128::from(made.tv_sec) * 1_000_000_000 + i128::from(made.tv_nsec))
}

/// When a file or folder was made, in nanoseconds since 1970; none if the file system does not know it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn made(_: &Path, found: &Metadata) -> Option<i128> {
    let made = found.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i128::try_from(made.as_nanos()).ok()
}

/// Whether this is the state of a socket.
pub(crate) fn is_socket(found: &Metadata) -> bool {
    found.file_type().is_socket()
}

/// Whether the process at the other end of a socket is this user's. One that has gone already is not.
pub(crate) fn is_of_this_user(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == user())
}
