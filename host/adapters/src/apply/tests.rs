//! Plans on real files: what is written, what is not, and what is restored.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::grants::Granted;
use crate::manifest::Manifest;

/// A home with a root `.x` and a project, and an adapter that may edit both.
struct Scene {
    folder: tempfile::TempDir,
    surroundings: Surroundings,
}

const MANIFEST: &str = r#"
    name = "x"
    title = "X"
    version = "1"
    wit = "0.1"
    [grants.roots.config]
    path = "~/.x"
    access = "edit"
    links = "home"
    [grants.roots.project]
    path = "${project}"
    access = "edit"
    [grants.roots.read]
    path = "~/.x"
    [grants.roots.fixed]
    path = "/proc"
    access = "edit"
"#;

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["home/.x", "home/dotfiles", "project"] {
            fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        let surroundings = Surroundings {
            home: Some(folder.path().join("home")),
            project: Some(folder.path().join("project")),
            ..Surroundings::default()
        };
        Scene { folder, surroundings }
    }

    fn scope_of(&self) -> HarnessScope<'_> {
        let manifest = Manifest::parse(MANIFEST).expect("a manifest");
        HarnessScope {
            grants: Grants::new("x", manifest.requests, Granted::BuiltIn),
            surroundings: &self.surroundings,
            journal: Journal::path(&self.folder.path().join("installs"), "x", Scope::Project, &self.surroundings),
        }
    }

    fn install(&self, edits: &[Edit]) -> Result<Applied, ApplyError> {
        let target = self.scope_of();
        let _lock = target.lock().expect("the lock");
        target.apply(Action::Install, &Plan { edits: edits.to_vec(), next_steps: Vec::new() })
    }

    /// Uninstalls; the adapter proposes these edits beside the journal's own.
    fn uninstall(&self, proposed: &[Edit]) -> Vec<Edit> {
        let target = self.scope_of();
        let _lock = target.lock().expect("the lock");
        let proposed = Plan { edits: proposed.to_vec(), next_steps: Vec::new() };
        let plan = target.removal(proposed).expect("a plan");
        target.apply(Action::Remove, &plan).expect("applied");
        plan.edits
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.folder.path().join(path), text).expect("written");
    }

    /// Every file below the home and the project with its content, in order.
    fn files(&self) -> String {
        fn walk(folder: &Path, base: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).expect("a folder").flatten() {
                let path = entry.path();
                let name = path.strip_prefix(base).expect("below").display().to_string();
                if path.is_symlink() {
                    found.push(format!("{name}@"));
                } else if path.is_dir() {
                    found.push(format!("{name}/"));
                    walk(&path, base, found);
                } else {
                    found.push(format!("{name}={}", fs::read_to_string(&path).expect("text")));
                }
            }
        }
        let mut found = Vec::new();
        for folder in ["home", "project"] {
            walk(&self.folder.path().join(folder), self.folder.path(), &mut found);
        }
        found.retain(|entry| !["home/.x/", "home/dotfiles/"].contains(&entry.as_str()));
        found.sort();
        found.join(" ")
    }

    fn journal(&self) -> bool {
        self.scope_of().journal.exists()
    }
}

fn edit(root: &str, path: &str, before: Option<&str>, after: Option<&str>) -> Edit {
    Edit {
        root: root.to_owned(),
        path: path.to_owned(),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
        executable: false,
    }
}

#[test]
fn an_install_is_undone_byte_for_byte() {
    let scene = Scene::new();
    scene.write("project/a", "old");
    scene.write("project/gone", "kept");
    let edits = [
        edit("project", "a", Some("old"), Some("new")),
        edit("project", "deep/er/b", None, Some("made")),
        edit("project", "gone", Some("kept"), None),
    ];
    let applied = scene.install(&edits).expect("applied");
    assert_eq!(applied.files.len(), 3);
    assert_eq!(scene.files(), "project/a=new project/deep/ project/deep/er/ project/deep/er/b=made");
    assert!(scene.journal());
    scene.uninstall(&[]);
    assert_eq!(scene.files(), "project/a=old project/gone=kept");
    assert!(!scene.journal());
}

#[test]
fn a_second_install_is_undone_to_before_the_first() {
    let scene = Scene::new();
    scene.write("project/a", "0");
    scene.install(&[edit("project", "a", Some("0"), Some("1"))]).expect("applied");
    scene.install(&[edit("project", "a", Some("1"), Some("2"))]).expect("applied");
    scene.uninstall(&[]);
    assert_eq!(scene.files(), "project/a=0");
}

#[test]
fn a_file_that_somebody_touched_is_left_to_the_adapter() {
    let scene = Scene::new();
    scene.write("project/a", "0");
    scene.install(&[edit("project", "a", Some("0"), Some("0 ours"))]).expect("applied");
    scene.write("project/a", "0 ours theirs");
    let proposed = edit("project", "a", Some("0 ours theirs"), Some("0 theirs"));
    assert_eq!(scene.uninstall(std::slice::from_ref(&proposed)), [proposed]);
    assert_eq!(scene.files(), "project/a=0 theirs");
    // Changed between two installs: the original content is not known, whatever the file holds now.
    scene.write("project/a", "0");
    scene.install(&[edit("project", "a", Some("0"), Some("1"))]).expect("applied");
    scene.write("project/a", "1 theirs");
    scene.install(&[edit("project", "a", Some("1 theirs"), Some("2 theirs"))]).expect("applied");
    let proposed = edit("project", "a", Some("2 theirs"), Some("theirs"));
    scene.uninstall(std::slice::from_ref(&proposed));
    assert_eq!(scene.files(), "project/a=theirs");
}

fn check_refused(edits: &[Edit], expected: &str) {
    let scene = Scene::new();
    scene.write("project/a", "old");
    fs::create_dir(scene.folder.path().join("project/folder")).expect("a folder");
    symlink("/etc", scene.folder.path().join("project/out")).expect("a link");
    let before = scene.files();
    let error = scene.install(edits).expect_err("refused");
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(scene.files(), before, "{error}");
    assert!(!scene.journal(), "{error}");
}

#[test]
fn nothing_is_written_where_one_file_is_not_as_expected() {
    let good = edit("project", "a", Some("old"), Some("new"));
    let with = |other: Edit| [good.clone(), other];
    check_refused(&with(edit("project", "b", Some("x"), Some("y"))), "project/b` has changed since");
    check_refused(&with(edit("project", "a", Some("old"), Some("2"))), "changes `");
    check_refused(&[edit("project", "a", None, Some("y"))], "project/a` has changed since");
    check_refused(&with(edit("project", "../b", None, Some("y"))), "is not a path inside the root `project`");
    check_refused(&with(edit("project", "/b", None, Some("y"))), "is not a path inside the root `project`");
    check_refused(&with(edit("project", "", None, Some("y"))), "is not a path inside the root `project`");
    check_refused(&with(edit("project", "out/b", None, Some("y"))), "leads out of the root `project`");
    check_refused(&with(edit("read", "b", None, Some("y"))), "no grant `roots.read.edit`");
    check_refused(&with(edit("other", "b", None, Some("y"))), "no grant `roots.other`");
}

#[test]
fn what_fails_half_way_is_put_back_and_named() {
    let good = edit("project", "a", Some("old"), Some("new"));
    let made = edit("project", "deep/b", None, Some("made"));
    let unwritable = edit("fixed", "relay-mesh-test", None, Some("y"));
    check_refused(&[good.clone(), made.clone(), unwritable], "could not write `/proc/relay-mesh-test`");
    // A folder in place of a file of the plan.
    check_refused(&[good, made, edit("project", "folder", None, Some("y"))], "could not read `");
}

#[test]
fn what_another_program_writes_in_the_meantime_stays() {
    let check = |before: Option<&str>, meanwhile: Option<&str>, after: Option<&str>| {
        let scene = Scene::new();
        let other = |content: Option<&str>| match content {
            Some(text) => scene.write("project/b", text),
            None => fs::remove_file(scene.folder.path().join("project/b")).expect("removed"),
        };
        scene.write("project/a", "old");
        before.into_iter().for_each(|text| other(Some(text)));
        let edits = [edit("project", "a", Some("old"), Some("new")), edit("project", "b", before, after)];
        let scope = scene.scope_of();
        let targets = scope.targets(&edits, &mut MadeFolders::default()).expect("as planned");
        other(meanwhile);
        let expected = scene.files();
        let error = perform::all(&targets).expect_err("changed");
        assert!(matches!(&error, ApplyError::Changed(path) if path.ends_with("project/b")), "{error}");
        assert_eq!(scene.files(), expected, "{before:?} {meanwhile:?} {after:?}");
    };
    check(Some("old"), Some("theirs"), Some("new"));
    check(Some("old"), Some("theirs"), None);
    check(Some("old"), None, Some("new"));
    check(None, Some("theirs"), Some("new"));
}

#[test]
fn a_root_that_is_not_there_comes_and_goes_with_the_install() {
    let scene = Scene::new();
    fs::remove_dir(scene.folder.path().join("home/.x")).expect("removed");
    let made = edit("config", "sub/a", None, Some("made"));
    scene.install(&[made.clone(), edit("project", "b", Some("x"), Some("y"))]).expect_err("refused");
    assert!(!scene.folder.path().join("home/.x").exists());
    scene.install(&[made]).expect("applied");
    assert!(scene.folder.path().join("home/.x/sub/a").exists());
    scene.uninstall(&[]);
    assert!(!scene.folder.path().join("home/.x").exists());
}

#[test]
fn a_read_only_file_is_respected() {
    let scene = Scene::new();
    scene.write("project/a", "old");
    let path = scene.folder.path().join("project/a");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("set");
    let error = scene.install(&[edit("project", "a", Some("old"), Some("new"))]).expect_err("refused");
    assert!(error.to_string().ends_with("project/a` is read-only"), "{error}");
    assert!(error.hint().expect("a hint").contains("chmod u+w"));
}

#[test]
fn modes_are_kept_and_scripts_are_executable() {
    let scene = Scene::new();
    scene.write("project/a", "old");
    let mode = |name: &str| {
        let metadata = fs::metadata(scene.folder.path().join("project").join(name)).expect("a file");
        metadata.permissions().mode() & 0o777
    };
    fs::set_permissions(scene.folder.path().join("project/a"), fs::Permissions::from_mode(0o600)).expect("set");
    let script = Edit { executable: true, ..edit("project", "run", None, Some("#!")) };
    scene.install(&[edit("project", "a", Some("old"), Some("new")), script]).expect("applied");
    assert_eq!(mode("a"), 0o600);
    assert_eq!(mode("run") & 0o700, 0o700);
}

#[test]
fn a_linked_settings_file_stays_a_link() {
    let scene = Scene::new();
    scene.write("home/dotfiles/settings", "old");
    symlink("../dotfiles/settings", scene.folder.path().join("home/.x/settings")).expect("a link");
    scene.install(&[edit("config", "settings", Some("old"), Some("new"))]).expect("applied");
    let link = scene.folder.path().join("home/.x/settings");
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&link).expect("text"), "new");
    scene.uninstall(&[]);
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&link).expect("text"), "old");
}

/// An install that was killed after its first change.
fn killed(scene: &Scene) {
    scene.write("project/a", "old");
    scene.write("project/b", "old");
    let edits = [edit("project", "a", Some("old"), Some("new")), edit("project", "b", Some("old"), Some("new"))];
    scene.install(&edits).expect("applied");
    scene.write("project/b", "old");
    let target = scene.scope_of();
    let mut journal = Journal::read(&target.journal).expect("a journal");
    journal.stage = JournalStage::Open;
    journal.write(&target.journal).expect("written");
}

#[test]
fn a_killed_install_is_undone() {
    let scene = Scene::new();
    killed(&scene);
    scene.uninstall(&[]);
    assert_eq!(scene.files(), "project/a=old project/b=old");
}

#[test]
fn a_killed_install_is_finished_by_the_next() {
    let scene = Scene::new();
    killed(&scene);
    scene.install(&[edit("project", "b", Some("old"), Some("new"))]).expect("applied");
    assert_eq!(scene.files(), "project/a=new project/b=new");
    scene.uninstall(&[]);
    assert_eq!(scene.files(), "project/a=old project/b=old");
}

#[test]
fn two_installs_at_once_wait_for_one_another() {
    let scene = Scene::new();
    scene.write("project/a", "old");
    let outcomes: Vec<_> = std::thread::scope(|threads| {
        let install = |text: &'static str| {
            let scene = &scene;
            threads.spawn(move || scene.install(&[edit("project", "a", Some("old"), Some(text))]).is_ok())
        };
        let running = [install("one"), install("two")];
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(outcomes.iter().filter(|applied| **applied).count(), 1);
    scene.uninstall(&[]);
    assert_eq!(scene.files(), "project/a=old");
}

#[test]
fn the_journal_is_for_its_user_alone() {
    let scene = Scene::new();
    scene.install(&[edit("project", "a", None, Some("new"))]).expect("applied");
    let journal = scene.scope_of().journal;
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode(&journal), mode(journal.parent().expect("a folder"))), (0o600, 0o700));
}
