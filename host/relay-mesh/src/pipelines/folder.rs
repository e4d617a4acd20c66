//! Where pipelines are kept: one folder each, readable by any process of the user.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mesh::DryRun;
use mesh::ports::data_files::Amount;
use mesh::ports::machine::{Instant, Machine};
use mesh::reviews::PipelineRecord;
use mesh::runs::{RunId, Workplace};
use processes::git::Git;
use serde_json::Value;
use store::Durability;

use super::changes::{holds_what_was_applied, remove_if_applied};
use crate::atomic_write;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::retention::folders;
use crate::runs::record_folder::{RECORD, RESULT, RecordFolder, newest_first};
use crate::runs::retention::holds_work;
use crate::runs::{RunsError, alive, changes};

/// The patch that was applied to the user's folder.
const APPLIED: &str = "applied.patch";
/// How long a pipeline may be without a record while it begins, in milliseconds.
const BEGINS: u64 = 3_600_000;

/// All pipelines of a data folder.
#[derive(Clone, Debug)]
pub(crate) struct Pipelines {
    root: PathBuf,
}

/// The files of one pipeline.
#[derive(Clone, Debug)]
pub(crate) struct PipelineFolder {
    pub(crate) files: RecordFolder,
}

impl Pipelines {
    pub(crate) fn of(data: &Path) -> Pipelines {
        Pipelines { root: data.join("pipelines") }
    }

    /// The pipeline of an id as a user types it.
    pub(crate) fn find(&self, typed: &str) -> Result<(PipelineFolder, PipelineRecord), CommandError> {
        let none = || Failure {
            what: format!("no pipeline has the id `{typed}`"),
            hint: Some("`relay-mesh pipeline review` starts one, and says its id".to_owned()),
            exit: Exit::NotFound,
            source: None,
        };
        Ok(self.look(typed)?.ok_or_else(none)?)
    }

    /// The same; none if there is no such pipeline.
    pub(crate) fn look(&self, typed: &str) -> Result<Option<(PipelineFolder, PipelineRecord)>, RunsError> {
        let files = RecordFolder::as_typed(&self.root, typed)?;
        let Some(files) = files.filter(RecordFolder::has_a_record) else { return Ok(None) };
        let folder = PipelineFolder { files };
        let record = folder.record()?;
        Ok(Some((folder, record)))
    }

    pub(crate) fn folder(&self, id: RunId) -> PipelineFolder {
        PipelineFolder { files: RecordFolder::within(&self.root, id) }
    }

    /// The ids of all pipelines, the newest first.
    pub(crate) fn ids(&self) -> Vec<RunId> {
        newest_first(&self.root)
    }

    /// Removes the worktrees of ended pipelines that hold nothing but what was applied. Returns how many are gone.
    pub(crate) async fn remove_empty_worktrees(&self, git: &Git) -> usize {
        let mut removed = 0;
        for folder in self.ids().into_iter().map(|id| self.folder(id)) {
            let Ok(record) = folder.record() else { continue };
            let Workplace::Worktree { folder: worktree, .. } = &record.workplace else { continue };
            if record.ended.is_some() && worktree.exists() {
                removed += usize::from(is_removed(git, &folder, &record).await);
            }
        }
        removed
    }

    /// Deletes the pipelines that ended before a time, or were left then, and whose worktree holds nothing that was not
    /// applied, or only counts them. Worktrees that hold work are added to `kept`.
    pub(crate) async fn delete_old(
        &self,
        git: &Git,
        before: Instant,
        machine: &dyn Machine,
        (dry_run, kept): (DryRun, &mut Vec<String>),
    ) -> Amount {
        let mut deleted = Amount::default();
        for folder in self.ids().into_iter().filter(|id| id.made() < before).map(|id| self.folder(id)) {
            match folder.record() {
                Ok(record) => {
                    if folder.is_worked_on(&record, machine) || folder.last_change(&record) >= Some(before) {
                        continue;
                    }
                    if let Some(worktree) = holds_work(git, &record.workplace).await
                        && !holds_what_was_applied(git, &folder, &record).await
                    {
                        kept.push(worktree);
                        continue;
                    }
                    if dry_run == DryRun::No && !is_removed(git, &folder, &record).await {
                        continue;
                    }
                }
                Err(_) if folder.files.has_a_record() || machine.now().since(folder.id().made()) < BEGINS => continue,
                // An earlier version made the worktree before the record.
                Err(_) if folder.worktree().exists() => {
                    kept.push(folder.worktree().display().to_string());
                    continue;
                }
                // Of a process that was killed while it made or deleted one.
                Err(_) => {}
            }
            folders::delete(&folder.files.root, dry_run, &mut deleted);
        }
        deleted
    }
}

/// Removes the worktree of a pipeline if nothing in it would be lost. Returns whether it is gone.
async fn is_removed(git: &Git, folder: &PipelineFolder, record: &PipelineRecord) -> bool {
    changes::remove_if_clean(git, &record.workplace).await || remove_if_applied(git, folder, record).await
}

impl PipelineFolder {
    pub(crate) fn id(&self) -> RunId {
        self.files.id
    }

    pub(crate) fn record(&self) -> Result<PipelineRecord, RunsError> {
        self.files.value(RECORD)
    }

    /// When it ended; of one that was left, when its record was last written.
    fn last_change(&self, record: &PipelineRecord) -> Option<Instant> {
        let written = || {
            let modified = fs::metadata(self.files.root.join(RECORD)).ok()?.modified().ok()?;
            let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            u64::try_from(since.as_millis()).ok().map(Instant)
        };
        record.ended.or_else(written)
    }

    /// Whether the process still lives that works on it.
    pub(crate) fn is_worked_on(&self, record: &PipelineRecord, machine: &dyn Machine) -> bool {
        record.ended.is_none() && alive::is_worked_on(&self.files.root, record.supervisor, machine)
    }

    pub(crate) fn keep(&self, record: &PipelineRecord) -> Result<(), RunsError> {
        self.files.keep(RECORD, record, Durability::Synced)
    }

    pub(crate) fn result(&self) -> Result<Value, RunsError> {
        self.files.value(RESULT)
    }

    pub(crate) fn keep_result(&self, result: &Value) -> Result<(), RunsError> {
        self.files.keep(RESULT, result, Durability::Synced)
    }

    /// The patch that was applied, or was about to be.
    pub(crate) fn applied(&self) -> Result<Vec<u8>, RunsError> {
        self.files.read(APPLIED)
    }

    pub(crate) fn keep_applied(&self, patch: &[u8]) -> Result<(), RunsError> {
        let written = atomic_write::replace(&self.files.root.join(APPLIED), patch, 0o600, Durability::Synced);
        written.map_err(|source| RunsError::Unwritable { id: self.id(), source })
    }

    pub(crate) fn worktree(&self) -> PathBuf {
        self.files.root.join("worktree")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.files.root.join("scratch")
    }

    /// Locks out every other process that would work on it.
    pub(crate) fn alone(&self) -> Result<File, CommandError> {
        let id = self.id();
        let folder = File::open(&self.files.root).map_err(|source| RunsError::Unreadable { id, source })?;
        folder.try_lock().map_err(|_| Failure {
            what: format!("another process works on pipeline {id}"),
            hint: Some("wait for it".to_owned()),
            exit: Exit::Held,
            source: None,
        })?;
        Ok(folder)
    }
}
