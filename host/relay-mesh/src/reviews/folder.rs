//! Where reviews are kept: one folder each, readable by any process of the user.

use std::fs::File;
use std::path::{Path, PathBuf};

use mesh::DryRun;
use mesh::ports::data_files::Amount;
use mesh::ports::machine::{Instant, Machine};
use mesh::reviews::{Finding, ReviewRecord};
use mesh::runs::RunId;
use serde_json::Value;
use store::Durability;

use crate::retention::folders;
use crate::runs::record_folder::{RECORD, RESULT, RecordFolder, newest_first};
use crate::runs::{RunsError, alive};

/// The folder of reviews in the data folder.
const REVIEWS: &str = "reviews";
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
    pub(crate) files: RecordFolder,
}

impl Reviews {
    pub(crate) fn of(data: &Path) -> Reviews {
        Reviews { root: data.join(REVIEWS) }
    }

    pub(crate) fn folder(&self, id: RunId) -> ReviewFolder {
        ReviewFolder { files: RecordFolder::within(&self.root, id) }
    }

    pub(crate) fn create(&self, id: RunId) -> Result<ReviewFolder, RunsError> {
        let folder = self.folder(id);
        folder.files.create()?;
        Ok(folder)
    }

    /// The review of an id as a user types it; none if there is no such review.
    pub(crate) fn find(&self, typed: &str) -> Result<Option<(ReviewFolder, ReviewRecord)>, RunsError> {
        let files = RecordFolder::as_typed(&self.root, typed)?.filter(|files| files.root.is_dir());
        let Some(files) = files else { return Ok(None) };
        let folder = ReviewFolder { files };
        let record = folder.record()?;
        Ok(Some((folder, record)))
    }

    /// Locks out every other process that applies a finding, until it is dropped.
    pub(crate) fn alone(&self) -> Result<File, RunsError> {
        let failed = |source| RunsError::Folder { path: self.root.clone(), source };
        let folder = File::open(&self.root).map_err(failed)?;
        folder.lock().map_err(failed)?;
        Ok(folder)
    }

    /// The ids of all reviews, the newest first.
    pub(crate) fn ids(&self) -> Vec<RunId> {
        newest_first(&self.root)
    }

    /// Deletes the reviews of before a time that nobody works on, or only counts them. One stays whose end is still to be
    /// told to an agent.
    pub(crate) fn delete_old(&self, before: Instant, machine: &dyn Machine, dry_run: DryRun) -> Amount {
        let mut deleted = Amount::default();
        for folder in self.ids().into_iter().filter(|id| id.made() < before).map(|id| self.folder(id)) {
            let is_needed = |record: &ReviewRecord| match &record.ended {
                // One may be ended long after its process was killed.
                Some(end) => end.at >= before,
                None => !record.report.is_empty() || folder.is_worked_on(record, machine),
            };
            if folder.record().is_ok_and(|record| is_needed(&record)) {
                continue;
            }
            folders::delete(&folder.files.root, dry_run, &mut deleted);
        }
        deleted
    }
}

impl ReviewFolder {
    pub(crate) fn id(&self) -> RunId {
        self.files.id
    }

    pub(crate) fn record(&self) -> Result<ReviewRecord, RunsError> {
        self.files.value(RECORD)
    }

    pub(crate) fn keep(&self, record: &ReviewRecord) -> Result<(), RunsError> {
        self.files.keep(RECORD, record, Durability::Process)
    }

    /// The whole result of a review that has ended.
    pub(crate) fn result(&self) -> Result<Value, RunsError> {
        self.files.value(RESULT)
    }

    pub(crate) fn keep_result(&self, result: &impl serde::Serialize) -> Result<(), RunsError> {
        self.files.keep(RESULT, result, Durability::Process)
    }

    pub(crate) fn findings(&self) -> Result<Vec<Finding>, RunsError> {
        self.files.value(FINDINGS)
    }

    pub(crate) fn keep_findings(&self, findings: &[Finding]) -> Result<(), RunsError> {
        self.files.keep(FINDINGS, &findings, Durability::Process)
    }

    /// Git's objects while the difference is worked out.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.files.root.join("scratch")
    }

    /// Whether the process that works on it is gone, without a result.
    pub(crate) fn is_abandoned(&self, record: &ReviewRecord, machine: &dyn Machine) -> bool {
        record.ended.is_none() && !self.is_worked_on(record, machine)
    }

    /// Whether a process works on it.
    pub(crate) fn is_worked_on(&self, record: &ReviewRecord, machine: &dyn Machine) -> bool {
        alive::is_worked_on(&self.files.root, record.supervisor, machine)
    }

    /// Says that this process works on it, until the result is dropped.
    pub(crate) fn work_on(&self) -> Result<File, RunsError> {
        alive::hold(&self.files.root).map_err(|source| RunsError::Unreadable { id: self.id(), source })
    }
}
