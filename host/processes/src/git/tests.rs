//! What git says of repositories within a working copy, and of what it cannot add.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Git;

/// A repository with one commit, and another one that can be its submodule.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().expect("a folder"));
        for name in ["library", "project"] {
            place.repository(&place.path(name));
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A new repository with one commit.
    fn repository(&self, folder: &Path) {
        std::fs::create_dir_all(folder).expect("made");
        self.git(folder, &["init", "--quiet", "--initial-branch", "main"]);
        std::fs::write(folder.join("old"), "one\n").expect("written");
        self.git(folder, &["add", "."]);
        self.git(folder, &["commit", "--quiet", "-m", "first"]);
    }

    #[expect(clippy::disallowed_methods, reason = "a test makes repositories with the real git")]
    fn git(&self, folder: &Path, arguments: &[&str]) {
        let settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"];
        let mut command = Command::new("git");
        command.args(settings).args(arguments).current_dir(folder).env("HOME", self.0.path());
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn asked(&self) -> Git {
        let home = self.0.path().to_string_lossy().into_owned();
        Git::new([("PATH".to_owned(), "/usr/bin:/bin:/usr/local/bin".to_owned()), ("HOME".to_owned(), home)])
    }
}

#[tokio::test]
async fn a_worktree_with_a_submodule_stays_once_that_was_initialised() {
    let place = Place::new();
    let (top, git) = (place.path("project"), place.asked());
    place.git(&top, &["submodule", "--quiet", "add", "../library", "vendor"]);
    place.git(&top, &["config", "--file", ".gitmodules", "submodule.vendor.ignore", "all"]);
    place.git(&top, &["commit", "--quiet", "--all", "-m", "second"]);
    let head = git.head(&top).await.expect("a commit");
    let folder = place.path("worktree");
    let remove = async || git.remove_worktree(&top, &folder, "relay/1", &head).await.expect("asked");
    git.add_worktree(&top, &folder, "relay/1", &head).await.expect("made");
    assert!(remove().await, "it was never initialised");
    git.add_worktree(&top, &folder, "relay/1", &head).await.expect("made");
    place.git(&folder, &["submodule", "--quiet", "update", "--init"]);
    assert_eq!(git.nested(&folder).await.expect("asked"), ["vendor"]);
    assert!(!remove().await, "it may hold commits");
    std::fs::write(folder.join("vendor/old"), "two\n").expect("written");
    assert_eq!(git.status(&folder).await.expect("asked").changed, 1, "whatever .gitmodules says");
    assert!(!remove().await && folder.join("vendor/old").exists());
    // What is left of it lies beside the worktree.
    place.git(&folder, &["submodule", "--quiet", "deinit", "--force", "vendor"]);
    let nested = git.nested(&folder).await.expect("asked");
    assert!(matches!(nested.as_slice(), [modules] if modules.ends_with("/modules")), "{nested:?}");
}

#[tokio::test]
async fn a_repository_that_git_does_not_know_is_found_wherever_it_lies() {
    let place = Place::new();
    let (top, git) = (place.path("project"), place.asked());
    assert!(git.status(&top).await.expect("asked").is_clean());
    place.repository(&top.join("a/b/inner"));
    std::fs::create_dir(top.join("plain")).expect("made");
    std::fs::write(top.join("plain/file"), "").expect("written");
    assert_eq!(git.nested(&top).await.expect("asked"), ["a/b/inner"]);
    // As a commit of its working copy has it, which differs in nothing.
    place.git(&top, &["add", "."]);
    place.git(&top, &["commit", "--quiet", "-m", "second"]);
    let status = git.status(&top).await.expect("asked");
    assert_eq!((status.changed, status.untracked, status.nested), (0, 0, 1));
}

#[tokio::test]
async fn what_git_cannot_add_is_named_and_the_rest_counts() {
    let place = Place::new();
    let (top, scratch, git) = (place.path("project"), place.path("scratch"), place.asked());
    let before = git.tree(&top, &scratch).await.expect("a tree");
    std::fs::write(top.join("new"), "new\n").expect("written");
    std::fs::create_dir(top.join("empty")).expect("made");
    place.git(&top.join("empty"), &["init", "--quiet"]);
    std::fs::write(top.join("empty/file"), "").expect("written");
    let (after, left_out) = git.tree_and_left_out(&top, &scratch).await.expect("a tree");
    assert_eq!(left_out, ["empty"]);
    assert_eq!(git.changes(&top, &scratch, &before, &after).await.expect("changes").written, ["new"]);
    // Any other failure is one.
    std::fs::write(top.join(".git/index"), "nonsense").expect("written");
    assert!(git.tree_and_left_out(&top, &scratch).await.is_err());
}

/// As a git that is killed leaves it, at one point or another.
#[tokio::test]
async fn a_worktree_of_the_user_that_is_out_of_sight_is_not_forgotten() {
    let place = Place::new();
    let (top, folder, git) = (place.path("project"), place.path("worktree"), place.asked());
    let head = git.head(&top).await.expect("a commit");
    let (own, away) = (place.path("own"), place.path("away"));
    place.git(&top, &["worktree", "add", "--quiet", "--detach", "../own"]);
    // As if its disk were not there.
    std::fs::rename(&own, &away).expect("moved");
    git.add_worktree(&top, &folder, "relay/1", &head).await.expect("made");
    std::fs::remove_dir_all(&folder).expect("there");
    assert!(git.remove_worktree(&top, &folder, "relay/1", &head).await.expect("removed"));
    assert!(!top.join(".git/worktrees/worktree").exists() && !top.join(".git/refs/heads/relay/1").exists());
    assert!(git.remove_worktree(&top, &folder, "relay/1", &head).await.expect("removed"), "it is gone already");
    std::fs::rename(&away, &own).expect("moved");
    assert!(git.status(&own).await.expect("asked").is_clean());
}

#[tokio::test]
async fn a_removal_that_was_killed_leaves_no_work_and_the_next_one_finishes_it() {
    let place = Place::new();
    let (top, folder, git) = (place.path("project"), place.path("worktree"), place.asked());
    let head = git.head(&top).await.expect("a commit");
    git.add_worktree(&top, &folder, "relay/1", &head).await.expect("made");
    // As far as a process gets that is killed while it deletes.
    let gone = place.path("worktree.gone");
    std::fs::rename(&folder, &gone).expect("moved");
    std::fs::remove_file(gone.join("old")).expect("there");
    assert!(git.remove_worktree(&top, &folder, "relay/1", &head).await.expect("removed"));
    let known = [gone, top.join(".git/worktrees/worktree"), top.join(".git/refs/heads/relay/1")];
    assert!(known.iter().all(|path| !path.exists()), "{known:?}");
}

#[tokio::test]
async fn a_worktree_that_git_has_not_finished_is_discarded() {
    let place = Place::new();
    let (top, folder, git) = (place.path("project"), place.path("worktree"), place.asked());
    let head = git.head(&top).await.expect("a commit");
    let own = top.join(".git/worktrees/worktree");
    let locks = || std::fs::write(own.join("locked"), "initializing").expect("written");
    for left in ["all", "all but the index", "files alone", "no folder", "a folder of no repository", "a branch"] {
        git.add_worktree(&top, &folder, "relay/1", &head).await.expect("made");
        match left {
            "all" => {}
            "all but the index" => std::fs::remove_file(own.join("index")).map(|()| locks()).expect("there"),
            "files alone" => std::fs::remove_file(folder.join(".git")).map(|()| locks()).expect("there"),
            "no folder" => std::fs::remove_dir_all(&folder).map(|()| locks()).expect("there"),
            "a folder of no repository" => std::fs::remove_dir_all(&own).expect("there"),
            _ => [&folder, &own].into_iter().for_each(|gone| std::fs::remove_dir_all(gone).expect("there")),
        }
        git.discard_worktree(&top, &folder, "relay/1", &head).await.expect(left);
        let branch = top.join(".git/refs/heads/relay/1");
        assert!(!folder.exists() && !own.exists() && !branch.exists(), "{left}");
    }
    git.add_worktree(&top, &folder, "relay/1", &head).await.expect("made");
    let away = place.path("away");
    std::fs::rename(&top, &away).expect("moved");
    assert!(git.discard_worktree(&top, &folder, "relay/1", &head).await.is_err());
    assert!(folder.join("old").exists(), "its repository is out of sight");
    std::fs::rename(&away, &top).expect("moved");
    place.git(&folder, &["commit", "--quiet", "--allow-empty", "-m", "second"]);
    git.discard_worktree(&top, &folder, "relay/1", &head).await.expect("discarded");
    assert!(!folder.exists() && top.join(".git/refs/heads/relay/1").exists(), "the branch has a commit of its own");
}

#[test]
fn a_path_is_named_once_however_git_words_its_errors() {
    let said = b"warning: adding embedded git repository: a\nerror: open(\"it's\"): Permission denied\n\
        error: unable to index file 'it's'\nerror: 'b/' does not have a commit checked out\nerror: something else\n";
    assert_eq!(super::changes::left_out(said), ["it's", "b", "something else"]);
}
