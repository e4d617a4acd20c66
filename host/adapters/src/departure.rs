//! What a removed adapter leaves behind: settings of harnesses that it changed, and its stored state.

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

impl Adapters {
    /// Files that installs of an adapter changed and that no uninstall has restored, in any project. Files that no
    /// longer exist are left out.
    pub fn leftovers(&self, name: &str) -> Result<Vec<Leftover>, ApplyError> {
        let mut leftovers = Vec::new();
        // No folder means that nothing was ever installed.
        for entry in fs::read_dir(self.installs()).into_iter().flatten().flatten() {
            let path = entry.path();
            let Some(scope) = path.file_name().and_then(|file| scope_of(file.to_str()?, name)) else { continue };
            let changes = Journal::read(&path)?.changes;
            let files = changes.into_iter().filter_map(|change| change.file).filter(|file| file.exists());
            leftovers.extend(files.map(|file| Leftover { scope, file }));
        }
        leftovers.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(leftovers)
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

/// The scope in a journal's file name, if it is this adapter's: `NAME-SCOPE-PLACE.json`. A name may contain dashes, and
/// be a prefix of another.
fn scope_of(file: &str, name: &str) -> Option<Scope> {
    let mut parts = file.strip_suffix(".json")?.rsplitn(3, '-').skip(1);
    let (scope, harness) = (parts.next()?, parts.next()?);
    match scope {
        "project" if harness == name => Some(Scope::Project),
        "user" if harness == name => Some(Scope::User),
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
            assert_eq!(scope_of(file, name), expected, "{file} of {name}");
        }
    }
}
