//! What git says of real working copies.

use std::path::{Path, PathBuf};
use std::process::Command;

use processes::git::{Git, GitError};

struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    fn new() -> Repository {
        let repository = Repository { folder: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir(repository.top()).expect("made");
        repository.git(&["init", "--quiet", "--initial-branch", "main"]);
        repository.write("old", "one\n");
        repository.write("gone", "gone\n");
        repository.write("dirty", "clean\n");
        repository.write(".gitignore", "ignored\n");
        repository.git(&["add", "."]);
        repository.git(&["commit", "--quiet", "-m", "first"]);
        repository
    }

    fn top(&self) -> PathBuf {
        self.folder.path().join("a: \"b\"")
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.top().join(name), text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.top().join(name)).unwrap_or_else(|_| "nothing".to_owned())
    }

    #[expect(clippy::disallowed_methods, reason = "a test makes repositories with the real git")]
    fn git(&self, arguments: &[&str]) -> String {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut command = Command::new("git");
        command.args(who).args(arguments).current_dir(self.top()).env("HOME", self.folder.path());
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }
}

fn git(home: &Path) -> Git {
    Git::new([("PATH", "/usr/bin:/bin:/usr/local/bin"), ("HOME", &home.to_string_lossy())].map(owned))
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[tokio::test]
async fn changes_are_those_of_the_run_and_the_index_and_the_objects_stay_as_they_were() {
    let repository = Repository::new();
    let (top, scratch) = (repository.top(), repository.scratch());
    let git = git(repository.folder.path());
    repository.write("dirty", "changed before\n");
    repository.write("untracked", "there before\n");
    let (status, objects) = (repository.git(&["status", "--porcelain"]), repository.git(&["count-objects"]));
    let before = git.tree(&top, &scratch).await.expect("a tree");
    repository.write("old", "two\n");
    repository.write("new \u{fc}", "new\n");
    repository.write("binary", "\0\u{1}\n");
    repository.write("ignored", "ignored\n");
    std::fs::remove_file(top.join("gone")).expect("there");
    let after = git.tree(&top, &scratch).await.expect("a tree");
    assert_eq!(repository.git(&["count-objects"]), objects, "no object was added");
    let changes = git.changes(&top, &scratch, &before, &after).await.expect("changes");
    assert_eq!(changes.written, ["binary", "new \u{fc}", "old"]);
    assert_eq!(changes.deleted, ["gone"]);
    assert!(!String::from_utf8_lossy(&changes.patch).contains("changed before"));

    // The patch puts the same into a copy that has not seen the run.
    for name in ["new \u{fc}", "binary"] {
        std::fs::remove_file(top.join(name)).expect("there");
    }
    repository.write("old", "one\n");
    repository.write("gone", "gone\n");
    assert_eq!(repository.git(&["status", "--porcelain"]), status, "the index is as it was");
    git.fits(&top, &changes.patch).await.expect("it fits");
    git.apply(&top, &changes.patch).await.expect("it is applied");
    assert_eq!([repository.read("old"), repository.read("gone")], ["two\n", "nothing"]);
    assert!(matches!(git.fits(&top, &changes.patch).await, Err(GitError::Failed { .. })), "not twice");
    assert_eq!(git.changes(&top, &scratch, &after, &after).await.expect("nothing"), Default::default());
}

#[tokio::test]
async fn a_change_of_the_same_length_in_the_second_of_the_commit_is_seen_later_too() {
    let repository = Repository::new();
    let (top, scratch) = (repository.top(), repository.scratch());
    let git = git(repository.folder.path());
    let file = top.join("old");
    let before = git.tree(&top, &scratch).await.expect("a tree");
    // As if all of this had happened within one second, a while ago.
    let written =
        std::fs::metadata(&file).expect("there").modified().expect("a time") - std::time::Duration::from_secs(60);
    let set =
        |path: &Path| std::fs::File::options().append(true).open(path).and_then(|file| file.set_modified(written));
    set(&file).expect("set");
    repository.git(&["update-index", "--refresh"]);
    repository.write("old", "two\n");
    set(&file).expect("set");
    set(&top.join(".git/index")).expect("set");
    let after = git.tree(&top, &scratch).await.expect("a tree");
    assert_eq!(git.changes(&top, &scratch, &before, &after).await.expect("changes").written, ["old"]);
}

#[tokio::test]
async fn commits_that_the_run_made_count_as_changes() {
    let repository = Repository::new();
    let (top, scratch) = (repository.top(), repository.scratch());
    let git = git(repository.folder.path());
    let before = git.tree(&top, &scratch).await.expect("a tree");
    repository.write("old", "two\n");
    repository.git(&["commit", "--quiet", "-am", "second"]);
    let after = git.tree(&top, &scratch).await.expect("a tree");
    assert_eq!(git.changes(&top, &scratch, &before, &after).await.expect("changes").written, ["old"]);
}

#[tokio::test]
async fn a_worktree_goes_only_when_it_holds_nothing() {
    let repository = Repository::new();
    let top = repository.top();
    let git = git(repository.folder.path());
    let marker = repository.folder.path().join("hook-ran");
    let hook = top.join(".git/hooks/post-checkout");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch '{}'\n", marker.display())).expect("written");
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let head = git.head(&top).await.expect("a commit");
    let folder = repository.folder.path().join("worktree");
    git.add_worktree(&top, &folder, "relay/1", &head).await.expect("made");
    assert!(!marker.exists(), "no hook of the repository ran");
    std::fs::write(folder.join("new"), "work").expect("written");
    assert!(!git.remove_worktree(&top, &folder, "relay/1", &head).await.expect("asked"), "it holds work");
    assert!(folder.join("new").exists());
    std::fs::remove_file(folder.join("new")).expect("there");
    assert!(git.remove_worktree(&top, &folder, "relay/1", &head).await.expect("asked"));
    assert!(!folder.exists());
    assert!(!repository.git(&["branch", "--list"]).contains("relay/1"));
}

#[tokio::test]
async fn a_folder_without_a_repository_or_a_commit_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let git = git(folder.path());
    assert!(matches!(git.top(folder.path()).await, Err(GitError::NoRepository(_))));
    #[expect(clippy::disallowed_methods, reason = "a test makes repositories with the real git")]
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(folder.path()).status().expect("git runs");
    assert!(made.success());
    assert!(matches!(git.head(folder.path()).await, Err(GitError::NoCommit(_))));
}
