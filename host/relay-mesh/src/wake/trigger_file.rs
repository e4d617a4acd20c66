//! The trigger file: contains the latest wake, and its watchers see it change.

use std::io;
use std::path::Path;

use store::Durability;

use crate::atomic_write;
use crate::unix;

/// Replaces the file atomically, so that no watcher reads half of it.
pub(super) fn write(path: &Path, line: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    unix::make_private_folder(folder)?;
    atomic_write::replace(path, line, 0o600, Durability::Process)
}
