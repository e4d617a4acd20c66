//! The folder of one run, review or pipeline: it is named by its id and holds its record and its files.

use std::fs;
use std::path::{Path, PathBuf};

use mesh::runs::RunId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::Durability;

use super::{RunsError, whole_id};
use crate::atomic_write;
use crate::unix;

/// The file with the record.
pub(crate) const RECORD: &str = "record.json";
/// The file with the whole result, as it is printed.
pub(crate) const RESULT: &str = "result.json";

/// One such folder, whether it exists or not.
#[derive(Clone, Debug)]
pub(crate) struct RecordFolder {
    pub(crate) id: RunId,
    pub(crate) root: PathBuf,
}

impl RecordFolder {
    pub(crate) fn within(parent: &Path, id: RunId) -> RecordFolder {
        RecordFolder { id, root: parent.join(id.to_string()) }
    }

    /// The folder of an id as a user types it, or of the newest for `last`.
    pub(crate) fn as_typed(parent: &Path, typed: &str) -> Result<Option<RecordFolder>, RunsError> {
        let id = match typed {
            "last" => newest_first(parent).into_iter().next(),
            typed => match whole_id(typed, || ids_beside(parent)) {
                Ok(id) => Some(id),
                Err(RunsError::Unknown(_) | RunsError::NotAnId(_)) => None,
                Err(error) => return Err(error),
            },
        };
        Ok(id.map(|id| RecordFolder::within(parent, id)))
    }

    pub(crate) fn create(&self) -> Result<(), RunsError> {
        let made = unix::make_private_folder(&self.root);
        made.map_err(|source| RunsError::Unwritable { id: self.id, source })
    }

    pub(crate) fn has_a_record(&self) -> bool {
        self.root.join(RECORD).exists()
    }

    pub(crate) fn value<T: DeserializeOwned>(&self, name: &str) -> Result<T, RunsError> {
        let bytes = self.read(name)?;
        serde_json::from_slice(&bytes).map_err(|error| RunsError::Unreadable { id: self.id, source: error.into() })
    }

    /// Replaces one of its files in one step.
    pub(crate) fn keep(&self, name: &str, value: &impl Serialize, durability: Durability) -> Result<(), RunsError> {
        let unwritable = |source| RunsError::Unwritable { id: self.id, source };
        let bytes = serde_json::to_vec(value).map_err(|error| unwritable(error.into()))?;
        atomic_write::replace(&self.root.join(name), &bytes, 0o600, durability).map_err(unwritable)
    }

    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, RunsError> {
        fs::read(self.root.join(name)).map_err(|source| RunsError::Unreadable { id: self.id, source })
    }
}

/// The ids of all runs, reviews and pipelines: a review and its first run begin alike.
pub(crate) fn ids_beside(parent: &Path) -> Vec<RunId> {
    let data = parent.parent().unwrap_or(parent);
    ["runs", "reviews", "pipelines"].iter().flat_map(|kind| newest_first(&data.join(kind))).collect()
}

/// The ids of the folders in a folder, the newest first.
pub(crate) fn newest_first(parent: &Path) -> Vec<RunId> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut ids: Vec<RunId> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids
}
