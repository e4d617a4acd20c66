//! The trigger file: contains the latest wake, and its watchers see it change.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use store::Durability;

use crate::atomic_write;

/// Replaces the file atomically, so that no watcher reads half of it.
pub(super) fn write(path: &Path, line: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    atomic_write::replace(path, line, 0o600, Durability::Process)
}
