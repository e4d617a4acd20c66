//! The flags `--project` and `--user`, and the folder they mean.

use std::path::{Path, PathBuf};

use mesh::ports::harness::Scope;

use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

// No doc comment: clap would make it the help of a command that has none of its own.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct ScopeArgs {
    /// The settings of the project in this folder, which is the default with the current folder
    #[arg(long, value_name = "DIR", alias = "project-dir", conflicts_with = "user")]
    project: Option<PathBuf>,
    /// Your own settings, for every project
    #[arg(long, alias = "global")]
    user: bool,
}

impl ScopeArgs {
    pub(crate) fn scope(&self) -> Scope {
        if self.user { Scope::User } else { Scope::Project }
    }

    /// The project's folder as it was typed, for a command line that is to be copied.
    pub(crate) fn typed_folder(&self) -> &Path {
        self.project.as_deref().unwrap_or(Path::new("."))
    }

    /// The project's folder with symlinks resolved, for a command run in `workdir`.
    pub(crate) fn folder(&self, workdir: &Path) -> Result<PathBuf, CommandError> {
        let named = self.project.as_deref().map_or_else(|| workdir.to_owned(), |project| workdir.join(project));
        let found = named.canonicalize();
        match found {
            Ok(folder) if folder.is_dir() => Ok(folder),
            Ok(file) => Err(Failure {
                what: format!("`{}` is not a folder", file.display()),
                hint: Some("name the folder in which the harness is started: `--project DIR`".to_owned()),
                exit: Exit::Usage,
                source: None,
            }
            .into()),
            Err(error) => Err(Failure {
                what: format!("the project's folder `{}` cannot be opened", named.display()),
                hint: Some("name the folder in which the harness is started: `--project DIR`".to_owned()),
                exit: Exit::NotFound,
                source: Some(Box::new(error)),
            }
            .into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(project: Option<&str>, expected: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("its path");
        std::fs::create_dir(root.join("inner")).expect("made");
        std::fs::write(root.join("file"), "").expect("written");
        let place = ScopeArgs { project: project.map(PathBuf::from), user: false };
        let outcome = match place.folder(&root) {
            Ok(found) => found.display().to_string(),
            Err(error) => format!("{} ({})", error, error.exit().code()),
        };
        assert_eq!(outcome.replace(&root.display().to_string(), "ROOT"), expected);
    }

    #[test]
    fn the_projects_folder_is_found_before_anything_is_planned() {
        check(None, "ROOT");
        check(Some("."), "ROOT");
        check(Some("inner/.."), "ROOT");
        check(Some("inner"), "ROOT/inner");
        check(Some("file"), "`ROOT/file` is not a folder (2)");
        check(Some("nowhere"), "the project's folder `ROOT/nowhere` cannot be opened (3)");
    }
}
