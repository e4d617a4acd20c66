//! What everything in one store of files has in common.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::disk::{self, Disk};
use crate::Durability;

/// What the logs, values and holds of a store have in common.
pub(super) struct Shared {
    pub(super) root: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    /// The most that is ever waited for.
    pub(super) durability: Durability,
    /// The length past which a segment is not appended to.
    pub(super) rotate_at: u64,
    /// Folders whose names, all the way up, this process has synced.
    pub(super) named: std::sync::Mutex<HashSet<PathBuf>>,
}

impl Shared {
    /// Makes the names in a folder last, and the first time those of the folders above it too.
    pub(super) fn sync_names(&self, folder: &Path) -> io::Result<()> {
        let known = self.named.lock().unwrap_or_else(PoisonError::into_inner).contains(folder);
        if known {
            return self.disk.sync_folder(folder);
        }
        disk::sync_folders(&*self.disk, &self.root, folder)?;
        self.named.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_path_buf());
        Ok(())
    }
}
