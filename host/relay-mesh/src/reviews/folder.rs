//! Where reviews are kept: one folder each, readable by any process of the user.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use mesh::ports::machine::Machine;
use mesh::reviews::{Finding, ReviewRecord};
use mesh::runs::RunId;
use serde_json::Value;
use store::Durability;

use crate::atomic_write;
use crate::runs::RunsError;

/// The folder of reviews in the data folder.
const REVIEWS: &str = "reviews";
/// The file with the whole result, as it is printed.
const RESULT: &str = "result.json";
/// The file with the findings and the lines that they are about.
const FINDINGS: &str = "findings.json";

/// All reviews of a data folder.
#[derive(Clone, Debug)]
pub(crate) struct Reviews {
    root: PathBuf,
}

/// The files of one review.
#[derive(Clone, Debug)]
pub(crate) struct ReviewFolder {
    pub(crate) id: RunId,
    pub(crate) root: PathBuf,
}

impl Reviews {
    pub(crate) fn of(data: &Path) -> Reviews {
        Reviews { root: data.join(REVIEWS) }
    }

    pub(crate) fn folder(&self, id: RunId) -> ReviewFolder {
        ReviewFolder { id, root: self.root.join(id.to_string()) }
    }

    pub(crate) fn create(&self, id: RunId) -> Result<ReviewFolder, RunsError> {
        let folder = self.folder(id);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder.root);
        made.map_err(|source| RunsError::Unwritable { id, source })?;
        Ok(folder)
    }

    /// The review of an id as a user types it; none if there is no such review.
    pub(crate) fn find(&self, typed: &str) -> Result<Option<(ReviewFolder, ReviewRecord)>, RunsError> {
        let id = match typed {
            "last" => self.ids().into_iter().next(),
            typed => typed.to_uppercase().parse().ok(),
        };
        let Some(folder) = id.map(|id| self.folder(id)).filter(|folder| folder.root.is_dir()) else { return Ok(None) };
        let record = folder.record()?;
        Ok(Some((folder, record)))
    }

    /// The ids of all reviews, the newest first.
    pub(crate) fn ids(&self) -> Vec<RunId> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut ids: Vec<RunId> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids
    }
}

impl ReviewFolder {
    pub(crate) fn record(&self) -> Result<ReviewRecord, RunsError> {
        self.value("record.json")
    }

    pub(crate) fn keep(&self, record: &ReviewRecord) -> Result<(), RunsError> {
        self.write("record.json", record)
    }

    /// The whole result of a review that has ended.
    pub(crate) fn result(&self) -> Result<Value, RunsError> {
        self.value(RESULT)
    }

    pub(crate) fn keep_result(&self, result: &impl serde::Serialize) -> Result<(), RunsError> {
        self.write(RESULT, result)
    }

    pub(crate) fn findings(&self) -> Result<Vec<Finding>, RunsError> {
        self.value(FINDINGS)
    }

    pub(crate) fn keep_findings(&self, findings: &[Finding]) -> Result<(), RunsError> {
        self.write(FINDINGS, &findings)
    }

    /// Git's objects while the difference is worked out.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join("scratch")
    }

    /// Whether the process that works on it is gone, without a result.
    pub(crate) fn is_abandoned(&self, record: &ReviewRecord, machine: &dyn Machine) -> bool {
        record.ended.is_none() && !machine.lives(record.supervisor)
    }

    pub(crate) fn delete(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.root)
    }

    fn value<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, RunsError> {
        let unreadable = |source| RunsError::Unreadable { id: self.id, source };
        let bytes = fs::read(self.root.join(name)).map_err(unreadable)?;
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.into()))
    }

    fn write(&self, name: &str, value: &impl serde::Serialize) -> Result<(), RunsError> {
        let unwritable = |source| RunsError::Unwritable { id: self.id, source };
        let bytes = serde_json::to_vec(value).map_err(|error| unwritable(error.into()))?;
        atomic_write::replace(&self.root.join(name), &bytes, 0o600, Durability::Process).map_err(unwritable)
    }
}
