//! Where pipelines are kept, and how one begins.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use mesh::ports::machine::{Instant, Machine};
use mesh::reviews::PipelineRecord;
use mesh::runs::RunId;
use processes::git::Git;
use serde_json::Value;
use store::Durability;

use crate::atomic_write;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;
use crate::runs::{RunsError, changes};

/// All pipelines of a data folder.
#[derive(Clone, Debug)]
pub(crate) struct Pipelines {
    root: PathBuf,
}

/// The files of one pipeline.
#[derive(Clone, Debug)]
pub(crate) struct PipelineFolder {
    pub(crate) id: RunId,
    pub(crate) root: PathBuf,
}

impl Pipelines {
    pub(crate) fn of(data: &Path) -> Pipelines {
        Pipelines { root: data.join("pipelines") }
    }

    pub(crate) fn create(&self, id: RunId) -> Result<PipelineFolder, RunsError> {
        let folder = PipelineFolder { id, root: self.root.join(id.to_string()) };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder.root);
        made.map_err(|source| RunsError::Unwritable { id, source })?;
        Ok(folder)
    }

    /// The pipeline of an id as a user types it.
    pub(crate) fn find(&self, typed: &str) -> Result<(PipelineFolder, PipelineRecord), CommandError> {
        let id = match typed {
            "last" => self.ids().into_iter().next(),
            typed => typed.to_uppercase().parse().ok(),
        };
        let folder = id.map(|id| PipelineFolder { id, root: self.root.join(id.to_string()) });
        let Some(folder) = folder.filter(|folder| folder.root.join("record.json").exists()) else {
            return Err(Failure {
                what: format!("no pipeline has the id `{typed}`"),
                hint: Some("`relay-mesh pipeline review` starts one, and says its id".to_owned()),
                exit: Exit::NotFound,
                source: None,
            }
            .into());
        };
        let record = folder.record()?;
        Ok((folder, record))
    }

    fn ids(&self) -> Vec<RunId> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut ids: Vec<RunId> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids
    }

    /// Deletes the pipelines that ended before a time and whose worktree holds nothing that was not applied.
    pub(crate) async fn delete_old(&self, git: &Git, before: Instant, machine: &dyn Machine) {
        for id in self.ids().into_iter().filter(|id| id.made() < before) {
            let folder = PipelineFolder { id, root: self.root.join(id.to_string()) };
            let Ok(record) = folder.record() else { continue };
            if machine.lives(record.supervisor) || !changes::remove_if_clean(git, &record.workplace).await {
                continue;
            }
            if let Err(error) = fs::remove_dir_all(&folder.root) {
                tracing::debug!(%error, pipeline = %id, "the files of a pipeline stay");
            }
        }
    }
}

impl PipelineFolder {
    pub(crate) fn record(&self) -> Result<PipelineRecord, RunsError> {
        self.value("record.json")
    }

    pub(crate) fn keep(&self, record: &PipelineRecord) -> Result<(), RunsError> {
        self.write("record.json", record)
    }

    pub(crate) fn result(&self) -> Result<Value, RunsError> {
        self.value("result.json")
    }

    pub(crate) fn keep_result(&self, result: &Value) -> Result<(), RunsError> {
        self.write("result.json", result)
    }

    pub(crate) fn worktree(&self) -> PathBuf {
        self.root.join("worktree")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.root.join("scratch")
    }

    /// Locks out every other process that would work on it.
    pub(crate) fn alone(&self) -> Result<File, CommandError> {
        let id = self.id;
        let folder = File::open(&self.root).map_err(|source| RunsError::Unreadable { id, source })?;
        folder.try_lock().map_err(|_| Failure {
            what: format!("another process works on pipeline {id}"),
            hint: Some("wait for it".to_owned()),
            exit: Exit::Held,
            source: None,
        })?;
        Ok(folder)
    }

    fn value<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, RunsError> {
        let unreadable = |source| RunsError::Unreadable { id: self.id, source };
        let bytes = fs::read(self.root.join(name)).map_err(unreadable)?;
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.into()))
    }

    fn write(&self, name: &str, value: &impl serde::Serialize) -> Result<(), RunsError> {
        let unwritable = |source| RunsError::Unwritable { id: self.id, source };
        let bytes = serde_json::to_vec(value).map_err(|error| unwritable(error.into()))?;
        atomic_write::replace(&self.root.join(name), &bytes, 0o600, Durability::Synced).map_err(unwritable)
    }
}
