//! What installs have changed: `installs/HARNESS-SCOPE-PLACE.json`, readable by this machine's user alone.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use mesh::ports::harness::{Edit, Scope};
use serde::{Deserialize, Serialize};

use super::ApplyError;
use crate::digest::Digest;
use crate::template::Surroundings;
use crate::unix::OpenOptionsExt;

/// The changes of one harness in one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// Whether all changes below have been made. Written before the first change and after the last.
    pub(crate) stage: JournalStage,
    /// One per file: from its content before the first install to its content after the last.
    pub(crate) changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JournalStage {
    /// They are being made. If no process holds the lock, that install was killed.
    Open,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    /// The root's name in the manifest.
    pub(crate) root: String,
    /// Its path under the root.
    pub(crate) path: String,
    /// The absolute path at that time, for display if the root can no longer be worked out.
    #[serde(default)]
    pub(crate) file: Option<PathBuf>,
    /// Its content; none if it was absent.
    pub(crate) before: Option<String>,
    /// Its content after the install; none if it was deleted.
    pub(crate) after: Option<String>,
    /// Whether the file was executable.
    pub(crate) executable: bool,
    /// Another program or the user changed it between two installs, so its original content is not known.
    #[serde(default)]
    pub(crate) touched: bool,
    /// Folders created for it, outermost first. Removed again if they are empty.
    #[serde(default)]
    pub(crate) folders: Vec<PathBuf>,
}

/// The state of a file relative to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileCondition {
    /// The change has not been made, or is undone.
    Before,
    /// The change is made, and the file is unchanged since.
    Ours,
    /// Another program or the user has changed the file.
    Other,
}

impl Journal {
    /// The path of the journal of a harness and a scope.
    pub(crate) fn path(installs: &Path, harness: &str, scope: Scope, surroundings: &Surroundings) -> PathBuf {
        let place = match scope {
            Scope::Project => surroundings.project.as_deref(),
            Scope::User => surroundings.home.as_deref(),
        };
        Journal::path_for(installs, harness, scope, place.unwrap_or(Path::new("")))
    }

    /// The path of the journal of a harness in this project or this home.
    pub(crate) fn path_for(installs: &Path, harness: &str, scope: Scope, place: &Path) -> PathBuf {
        let scope = match scope {
            Scope::Project => "project",
            Scope::User => "user",
        };
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let digest = Digest::of(place.as_os_str().as_encoded_bytes()).to_string();
        installs.join(format!("{harness}-{scope}-{}.json", &digest[..16]))
    }

    /// An absent journal has no changes.
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

    /// Writes it; synced to disk before this returns.
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
            // The journal itself is whole; half of a temporary file is useless.
            let _ = fs::remove_file(&temporary);
            ApplyError::Journal { path: path.to_owned(), source }
        })
    }

    /// Writes it, or removes it if it has no changes.
    pub(crate) fn write_or_remove(&self, path: &Path) -> Result<(), ApplyError> {
        if self.changes.is_empty() { Journal::remove(path) } else { self.write(path) }
    }

    pub(crate) fn remove(path: &Path) -> Result<(), ApplyError> {
        match fs::remove_file(path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(ApplyError::Journal { path: path.to_owned(), source })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// This journal with further changes added. If one continues an earlier change of the same file, undoing goes back
    /// to before both; if another program changed the file in between, it cannot.
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

    /// The project's folder, by a change of a file in it.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        let of = |change: &Change| {
            let file = change.file.as_deref().filter(|_| change.root == "project")?;
            let below = Path::new(&change.path).components().count();
            file.ends_with(&change.path).then(|| file.ancestors().nth(below).map(Path::to_owned))?
        };
        self.changes.iter().find_map(of)
    }

    /// Every created folder, innermost first.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self.changes.iter().flat_map(|change| change.folders.clone()).collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        folders.dedup();
        folders
    }
}

impl Change {
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
