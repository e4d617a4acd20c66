//! The trigger file: it holds the latest wake, and whoever watches it sees it change.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use store::Durability;

use crate::atomic_write;

/// Writes the file anew, in one step, so that nobody reads half of it.
pub(super) fn write(path: &Path, line: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    atomic_write::replace(path, line, 0o600, Durability::Process)
}
