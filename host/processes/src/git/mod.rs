//! Git, for the folders that programs work in: what has changed, worktrees, patches.
//!
//! It is run without a shell, without hooks and helpers that a repository could bring, and with an environment of its
//! own. What it is asked changes neither the index nor the objects of the repository, except for worktrees.

mod changes;
mod run;
#[cfg(test)]
mod tests;
mod worktree;

use std::io;
use std::path::{Path, PathBuf};

pub use changes::{Changes, Tree};
pub use worktree::{Status, is_unfinished};

/// How git is run.
#[derive(Clone, Debug)]
pub struct Git {
    environment: Vec<(String, String)>,
}

/// Why git did not do it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It could not be started.
    #[error("git could not be started")]
    Absent(#[source] io::Error),
    /// The folder is in no repository.
    #[error("`{}` is in no git repository", .0.display())]
    NoRepository(PathBuf),
    /// The repository has no commit yet.
    #[error("the repository of `{}` has no commit yet", .0.display())]
    NoCommit(PathBuf),
    /// The repository has nothing of this name.
    #[error("git knows no commit `{0}` here")]
    NoRevision(String),
    /// It failed, and this is the first line of what it said.
    #[error("git {what} failed: {said}")]
    Failed {
        /// Its command.
        what: String,
        /// What it said.
        said: String,
    },
    /// It took too long.
    #[error("git {0} took too long")]
    Slow(String),
    /// A file of ours could not be used.
    #[error("a file for git could not be used")]
    File(#[source] io::Error),
}

impl Git {
    /// Git with these variables alone, of which it needs `PATH` and `HOME`.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Git {
        const PASSED_ON: [&str; 5] = ["PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER"];
        let mut environment: Vec<(String, String)> =
            variables.into_iter().filter(|(name, _)| PASSED_ON.contains(&name.as_str())).collect();
        for (name, value) in [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")] {
            environment.push((name.to_owned(), value.to_owned()));
        }
        Git { environment }
    }

    /// The top folder of the working copy that a folder is in.
    pub async fn top(&self, folder: &Path) -> Result<PathBuf, GitError> {
        match self.text(folder, &["rev-parse", "--show-toplevel"]).await {
            Ok(top) if !top.is_empty() => Ok(PathBuf::from(top)),
            Ok(_) => Err(GitError::NoRepository(folder.to_owned())),
            Err(GitError::Failed { said, .. }) if said.contains("not a git repository") => {
                Err(GitError::NoRepository(folder.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// The commit that is checked out.
    pub async fn head(&self, top: &Path) -> Result<String, GitError> {
        match self.text(top, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await {
            Err(GitError::Failed { .. }) => Err(GitError::NoCommit(top.to_owned())),
            outcome => outcome,
        }
    }
}
