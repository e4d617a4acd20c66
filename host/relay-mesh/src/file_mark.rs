//! Which file or folder a path leads to, however it is named: its device, its number, and when it was made, since the
//! number of a deleted one is given to a later one.

use std::fs::Metadata;
use std::path::Path;

use crate::unix::{self, MetadataExt};

/// The mark, if the file system knows when the file was made. `found` is what the path leads to.
pub(crate) fn of(path: &Path, found: &Metadata) -> Option<String> {
    Some(format!("{}-{}-{}", found.dev(), found.ino(), unix::made(path, found)?))
}
