//! Asks git about a working copy: the hooks folder and the staged paths. The only file of this crate that runs git.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::errors::Explain;
use crate::exit::Exit;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Git {
    /// Top folder of the working copy.
    pub(crate) top: PathBuf,
    /// Git's common folder, shared by all worktrees.
    pub(crate) common: PathBuf,
    /// The hooks folder.
    pub(crate) hooks: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    #[error("git could not be started")]
    Absent(#[source] io::Error),
    #[error("`{}` is in no git working copy", folder.display())]
    NoWorkingCopy {
        folder: PathBuf,
        /// Git's message, which says more than its exit code.
        #[source]
        said: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Explain for GitError {
    fn exit(&self) -> Exit {
        match self {
            GitError::Absent(_) => Exit::Failure,
            GitError::NoWorkingCopy { .. } => Exit::NotFound,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            GitError::Absent(_) => "install git, or put it on the path",
            GitError::NoWorkingCopy { .. } => "change into a git working copy, or name one by `--repo DIR`",
        };
        Some(hint.to_owned())
    }
}

impl Git {
    /// Asks git about the working copy that contains a folder.
    pub(crate) fn of(folder: &Path) -> Result<Git, GitError> {
        let top = one_path(folder, &["rev-parse", "--show-toplevel"])?;
        // A relative `core.hooksPath` is relative to the top folder, where git runs hooks.
        let absolute = ["rev-parse", "--path-format=absolute"];
        let common = one_path(&top, &[&absolute[..], &["--git-common-dir"]].concat())?;
        let hooks = one_path(&top, &[&absolute[..], &["--git-path", "hooks"]].concat())?;
        Ok(Git { top, common, hooks })
    }

    /// The paths that the pending commit touches, relative to the top; both paths of a rename.
    pub(crate) fn staged(folder: &Path) -> Result<Vec<String>, GitError> {
        let arguments = ["diff", "--cached", "--name-only", "--no-renames", "--no-relative", "--no-ext-diff", "-z"];
        let bytes = run(folder, &arguments)?;
        let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }
}

fn one_path(folder: &Path, arguments: &[&str]) -> Result<PathBuf, GitError> {
    let bytes = run(folder, arguments)?;
    let text = String::from_utf8_lossy(&bytes);
    let path = PathBuf::from(text.trim_end_matches('\n'));
    Ok(std::fs::canonicalize(&path).unwrap_or(path))
}

fn run(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
    #[expect(clippy::disallowed_methods, reason = "this is the file that starts git")]
    let outcome = std::process::Command::new("git").args(arguments).current_dir(folder).output();
    let Output { status, stdout, stderr } = outcome.map_err(GitError::Absent)?;
    if status.success() {
        Ok(stdout)
    } else {
        let said = String::from_utf8_lossy(&stderr).lines().next().unwrap_or_default().into();
        Err(GitError::NoWorkingCopy { folder: folder.to_owned(), said })
    }
}
