//! Applying a patch to the user's folder, all of it or nothing. Git checks first that all of it fits, but then writes file
//! by file; so what was there is noted before, and the next command takes back what a killed one had begun.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mesh::runs::RunId;
use processes::git::{Git, GitError, Tree};
use serde::{Deserialize, Serialize};
use store::Durability;

use crate::atomic_write;
use crate::errors::CommandError;
use crate::unix;

/// The folder in the data folder with what is being applied, by the id of the run or the pipeline.
const APPLYING: &str = "applying";
/// How long after the intent Git may still have written a file of the patch.
const GIT_WRITES: Duration = Duration::from_secs(60);
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
    unix::make_private_folder(&root).map_err(GitError::File)?;
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

/// What became of what a killed command had begun to apply.
pub(crate) struct HalfApplied {
    pub(crate) id: RunId,
    /// The top of the working copy.
    pub(crate) top: PathBuf,
    /// A file that was changed since, so that all was left as it is; none if it was taken back.
    pub(crate) changed_since: Option<String>,
}

/// Takes back what killed commands had begun to apply, unless the record says that all of it was, or somebody has worked
/// on its files since. What cannot be taken back now is tried again by the next command.
pub(crate) async fn settle(git: &Git, data: &Path, is_applied: impl Fn(RunId) -> bool) -> Vec<HalfApplied> {
    let mut settled = Vec::new();
    for entry in fs::read_dir(data.join(APPLYING)).into_iter().flatten().flatten() {
        let (root, id) = (entry.path(), entry.file_name().to_string_lossy().parse::<RunId>());
        let (Ok(id), Ok(lock)) = (id, File::open(&root)) else { continue };
        if lock.try_lock().is_err() {
            // Another process applies it.
            continue;
        }
        let intent = fs::read(root.join(INTENT)).ok().and_then(|bytes| serde_json::from_slice::<Intent>(&bytes).ok());
        if let Some(intent) = intent.filter(|_| !is_applied(id)) {
            let changed_since = intent.changed_since(&root);
            let was_changed = changed_since.is_some();
            let outcome = if was_changed { Ok(true) } else { take_back(git, &root, &intent).await };
            match outcome {
                Ok(true) => settled.push(HalfApplied { id, top: intent.top, changed_since }),
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
    settled
}

impl Intent {
    /// A file of the patch that was written later than Git would have.
    fn changed_since(&self, root: &Path) -> Option<String> {
        let written = |path: &Path| fs::symlink_metadata(path).and_then(|about| about.modified()).ok();
        let last = written(&root.join(INTENT))? + GIT_WRITES;
        self.paths.iter().find(|path| written(&self.top.join(path)).is_some_and(|at| at > last)).cloned()
    }
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
