//! Worktrees: a folder of its own for a run, on a branch of its own.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{Git, GitError};

/// How a working copy differs from its commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Files that git knows and that differ.
    pub changed: usize,
    /// Files that git does not know and does not ignore.
    pub untracked: usize,
    /// Repositories within it, as [`Git::nested`] finds them.
    pub nested: usize,
}

impl Status {
    /// Nothing differs.
    pub fn is_clean(self) -> bool {
        self == Status::default()
    }
}

/// How the name of a worktree ends that is being removed.
const GONE: &str = "gone";

/// A file that is not there need not be removed.
fn absent(removed: io::Result<()>) -> Result<(), GitError> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::File(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

impl Git {
    /// How a working copy differs from its commit, with all that its submodules hold.
    pub async fn status(&self, top: &Path) -> Result<Status, GitError> {
        let status = self.status_with(top, &["--ignore-submodules=none"]).await?;
        Ok(Status { nested: self.nested(top).await?.len(), ..status })
    }

    /// How its files differ from its commit. Submodules count as the settings of the repository say.
    pub async fn status_by_settings(&self, top: &Path) -> Result<Status, GitError> {
        self.status_with(top, &[]).await
    }

    async fn status_with(&self, top: &Path, further: &[&str]) -> Result<Status, GitError> {
        let mut asked = vec!["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal"];
        asked.extend(further);
        let bytes = self.bytes(top, &asked, &[], &[]).await?;
        let mut status = Status::default();
        for line in bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            if line.starts_with(b"??") { status.untracked += 1 } else { status.changed += 1 }
        }
        Ok(status)
    }

    /// The repositories within a working copy, which no patch of it carries: submodules that were initialised, and
    /// folders with a `.git` that git knows or would add. Also the folder with the repositories of its submodules, if
    /// that is all that is left of them.
    pub async fn nested(&self, top: &Path) -> Result<Vec<String>, GitError> {
        let known = self.bytes(top, &["ls-files", "--stage", "-z"], &[], &[]).await?;
        let links = known.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
        let links = links.filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
        let unknown = self.bytes(top, &["ls-files", "--others", "--exclude-standard", "-z"], &[], &[]).await?;
        let folders = unknown.split(|byte| *byte == 0).filter(|path| path.ends_with(b"/"));
        let mut nested: Vec<String> = Vec::new();
        for path in links.chain(folders) {
            let has_repository = fs::symlink_metadata(top.join(OsStr::from_bytes(path)).join(".git")).is_ok();
            let path = String::from_utf8_lossy(path).trim_end_matches('/').to_owned();
            if has_repository && !nested.contains(&path) {
                nested.push(path);
            }
        }
        let modules = self.text(top, &["rev-parse", "--path-format=absolute", "--git-path", "modules"]).await?;
        let has_modules = fs::read_dir(&modules).is_ok_and(|mut entries| entries.next().is_some());
        if nested.is_empty() && has_modules {
            nested.push(modules);
        }
        Ok(nested)
    }

    /// Makes a worktree of a commit on a new branch.
    pub async fn add_worktree(&self, top: &Path, folder: &Path, branch: &str, commit: &str) -> Result<(), GitError> {
        let folder = folder.to_string_lossy();
        self.bytes(top, &["worktree", "add", "--quiet", "-b", branch, &folder, commit], &[], &[]).await.map(drop)
    }

    /// Removes a worktree that holds nothing of its own, and its branch if that has no commit beyond `commit`. Returns
    /// false, and removes nothing, if it holds anything, be it a repository.
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
        // Nothing is removed while its repository is out of sight.
        self.top(top).await?;
        // In one step, because git deletes file by file: what it leaves when it is killed would look like work.
        let gone = folder.with_extension(GONE);
        absent(fs::remove_dir_all(&gone))?;
        absent(fs::rename(folder, &gone))?;
        // Never by `prune`, which forgets all that are out of sight now, also those of the repository's user. One that git
        // does not know is no trouble.
        let _forgotten = self.bytes(top, &["worktree", "remove", "--force", &folder.to_string_lossy()], &[], &[]).await;
        absent(fs::remove_dir_all(&gone))?;
        // A branch that was deleted by hand needs no deleting.
        if self.text(top, &["rev-parse", "--verify", "--quiet", branch]).await.is_ok_and(|tip| tip == commit) {
            self.bytes(top, &["branch", "--quiet", "-D", branch], &[], &[]).await?;
        }
        Ok(())
    }

    /// Removes what there is of a worktree, also of one that a killed git has not finished, and its branch if that has no
    /// commit beyond `commit`. The caller knows that nobody has worked in it.
    pub async fn discard_worktree(
        &self,
        top: &Path,
        folder: &Path,
        branch: &str,
        commit: &str,
    ) -> Result<(), GitError> {
        // Git locks a worktree until it has made it. What it says of one that is not locked, or that it does not know, is
        // no trouble.
        let _unlocked = self.bytes(top, &["worktree", "unlock", &folder.to_string_lossy()], &[], &[]).await;
        self.drop_worktree(top, folder, branch, commit).await
    }
}

/// Whether git was stopped before it had made the worktree in a folder. A folder that is no worktree counts as such.
pub fn is_unfinished(folder: &Path) -> bool {
    let link = fs::read_to_string(folder.join(".git")).unwrap_or_default();
    let Some(own) = link.trim_end().strip_prefix("gitdir: ").map(|own| folder.join(own)) else { return true };
    // What git writes into it while it makes a worktree.
    let is_locked = fs::read_to_string(own.join("locked")).is_ok_and(|why| why.trim() == "initializing");
    is_locked || !own.join("index").exists()
}
