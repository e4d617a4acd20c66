//! The trigger file: it holds the latest wake, and whoever watches it sees it change.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Writes the file anew, in one step, so that nobody reads half of it.
pub(super) fn write(path: &Path, line: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = folder.join(format!(".{}.{}", path.file_name().unwrap_or_default().display(), std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    let written = file.write_all(line).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        // The reason is told; a leftover that cannot be removed is written over next time.
        let _left = std::fs::remove_file(&new);
    }
    written
}
