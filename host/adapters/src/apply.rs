//! Applies the plans that adapters make: all of it or nothing, under the roots that the manifest declares, and with a
//! journal by which it can be undone byte for byte.
//!
//! First every file is compared with what the plan expects it to hold; if one differs, nothing is written. Then the
//! journal is written, then the files, each by a temporary file beside it and a rename that keeps its mode. Each is
//! compared once more right before its rename, because a harness writes its settings too. After a failure, the files
//! already changed are restored. An install that is killed leaves an open journal: the next one sees by each file's
//! content which changes were made, and continues from there. Two installs at once wait for one another, and the second
//! finds that its plan is out of date.
//!
//! A settings file that is a symbolic link is changed at its target and stays a link, if the root's manifest allows
//! links to there ([`crate::manifest::Links`]).

pub(crate) mod journal;
mod perform;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use mesh::ports::harness::{Action, Edit, Plan, Scope};

use crate::adapters::Adapters;
use crate::grants::{Denied, Grants};
use crate::roots::{OpenRoot, RootError, hint_of_link};
use crate::template::Surroundings;
use crate::unix::{self, OpenOptionsExt};
use journal::{Change, FileCondition, Journal, JournalStage};
use perform::Target;

/// Why a plan was not applied. Unless it says so, every file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// No adapter has this name.
    #[error("no adapter is named `{0}`")]
    Unknown(String),
    /// The adapter cannot be used.
    #[error(transparent)]
    Adapter(#[from] mesh::ports::harness::HarnessError),
    /// The adapter may not change files there.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A root or a path under it cannot be used.
    #[error(transparent)]
    Root(#[from] RootError),
    /// A file does not hold what the plan expects.
    #[error("`{0}` has changed since the plan was made")]
    Changed(PathBuf),
    /// A file is read-only, probably on purpose.
    #[error("`{0}` is read-only")]
    ReadOnly(PathBuf),
    /// The plan changes one file twice: a defect of the adapter.
    #[error("the plan changes `{0}` twice")]
    Twice(PathBuf),
    /// A file could not be written.
    #[error("could not {doing} `{path}`")]
    Write {
        /// What was being done.
        doing: &'static str,
        path: PathBuf,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A file could not be written, and earlier changes could not be restored.
    #[error("could not write `{path}`, and these files are still changed: {left:?}")]
    Stranded {
        /// The file that could not be written.
        path: PathBuf,
        /// The files that are still changed.
        left: Vec<PathBuf>,
        /// The operating system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The journal cannot be read or written.
    #[error("could not use the journal `{path}`")]
    Journal {
        /// The journal.
        path: PathBuf,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
}

impl ApplyError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ApplyError::Unknown(_) => Some("run `relay-mesh harnesses` to see which there are".to_owned()),
            ApplyError::Changed(_) => Some("run the same command again: it reads the file again".to_owned()),
            ApplyError::ReadOnly(path) => Some(format!("make it writable by `chmod u+w {}`", path.display())),
            ApplyError::Write { source, .. } | ApplyError::Journal { source, .. } => match source.kind() {
                std::io::ErrorKind::StorageFull => Some("make room on the disk and run it again".to_owned()),
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    Some("make the folder writable for you, or choose another by `--project`".to_owned())
                }
                _ => None,
            },
            ApplyError::Stranded { .. } => Some("run `relay-mesh uninstall` once the cause is fixed".to_owned()),
            ApplyError::Root(error @ RootError::Escapes { .. }) => hint_of_link(&error.to_string()),
            ApplyError::Adapter(_) | ApplyError::Denied(_) | ApplyError::Root(_) | ApplyError::Twice(_) => None,
        }
    }
}

/// What applying a plan did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The files that were written or deleted, in the plan's order.
    pub files: Vec<PathBuf>,
}

impl Adapters {
    /// The path, for display, of the file that an edit of a harness's plan changes.
    pub fn locate(&self, harness: &str, edit: &Edit) -> Result<PathBuf, ApplyError> {
        let (_, grants) = self.describe(harness)?.ok_or_else(|| ApplyError::Unknown(harness.to_owned()))?;
        let root = grants.editable_root(&edit.root)?;
        let path = crate::template::fill_path(&root.path, self.surroundings())
            .map_err(|source| RootError::Unknown { root: edit.root.clone(), source })?;
        Ok(path.join(&edit.path))
    }

    /// Applies a plan that installs or uninstalls a harness: all of it or nothing. Blocks.
    pub fn apply(&self, harness: &str, action: Action, scope: Scope, plan: &Plan) -> Result<Applied, ApplyError> {
        let target = self.scope_of(harness, scope)?;
        let _lock = target.lock()?;
        target.apply(action, plan)
    }

    /// The plan that uninstalls a harness: files unchanged since the install get back their earlier content, byte for
    /// byte; the others follow the adapter's proposal. Blocks.
    pub fn removal(&self, harness: &str, scope: Scope, proposed: Plan) -> Result<Plan, ApplyError> {
        let target = self.scope_of(harness, scope)?;
        let _lock = target.lock()?;
        target.removal(proposed)
    }

    fn scope_of(&self, harness: &str, scope: Scope) -> Result<HarnessScope<'_>, ApplyError> {
        let (manifest, grants) = self.describe(harness)?.ok_or_else(|| ApplyError::Unknown(harness.to_owned()))?;
        let surroundings = self.surroundings();
        let journal = Journal::path(self.installs(), &manifest.name, scope, surroundings);
        Ok(HarnessScope { grants, surroundings, journal })
    }
}

/// One harness in one scope: its grants and its journal.
struct HarnessScope<'a> {
    grants: Grants,
    surroundings: &'a Surroundings,
    journal: PathBuf,
}

impl HarnessScope<'_> {
    /// One install at a time per data folder.
    fn lock(&self) -> Result<File, ApplyError> {
        let path = self.journal.with_file_name("lock");
        let io = |source| ApplyError::Journal { path: path.clone(), source };
        if let Some(folder) = path.parent() {
            unix::make_private_folder(folder).map_err(io)?;
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(io)?;
        file.lock().map_err(io)?;
        Ok(file)
    }

    fn apply(&self, action: Action, plan: &Plan) -> Result<Applied, ApplyError> {
        let mut made = MadeFolders::default();
        let targets = self.targets(&plan.edits, &mut made)?;
        let old = self.settled()?;
        let mut changes: Vec<Change> = targets.iter().map(Target::change).collect();
        if let Some(first) = changes.first_mut() {
            first.folders.splice(0..0, made.0.iter().cloned());
        }
        let mut open = match action {
            Action::Install => old.clone().grown(changes),
            Action::Remove => old.clone(),
        };
        open.stage = JournalStage::Open;
        open.write(&self.journal)?;
        if let Err(error) = perform::all(&targets) {
            // The changes have been undone, so the old journal is true again.
            old.write_or_remove(&self.journal)?;
            return Err(error);
        }
        made.keep();
        match action {
            Action::Install => {
                open.stage = JournalStage::Done;
                open.write_or_remove(&self.journal)?;
            }
            Action::Remove => {
                perform::remove_folders(&open.folders());
                Journal::remove(&self.journal)?;
            }
        }
        Ok(Applied { files: targets.into_iter().map(|target| target.shown).collect() })
    }

    fn removal(&self, proposed: Plan) -> Result<Plan, ApplyError> {
        let journal = self.settled()?;
        let mut edits: BTreeMap<(String, String), Edit> =
            proposed.edits.into_iter().map(|edit| ((edit.root.clone(), edit.path.clone()), edit)).collect();
        for change in &journal.changes {
            let key = (change.root.clone(), change.path.clone());
            match change.standing(self.content(change)?.as_deref()) {
                FileCondition::Ours if !change.touched => {
                    edits.insert(key, change.undone());
                }
                // As it was before the install: nothing to undo.
                FileCondition::Before => {
                    edits.remove(&key);
                }
                FileCondition::Ours | FileCondition::Other => {}
            }
        }
        Ok(Plan { edits: edits.into_values().collect(), next_steps: proposed.next_steps })
    }

    /// The journal, after a killed install has been accounted for.
    fn settled(&self) -> Result<Journal, ApplyError> {
        let journal = Journal::read(&self.journal)?;
        match journal.stage {
            JournalStage::Done => Ok(journal),
            JournalStage::Open => {
                let mut changes = Vec::new();
                for change in journal.changes {
                    match change.standing(self.content(&change)?.as_deref()) {
                        FileCondition::Before => {}
                        FileCondition::Ours => changes.push(change),
                        FileCondition::Other => changes.push(Change { touched: true, ..change }),
                    }
                }
                Ok(Journal { stage: JournalStage::Done, changes })
            }
        }
    }

    /// The current content of a file in the journal; none if it is absent or not text.
    fn content(&self, change: &Change) -> Result<Option<String>, ApplyError> {
        let root = self.grants.editable_root(&change.root)?;
        let root = match OpenRoot::open(&change.root, root, self.surroundings, &self.grants.asker()) {
            Ok(root) => root,
            Err(RootError::Missing(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let located = root.locate(&change.path)?;
        perform::read(&located, &root.path.join(&change.path))
            .map(|bytes| bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// Every file of a plan, checked against what the plan expects of it. Missing roots are created, because a file can
    /// only be looked up in a folder.
    fn targets(&self, edits: &[Edit], made: &mut MadeFolders) -> Result<Vec<Target>, ApplyError> {
        let mut roots: BTreeMap<&str, OpenRoot> = BTreeMap::new();
        let mut targets: Vec<Target> = Vec::new();
        for edit in edits {
            let root = match roots.get(edit.root.as_str()) {
                Some(root) => root.clone(),
                None => {
                    let asked = self.grants.editable_root(&edit.root)?;
                    let root = match OpenRoot::open(&edit.root, asked, self.surroundings, &self.grants.asker()) {
                        Err(RootError::Missing(path)) if edit.after.is_some() => {
                            made.make(&path)?;
                            OpenRoot::open(&edit.root, asked, self.surroundings, &self.grants.asker())?
                        }
                        opened => opened?,
                    };
                    roots.entry(&edit.root).or_insert(root).clone()
                }
            };
            let shown = root.path.join(&edit.path);
            if Path::new(&edit.path).file_name().is_none() {
                return Err(RootError::Outside { root: root.name, path: edit.path.clone() }.into());
            }
            let target = Target::check(root.locate(&edit.path)?, shown, edit)?;
            if targets.iter().any(|other| other.same_file(&target)) {
                return Err(ApplyError::Twice(target.shown));
            }
            targets.push(target);
        }
        Ok(targets)
    }
}

/// Folders created while a plan was checked. Removed again unless the plan is applied.
#[derive(Default)]
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    fn make(&mut self, folder: &Path) -> Result<(), ApplyError> {
        let missing: Vec<PathBuf> =
            folder.ancestors().take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        for folder in missing.into_iter().rev() {
            std::fs::create_dir(&folder).map_err(|source| ApplyError::Write {
                doing: "make the folder",
                path: folder.clone(),
                source,
            })?;
            self.0.push(folder);
        }
        Ok(())
    }

    /// Keeps the folders: the plan is applied.
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        self.0.reverse();
        perform::remove_folders(&self.0);
    }
}

#[cfg(test)]
mod tests;
