//! The state that all parts of one files store share.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::disk::{self, Disk};
use crate::{Durability, IndexRule};

pub(super) struct Shared {
    pub(super) root: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    /// The highest durability of any call.
    pub(super) durability: Durability,
    /// The length in bytes at which a segment is sealed.
    pub(super) rotate_at: u64,
    /// What is indexed of sealed segments; none if every lookup reads them.
    pub(super) rule: Option<Arc<dyn IndexRule>>,
    /// Folders whose names, up to the root, this process has synced.
    pub(super) named: std::sync::Mutex<HashSet<PathBuf>>,
}

impl Shared {
    /// Syncs the names in a folder, and the first time also those of its parents.
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
