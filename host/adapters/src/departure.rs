//! What a removed adapter leaves behind: settings of harnesses that it changed, and its stored state. And where each
//! adapter is set up, so that all of them can be taken out.

use std::fs;
use std::path::PathBuf;

use mesh::ports::harness::Scope;
use store::{Durability, StoreError, SwapError};

use crate::adapters::Adapters;
use crate::apply::ApplyError;
use crate::apply::journal::Journal;
use crate::host_functions::state::home_of;
use crate::manifest::is_name;

/// A file that may still contain changes of an adapter's install.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The scope of the install.
    pub scope: Scope,
    pub file: PathBuf,
}

/// Where an adapter is set up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetUp {
    /// The adapter.
    pub adapter: String,
    /// The project's folder, or the home. None if the folder is not known any more.
    pub folder: Option<PathBuf>,
    pub scope: Scope,
    /// The changed files that are there.
    pub files: Vec<PathBuf>,
}

impl Adapters {
    /// Where installs of this data folder changed files that are there still, sorted by adapter; and why of some
    /// installs that cannot be told.
    pub fn all_set_up(&self) -> (Vec<SetUp>, Vec<ApplyError>) {
        let (mut all, mut unreadable) = (Vec::new(), Vec::new());
        for (path, adapter, scope) in self.journals() {
            let journal = match Journal::read(&path) {
                Ok(journal) => journal,
                Err(error) => {
                    unreadable.push(error);
                    continue;
                }
            };
            let folder = match scope {
                Scope::User => self.surroundings().home.clone(),
                Scope::Project => journal.project(),
            };
            let is_of = |folder: &PathBuf| Journal::path_for(self.installs(), &adapter, scope, folder) == path;
            let folder = folder.filter(is_of).filter(|folder| folder.is_dir());
            let files: Vec<PathBuf> = files_of(journal).collect();
            if !files.is_empty() {
                all.push(SetUp { adapter, folder, scope, files });
            }
        }
        all.sort();
        (all, unreadable)
    }

    /// Files that installs of an adapter changed and that no uninstall has restored, in any project. Files that no
    /// longer exist are left out.
    pub fn leftovers(&self, name: &str) -> Result<Vec<Leftover>, ApplyError> {
        let mut leftovers = Vec::new();
        for (path, _, scope) in self.journals().filter(|(_, adapter, _)| adapter == name) {
            leftovers.extend(files_of(Journal::read(&path)?).map(|file| Leftover { scope, file }));
        }
        leftovers.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(leftovers)
    }

    /// Every journal, with its adapter and its scope.
    fn journals(&self) -> impl Iterator<Item = (PathBuf, String, Scope)> {
        // No folder means that nothing was ever installed.
        let entries = fs::read_dir(self.installs()).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let path = entry.path();
            let (adapter, scope) = of_journal(path.file_name()?.to_str()?)?;
            let adapter = adapter.to_owned();
            Some((path, adapter, scope))
        })
    }

    /// Deletes an adapter's stored state, its record of faults, and the count of what it used.
    pub async fn forget(&self, name: &str) -> Result<(), StoreError> {
        if let Some(rates) = self.settings.rates.as_ref().filter(|_| is_name(name)) {
            // There is none if it never used anything.
            let _absent = fs::remove_file(rates.join(name));
        }
        let Ok(home) = home_of(name) else { return Ok(()) };
        let store = &self.settings.store;
        for key in store.list(&home).await? {
            // A concurrent call may write it again, hence several tries.
            for _ in 0..8 {
                let Some(versioned) = store.get(&key).await? else { break };
                match store.swap(&key, Some(versioned.revision), None, Durability::Process).await {
                    Ok(_) => break,
                    Err(SwapError::Changed { .. }) => {}
                    Err(SwapError::Store(error)) => return Err(error),
                }
            }
        }
        Ok(())
    }
}

/// The files that an install changed and that are there.
fn files_of(journal: Journal) -> impl Iterator<Item = PathBuf> {
    journal.changes.into_iter().filter_map(|change| change.file).filter(|file| file.exists())
}

/// The adapter and the scope in a journal's file name: `NAME-SCOPE-PLACE.json`. A name may contain dashes, and be a
/// prefix of another.
fn of_journal(file: &str) -> Option<(&str, Scope)> {
    let mut parts = file.strip_suffix(".json")?.rsplitn(3, '-').skip(1);
    let (scope, adapter) = (parts.next()?, parts.next()?);
    match scope {
        "project" => Some((adapter, Scope::Project)),
        "user" => Some((adapter, Scope::User)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_belongs_to_the_adapter_of_its_whole_name() {
        for (file, name, expected) in [
            ("codex-user-0123456789abcdef.json", "codex", Some(Scope::User)),
            ("codex-cli-project-0123456789abcdef.json", "codex-cli", Some(Scope::Project)),
            ("codex-cli-project-0123456789abcdef.json", "codex", None),
            ("codex-user-0123456789abcdef.tmp", "codex", None),
            ("lock", "codex", None),
        ] {
            let scope = of_journal(file).filter(|(adapter, _)| *adapter == name).map(|(_, scope)| scope);
            assert_eq!(scope, expected, "{file} of {name}");
        }
    }
}
