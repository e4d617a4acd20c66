//! What only Unix has: files that may be run as programs, and sockets with a path. No other module of this crate names
//! an interface of Unix, so this is what another system replaces.

use std::fs::{Permissions, set_permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

pub(crate) use tokio::net::UnixListener;

/// Lets this user, and no other, run a file as a program.
pub(crate) fn make_executable(file: &Path) -> io::Result<()> {
    set_permissions(file, Permissions::from_mode(0o700))
}
