//! Where a project's settings are that have an effect in the current folder: here, or in another folder of the
//! repository, if the harness looks there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adapters::manifest::Reaches;
use mesh::ports::harness::{Harness, HarnessError, Harnesses as _, Scope};

use crate::context::Context;
use crate::git_checkout;
use crate::setup::installed::Installed;
use crate::setup::request::{Installation, ServerUrl};
use crate::setup::survey::{self, ScopeSurvey};

/// How far a harness is set up in one scope, and where.
pub(crate) struct Looked {
    pub(crate) found: ScopeSurvey,
    /// If it is set up for another folder than the current one.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// A folder whose settings have an effect here.
pub(crate) struct Elsewhere {
    /// The folder that it is set up for.
    pub(crate) set_up_in: PathBuf,
    /// The harness in the folder where its settings are to be checked.
    pub(crate) harness: Arc<dyn Harness>,
}

impl Looked {
    pub(crate) fn here(found: ScopeSurvey) -> Looked {
        Looked { found, elsewhere: None }
    }
}

/// Looks in the current folder, and then where else the harness would find a project's settings.
pub(crate) async fn look(
    context: &Context,
    harness: &Arc<dyn Harness>,
    reaches: Reaches,
    installation: &Installation,
    host: &ServerUrl,
) -> Result<Looked, HarnessError> {
    let here = survey::look(harness.as_ref(), Scope::Project, installation, host).await?;
    if matches!(here.installed, Installed::Yes | Installed::ByHand) {
        return Ok(Looked::here(here));
    }
    for place in further(&context.workdir, reaches) {
        let Some(theirs) = harness_in(context, harness, &place.set_up_in).await? else { continue };
        let found = survey::look(theirs.as_ref(), Scope::Project, installation, host).await?;
        if !found.is_set_up() {
            continue;
        }
        let checked = match place.checked_in == place.set_up_in {
            true => Some(theirs),
            false => harness_in(context, harness, &place.checked_in).await?,
        };
        if let Some(harness) = checked {
            return Ok(Looked { found, elsewhere: Some(Elsewhere { set_up_in: place.set_up_in, harness }) });
        }
    }
    Ok(Looked::here(here))
}

/// The same harness, for another project.
async fn harness_in(
    context: &Context,
    harness: &Arc<dyn Harness>,
    folder: &Path,
) -> Result<Option<Arc<dyn Harness>>, HarnessError> {
    let there = context.at(folder.to_owned()).open().map_err(|error| HarnessError::Failed(error.to_string()))?;
    there.adapters.get(&harness.about().harness).await
}

/// A folder that may be set up, and the one in whose place its settings are checked.
#[derive(Debug, PartialEq, Eq)]
struct SettingsFolder {
    set_up_in: PathBuf,
    checked_in: PathBuf,
}

/// The folders beside the current one whose settings would have an effect in it, nearest first.
fn further(workdir: &Path, reaches: Reaches) -> Vec<SettingsFolder> {
    let Some(top) = git_checkout::top_of(workdir) else { return Vec::new() };
    match reaches {
        Reaches::Folder => Vec::new(),
        Reaches::Subfolders => {
            let above = workdir.ancestors().skip(1).take_while(|folder| folder.starts_with(&top));
            above.map(|folder| SettingsFolder { set_up_in: folder.to_owned(), checked_in: folder.to_owned() }).collect()
        }
        // What is not committed is in the main worktree, and what is committed in this one.
        Reaches::Repository => {
            let main = git_checkout::main_worktree(workdir).filter(|main| main != workdir);
            main.map(|main| SettingsFolder { set_up_in: main, checked_in: top }).into_iter().collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clone with a linked worktree beside it, both with the folders `sub/deep`.
    fn clone() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("its path");
        for path in ["main/.git/worktrees/linked", "main/sub/deep", "linked/sub/deep", "loose"] {
            std::fs::create_dir_all(root.join(path)).expect("made");
        }
        let write = |path: &str, text: &str| std::fs::write(root.join(path), text).expect("written");
        write("main/.git/HEAD", "ref: refs/heads/main\n");
        write("main/.git/worktrees/linked/HEAD", "ref: refs/heads/linked\n");
        write("main/.git/worktrees/linked/commondir", "../..\n");
        write("linked/.git", &format!("gitdir: {}\n", root.join("main/.git/worktrees/linked").display()));
        (folder, root)
    }

    #[test]
    fn a_harness_is_looked_for_where_it_looks_itself() {
        let (_folder, root) = clone();
        let check = |workdir: &str, reaches, expected: &str| {
            let places = further(&root.join(workdir), reaches).into_iter().map(|place| {
                let short = |path: &Path| path.strip_prefix(&root).expect("inside").display().to_string();
                match place.checked_in == place.set_up_in {
                    true => short(&place.set_up_in),
                    false => format!("{} in place of {}", short(&place.checked_in), short(&place.set_up_in)),
                }
            });
            assert_eq!(places.collect::<Vec<_>>().join(", "), expected, "{workdir}, {reaches:?}");
        };
        check("main/sub/deep", Reaches::Folder, "");
        check("main/sub/deep", Reaches::Subfolders, "main/sub, main");
        check("main", Reaches::Subfolders, "");
        check("linked/sub", Reaches::Subfolders, "linked");
        check("loose", Reaches::Subfolders, "");
        check("main/sub/deep", Reaches::Repository, "main");
        check("main", Reaches::Repository, "");
        check("linked/sub/deep", Reaches::Repository, "linked in place of main");
        check("loose", Reaches::Repository, "");
    }
}
