//! Applying a patch to the user's folder, all of it or nothing. Git checks first that all of it fits, but then writes file
//! by file; so what was there is noted before, and the next command takes back what a killed one had begun.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use mesh::runs::RunId;
use processes::git::{Git, GitError, Tree};
use serde::{Deserialize, Serialize};
use store::Durability;

use crate::atomic_write;
use crate::errors::CommandError;

/// The folder in the data folder with what is being applied, by the id of the run or the pipeline.
const APPLYING: &str = "applying";
/// The file with the intent. The objects of the tree from before lie beside it.
const INTENT: &str = "intent.json";

/// What is about to be applied.
#[derive(Serialize, Deserialize)]
struct Intent {
    /// The top of the working copy.
    top: PathBuf,
    /// Its contents before.
    before: String,
    /// The files that the patch changes.
    paths: Vec<String>,
}

/// A patch that was applied. Until [`Applied::was_noted`], a command that comes later takes it back.
pub(crate) struct Applied {
    root: PathBuf,
    /// Locks out every other process that would apply or take back.
    _alone: File,
}

impl Applied {
    /// The record of the run or the pipeline says now that it was applied.
    pub(crate) fn was_noted(self) {
        forget(&self.root);
    }
}

/// Applies a patch that fits. If it fails half-way, all of it is taken back.
pub(crate) async fn apply(
    git: &Git,
    data: &Path,
    id: RunId,
    top: &Path,
    patch: &[u8],
) -> Result<Applied, CommandError> {
    let root = data.join(APPLYING).join(id.to_string());
    DirBuilder::new().recursive(true).mode(0o700).create(&root).map_err(GitError::File)?;
    let alone = File::open(&root).map_err(GitError::File)?;
    alone.lock().map_err(GitError::File)?;
    let before = git.tree(top, &root).await?.0;
    let intent = Intent { top: top.to_owned(), before, paths: git.paths_of(top, patch).await? };
    let bytes = serde_json::to_vec(&intent).map_err(|error| GitError::File(error.into()))?;
    atomic_write::replace(&root.join(INTENT), &bytes, 0o600, Durability::Synced).map_err(GitError::File)?;
    match git.apply(top, patch).await {
        Ok(()) => Ok(Applied { root, _alone: alone }),
        Err(error) => {
            take_back(git, &root, &intent).await?;
            forget(&root);
            Err(error.into())
        }
    }
}

/// Takes back what killed commands had begun to apply, unless the record says that all of it was. Returns what was taken
/// back, each with its folder. What cannot be taken back now is tried again by the next command.
pub(crate) async fn settle(git: &Git, data: &Path, is_applied: impl Fn(RunId) -> bool) -> Vec<(RunId, PathBuf)> {
    let mut taken_back = Vec::new();
    for entry in fs::read_dir(data.join(APPLYING)).into_iter().flatten().flatten() {
        let (root, id) = (entry.path(), entry.file_name().to_string_lossy().parse::<RunId>());
        let (Ok(id), Ok(lock)) = (id, File::open(&root)) else { continue };
        if lock.try_lock().is_err() {
            // Another process applies it.
            continue;
        }
        let intent = fs::read(root.join(INTENT)).ok().and_then(|bytes| serde_json::from_slice::<Intent>(&bytes).ok());
        if let Some(intent) = intent.filter(|_| !is_applied(id)) {
            match take_back(git, &root, &intent).await {
                Ok(true) => taken_back.push((id, intent.top)),
                Ok(false) => {}
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, %id, "what was applied half-way could not be taken back");
                    continue;
                }
            }
        }
        forget(&root);
    }
    taken_back
}

/// Makes the files of a patch what they were before. Returns whether any was not.
async fn take_back(git: &Git, root: &Path, intent: &Intent) -> Result<bool, GitError> {
    let (before, now) = (Tree(intent.before.clone()), git.tree(&intent.top, root).await?);
    let back = git.changes_of(&intent.top, root, (&now, &before), &intent.paths).await?.patch;
    if back.is_empty() {
        return Ok(false);
    }
    git.apply(&intent.top, &back).await?;
    Ok(true)
}

fn forget(root: &Path) {
    match fs::remove_dir_all(root) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, "the note of what was applied stays");
        }
        Ok(()) | Err(_) => {}
    }
}
