//! A data folder that a project names: one that may have come with a repository is not used, whatever is in it.

use std::fs;
use std::path::Path;

use test_support::{Outcome, Stage};

/// A stage whose project names a data folder, and no variable does.
fn stage(dir: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    names(&stage, dir);
    stage
}

fn names(stage: &Stage, dir: &str) {
    fs::write(stage.project.join(".relay-mesh.toml"), format!("dir = '{dir}'\n")).expect("the stage is writable");
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    stage.relay(arguments).env("RELAY_DIR", "").run()
}

fn refused(outcome: &Outcome, why: &str) {
    assert_eq!(outcome.code, Some(4), "{outcome:?}");
    assert!(outcome.stderr.contains(why), "{outcome:?}");
}

fn list(stage: &Stage) -> String {
    fs::read_to_string(stage.home.join(".config/relay-mesh/folders.toml")).unwrap_or_default()
}

#[test]
fn a_folder_in_the_project_or_in_another_repository_is_refused_even_while_it_is_empty() {
    let stage = stage("mesh");
    refused(&run(&stage, &["register", "alice"]), "is in a repository");
    assert!(!stage.project.join("mesh").exists(), "nothing is made");
    let other = stage.home.join("other");
    fs::create_dir_all(other.join(".git")).expect("the stage is writable");
    fs::write(other.join(".git/HEAD"), "ref: refs/heads/main\n").expect("the stage is writable");
    for dir in ["~/other/mesh", "../other/mesh"] {
        names(&stage, dir);
        refused(&run(&stage, &["agents"]), "is in a repository");
    }
    // A link that leads there.
    std::os::unix::fs::symlink(&other, stage.home.join("link")).expect("the stage is writable");
    names(&stage, "~/link/mesh");
    refused(&run(&stage, &["agents"]), "is in a repository");
    refused(&run(&stage, &["store", "trust"]), "is in a repository");
}

#[test]
fn a_folder_that_was_made_here_is_used_and_one_that_came_along_is_not() {
    let stage = stage("~/mesh");
    let made = run(&stage, &["register", "alice"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let again = run(&stage, &["agents"]);
    assert!(again.code == Some(0) && again.stdout.contains("alice"), "{again:?}");
    // The same folder for somebody who has not made it: another list of folders.
    let elsewhere = stage.home.join("elsewhere");
    let theirs = |arguments: &[&str]| {
        stage.relay(arguments).env("RELAY_DIR", "").env("XDG_CONFIG_HOME", elsewhere.display().to_string()).run()
    };
    let outcome = theirs(&["agents"]);
    refused(&outcome, "was not made here");
    assert!(outcome.stderr.contains("relay-mesh store trust"), "{outcome:?}");
    // Nothing of it is looked at: not by a hook, whose harness goes on, nor by a server.
    let hook = theirs(&["hook", "claude-code", "SessionStart"]);
    assert!(hook.code == Some(0) && hook.stderr.contains("was not made here"), "{hook:?}");
    refused(&theirs(&["serve", "--http", "127.0.0.1:0"]), "was not made here");
    // What has nothing to do with it works.
    for arguments in [&["version"][..], &["config"], &["help"]] {
        assert_eq!(theirs(arguments).code, Some(0), "{arguments:?}");
    }
    assert_eq!(theirs(&["agents", "--dir", "~/other"]).code, Some(0), "its user may name another one");
    // A copy of the folder has the mark and is another folder.
    copy(&stage.home.join("mesh"), &stage.home.join("copy"));
    names(&stage, "~/copy");
    refused(&run(&stage, &["agents"]), "was not made here");
    let by_an_agent =
        stage.relay(&["store", "trust"]).env("RELAY_DIR", "").env("RELAY_RUN", "01JD8Z3K5V0000000000000000");
    refused(&by_an_agent.run(), "cannot take a data folder as its user's");
    let trusted = run(&stage, &["store", "trust"]);
    assert!(trusted.code == Some(0) && trusted.stdout.contains("is yours from now on"), "{trusted:?}");
    let used = run(&stage, &["agents"]);
    assert!(used.code == Some(0) && used.stdout.contains("alice"), "{used:?}");
    assert!(run(&stage, &["store", "trust"]).stdout.contains("was yours before"));
}

#[test]
fn an_adapter_that_comes_with_a_folder_has_no_say() {
    let stage = stage("~/mesh");
    let planted = stage.home.join("mesh/plugins");
    fs::create_dir_all(&planted).expect("the stage is writable");
    fs::write(planted.join("generic.json"), "{}").expect("the stage is writable");
    for arguments in [&["plugin", "list"][..], &["doctor"], &["gc"], &["completions", "--names", "agents"]] {
        let outcome = run(&stage, arguments);
        assert!(outcome.code != Some(0) && outcome.stderr.contains("was not made here"), "{arguments:?}: {outcome:?}");
    }
    let before: Vec<_> = fs::read_dir(stage.home.join("mesh")).expect("there").collect();
    assert_eq!(before.len(), 1, "nothing is written there: {before:?}");
}

/// Whoever is killed while the folder is made leaves one that can be made.
#[test]
fn a_folder_that_was_half_made_is_made_again() {
    let stage = stage("~/mesh");
    fs::create_dir_all(stage.home.join("mesh")).expect("the stage is writable");
    fs::write(stage.home.join("mesh/.mark.relay-mesh-new.1-0-0"), "").expect("the stage is writable");
    assert_eq!(run(&stage, &["register", "alice"]).code, Some(0));
    let twenty: Vec<_> = (0..20).map(|_| stage.relay(&["agents"]).env("RELAY_DIR", "").run().code).collect();
    assert!(twenty.iter().all(|code| *code == Some(0)), "{twenty:?}");
    assert_eq!(list(&stage).matches("[[folder]]").count(), 1, "a list is written once: {}", list(&stage));
    // Several at once make it once.
    names(&stage, "~/another");
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| run(&stage, &["agents"]).code)).collect();
        assert!(all.into_iter().all(|one| one.join().expect("it ends") == Some(0)));
    });
    assert_eq!(list(&stage).matches("[[folder]]").count(), 2, "{}", list(&stage));
}

#[test]
fn settings_in_the_users_home_may_name_a_folder_in_it() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    fs::write(stage.home.join(".relay-mesh.toml"), "dir = 'mesh'\n").expect("the stage is writable");
    let made = run(&stage, &["register", "alice"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(stage.home.join("mesh/mark").exists() && list(&stage).contains("mesh"), "{}", list(&stage));
}

#[test]
fn the_folder_that_its_user_has_anyway_may_be_named_by_a_project() {
    let stage = stage("~/.relay-mesh");
    assert_eq!(run(&stage, &["register", "alice"]).code, Some(0));
    assert_eq!(list(&stage), "");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the stage is writable");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), &target).expect("it is copied")),
        }
    }
}
