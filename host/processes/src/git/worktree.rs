//! Worktrees: a folder of its own for a run, on a branch of its own.

use std::path::Path;

use super::{Git, GitError};

/// How a working copy differs from its commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Files that git knows and that differ.
    pub changed: usize,
    /// Files that git does not know and does not ignore.
    pub untracked: usize,
}

impl Status {
    /// Nothing differs.
    pub fn is_clean(self) -> bool {
        self == Status::default()
    }
}

impl Git {
    /// How a working copy differs from its commit.
    pub async fn status(&self, top: &Path) -> Result<Status, GitError> {
        let asked = ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal"];
        let bytes = self.bytes(top, &asked, &[], &[]).await?;
        let mut status = Status::default();
        for line in bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            if line.starts_with(b"??") { status.untracked += 1 } else { status.changed += 1 }
        }
        Ok(status)
    }

    /// Makes a worktree of a commit on a new branch.
    pub async fn add_worktree(&self, top: &Path, folder: &Path, branch: &str, commit: &str) -> Result<(), GitError> {
        let folder = folder.to_string_lossy();
        self.bytes(top, &["worktree", "add", "--quiet", "-b", branch, &folder, commit], &[], &[]).await.map(drop)
    }

    /// Removes a worktree that holds nothing of its own, and its branch if that has no commit beyond `commit`. Returns
    /// false, and removes nothing, if it holds anything.
    pub async fn remove_worktree(
        &self,
        top: &Path,
        folder: &Path,
        branch: &str,
        commit: &str,
    ) -> Result<bool, GitError> {
        if folder.exists() && !self.status(folder).await?.is_clean() {
            return Ok(false);
        }
        self.drop_worktree(top, folder, branch, commit).await?;
        Ok(true)
    }

    /// Removes a worktree whatever it holds, and its branch if that has no commit beyond `commit`. The caller knows that
    /// nothing is lost.
    pub async fn drop_worktree(&self, top: &Path, folder: &Path, branch: &str, commit: &str) -> Result<(), GitError> {
        if folder.exists() {
            let folder = folder.to_string_lossy();
            self.bytes(top, &["worktree", "remove", "--force", &folder], &[], &[]).await?;
        } else {
            self.bytes(top, &["worktree", "prune"], &[], &[]).await?;
        }
        // A branch that was deleted by hand needs no deleting.
        if self.text(top, &["rev-parse", "--verify", "--quiet", branch]).await.is_ok_and(|tip| tip == commit) {
            self.bytes(top, &["branch", "--quiet", "-D", branch], &[], &[]).await?;
        }
        Ok(())
    }
}
