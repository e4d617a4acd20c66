//! Holding a key: a lock on a file beside it, which the system releases when the process ends.

use std::fs::File;
use std::io;
use std::path::Path;

use super::disk::{self, Access};
use super::layout::hold_path;
use super::shared::Shared;
use crate::unix::flock::{self, Sharing};
use crate::unix::has_name;
use crate::{Hold, Key, StoreError};

/// How often to open a file that is removed again and again.
const TRIES: usize = 100;

/// Takes a key; none while another holder, in this process or another, has it.
pub(super) fn take(shared: &Shared, key: &Key) -> Result<Option<Box<dyn Hold>>, StoreError> {
    let path = hold_path(&shared.root, key);
    for _ in 0..TRIES {
        let opened = disk::open_or_create(&*shared.disk, &shared.root, &path, Access::InPlace);
        let file = opened.map_err(StoreError::io("could not open", &path))?;
        if !flock::try_lock(&file, Sharing::Alone).map_err(StoreError::io("could not lock", &path))? {
            return Ok(None);
        }
        // A cleanup may have removed it after it was opened. Then the next to come would lock another file.
        if has_name(&file.metadata().map_err(StoreError::io("could not look at", &path))?) {
            return Ok(Some(Box::new(FileHold { key: key.clone(), _file: file })));
        }
    }
    Ok(None)
}

/// Whether a process holds a key of a data folder. It takes the key for a moment to see, so another process that would
/// take it just then finds it taken.
pub fn is_held(root: &Path, key: &Key) -> io::Result<bool> {
    match File::open(hold_path(root, key)) {
        Ok(file) => flock::try_lock(&file, Sharing::Shared).map(|taken| !taken),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A key, held for as long as its lock file is open here.
struct FileHold {
    key: Key,
    _file: File,
}

impl Hold for FileHold {
    fn key(&self) -> &Key {
        &self.key
    }
}
