//! What installs have changed: `installs/HARNESS-SCOPE-PLACE.json`, for this machine's user alone.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mesh::harness::{Edit, Scope};
use serde::{Deserialize, Serialize};

use super::ApplyError;
use crate::digest::Digest;
use crate::template::Surroundings;

/// What was changed in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// Whether the changes below have all been made. Written before the first and after the last.
    pub(crate) stage: JournalStage,
    /// One per file: from what it held before the first install to what the last one left.
    pub(crate) changes: Vec<Change>,
}

/// How far a journal's changes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JournalStage {
    /// They are being made; where nobody is at it, that one was killed.
    Open,
    /// They are made.
    Done,
}

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The manifest's name of its root.
    pub(crate) root: String,
    /// Its path from there.
    pub(crate) path: String,
    /// Where that was, for whoever asks when the root can no longer be worked out.
    #[serde(default)]
    pub(crate) file: Option<PathBuf>,
    /// What it held; none where it was absent.
    pub(crate) before: Option<String>,
    /// What it was left with; none where it was deleted.
    pub(crate) after: Option<String>,
    /// Whether what it held was executable.
    pub(crate) executable: bool,
    /// Somebody else changed it between two installs, so that what it held before is not known.
    #[serde(default)]
    pub(crate) touched: bool,
    /// Folders that had to be made for it, outermost first. Taken away again while they are empty.
    #[serde(default)]
    pub(crate) folders: Vec<PathBuf>,
}

/// What a file's content says of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileCondition {
    /// The change has not been made, or is undone.
    Before,
    /// The change is made, and nobody touched the file since.
    Ours,
    /// Somebody else has been at it.
    Other,
}

impl Journal {
    /// Where the journal of a harness and a scope lies.
    pub(crate) fn path(installs: &Path, harness: &str, scope: Scope, surroundings: &Surroundings) -> PathBuf {
        let (scope, place) = match scope {
            Scope::Project => ("project", surroundings.project.as_ref()),
            Scope::User => ("user", surroundings.home.as_ref()),
        };
        let place = place.map(|place| place.canonicalize().unwrap_or_else(|_| place.clone()));
        let digest = Digest::of(place.unwrap_or_default().as_os_str().as_encoded_bytes()).to_string();
        installs.join(format!("{harness}-{scope}-{}.json", &digest[..16]))
    }

    /// Reads it; an absent one has no changes.
    pub(crate) fn read(path: &Path) -> Result<Journal, ApplyError> {
        let wrong = |source| ApplyError::Journal { path: path.to_owned(), source };
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| wrong(error.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Journal { stage: JournalStage::Done, changes: Vec::new() })
            }
            Err(error) => Err(wrong(error)),
        }
    }

    /// Writes it, on disk before this returns.
    pub(crate) fn write(&self, path: &Path) -> Result<(), ApplyError> {
        let temporary = path.with_extension("tmp");
        let write = || -> std::io::Result<()> {
            let bytes = serde_json::to_vec_pretty(self)?;
            let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&temporary)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, path)?;
            match path.parent() {
                Some(folder) => fs::File::open(folder)?.sync_all(),
                None => Ok(()),
            }
        };
        write().map_err(|source| {
            // The journal itself is whole; half of a temporary file is of no use to anybody.
            let _ = fs::remove_file(&temporary);
            ApplyError::Journal { path: path.to_owned(), source }
        })
    }

    /// Writes it, or removes it where it has nothing to tell.
    pub(crate) fn write_or_remove(&self, path: &Path) -> Result<(), ApplyError> {
        if self.changes.is_empty() { Journal::remove(path) } else { self.write(path) }
    }

    /// Removes it.
    pub(crate) fn remove(path: &Path) -> Result<(), ApplyError> {
        match fs::remove_file(path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(ApplyError::Journal { path: path.to_owned(), source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// This journal after further changes. Where one continues an earlier change of the same file,
    /// undoing goes back to before both; where somebody else was in between, it cannot.
    pub(crate) fn grown(mut self, changes: Vec<Change>) -> Journal {
        for change in changes {
            match self.changes.iter_mut().find(|old| old.root == change.root && old.path == change.path) {
                Some(old) => {
                    old.touched |= old.after != change.before;
                    old.after = change.after;
                    for folder in change.folders {
                        if !old.folders.contains(&folder) {
                            old.folders.push(folder);
                        }
                    }
                }
                None => self.changes.push(change),
            }
        }
        self
    }

    /// Every folder that was made, innermost first.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self.changes.iter().flat_map(|change| change.folders.clone()).collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        folders.dedup();
        folders
    }
}

impl Change {
    /// What the file's content says of this change.
    pub(crate) fn standing(&self, content: Option<&str>) -> FileCondition {
        if content == self.after.as_deref() {
            FileCondition::Ours
        } else if content == self.before.as_deref() {
            FileCondition::Before
        } else {
            FileCondition::Other
        }
    }

    /// The edit that undoes it.
    pub(crate) fn undone(&self) -> Edit {
        Edit {
            root: self.root.clone(),
            path: self.path.clone(),
            before: self.after.clone(),
            after: self.before.clone(),
            executable: self.executable,
        }
    }
}
