//! The guard of commits, with real git: paths that another agent holds are not committed, an earlier hook still runs,
//! and uninstalling restores every byte. Hook managers are tested in `hook_managers.rs`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::{Outcome, Stage, guarded::*};

#[test]
fn a_commit_of_what_another_holds_is_refused_and_everybody_may_go_around() {
    let stage = guarded(&[]);
    write(&stage, "src/a.rs", "fn a() {}\n");
    let refused = commit(&stage, None);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(
        refused.stderr,
        "relay-mesh guard: this commit changes what others have reserved\n  \
         src/a.rs is held by alice through src/** (exclusive, 60 min left): new grammar\n\
         ask alice by `relay-mesh send`, wait until it lapses, or commit all the same with `git commit --no-verify`\n"
    );
    assert_eq!(commit(&stage, Some("bob")).code, Some(1), "another agent is refused as a person is");
    let unknown = commit(&stage, Some("nobody"));
    assert_eq!(unknown.code, Some(1), "and so is whoever names an agent that there is none of: {unknown:?}");
    let said = "relay-mesh guard: no agent named `nobody` has joined; this commit has no agent\n";
    assert!(unknown.stderr.starts_with(said), "{unknown:?}");
    assert_eq!(commit(&stage, Some("alice")).code, Some(0), "she holds it herself");

    write(&stage, "docs/a.md", "# A\n");
    assert_eq!(commit(&stage, None).code, Some(0), "nobody holds that");
    stage.git(&["mv", "src/a.rs", "docs/a.rs"]);
    assert!(commit(&stage, None).stderr.contains("  src/a.rs is held by alice"), "what it was renamed from counts");
    stage.git(&["reset", "-q", "--hard"]);
    stage.git(&["mv", "docs/a.md", "src/a.md"]);
    assert!(commit(&stage, None).stderr.contains("  src/a.md is held by alice"), "and what it is renamed to");
    stage.git(&["commit", "-q", "--no-verify", "-m", "All the same"]);

    write(&stage, "src/b.rs", "fn b() {}\n");
    stage.relay_ok(&["release", "src", "--from", "alice"]);
    assert_eq!(commit(&stage, None).code, Some(0), "it was released");
}

#[test]
fn all_worktrees_of_a_repository_are_guarded() {
    let stage = guarded(&[]);
    let other = stage.folder.join("other");
    stage.git(&["worktree", "add", "-q", &other.display().to_string()]);
    fs::create_dir_all(other.join("src")).expect("the stage is writable");
    fs::write(other.join("src/a.rs"), "fn a() {}\n").expect("the stage is writable");
    let refused = commit_in(&stage, &other, None);
    assert_eq!((refused.code, refused.stderr.contains("src/a.rs is held by alice")), (Some(1), true), "{refused:?}");
    let status = stage.relay(&["guard", "status"]).within(&other).succeed();
    assert!(status.contains("project/.git/hooks/pre-commit (enforce)"), "{status}");
    stage.relay(&["guard", "uninstall"]).within(&other).succeed();
    assert_eq!(commit_in(&stage, &other, None).code, Some(0));
}

#[test]
fn a_hook_that_is_there_goes_on_and_is_as_it_was_after_the_guard() {
    let runs = |stage: &Stage, text: &str, mode: u32| {
        fs::write(hook(stage), text).expect("the hook is writable");
        fs::set_permissions(hook(stage), fs::Permissions::from_mode(mode)).expect("the hook is ours");
    };
    let check = |what: &str, put: &dyn Fn(&Stage), said: &str| {
        let stage = stage();
        put(&stage);
        let before = hooks(&stage);
        let guard = |arguments: &[&str]| stage.relay_ok(&[&["guard"], arguments].concat());
        assert!(guard(&["install"]).contains("stands now"), "{what}");
        assert!(guard(&["install"]).contains("stands already"), "{what}: twice is once");
        write(&stage, "src/a.rs", "fn a() {}\n");
        assert!(commit(&stage, None).stderr.contains("src/a.rs is held by alice"), "{what}");
        let passed = commit(&stage, Some("alice"));
        assert_eq!((passed.code, passed.stderr.as_str()), (Some(0), said), "{what}");
        guard(&["uninstall"]);
        assert_eq!(hooks(&stage), before, "{what}");
        assert_eq!(guard(&["uninstall"]), "there is no guard here\n", "{what}");
    };
    check("nothing", &|_| {}, "");
    check("a script", &|stage| runs(stage, "#!/bin/sh\necho mine >&2\n", 0o755), "mine\n");
    check(
        "a script without an end",
        &|stage| runs(stage, "#!/usr/bin/env bash\nset -eu\necho mine >&2", 0o700),
        "mine\n",
    );
    check(
        "a program",
        &|stage| runs(stage, "#!/usr/bin/env python3\nimport sys\nsys.stderr.write('mine\\n')\n", 0o755),
        "mine\n",
    );
    check("a script that is switched off", &|stage| runs(stage, "#!/bin/sh\necho mine >&2\n", 0o644), "");
    let linked = |stage: &Stage| {
        let script = stage.folder.join("script");
        fs::write(&script, "#!/bin/sh\necho mine >&2\n").expect("the stage is writable");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("the script is ours");
        symlink(script, hook(stage)).expect("linked");
    };
    check("a link", &linked, "mine\n");
}

#[test]
fn lines_that_were_added_to_a_hook_of_ours_stay_when_it_goes() {
    let stage = guarded(&[]);
    let ours = fs::read_to_string(hook(&stage)).expect("the guard stands there");
    fs::write(hook(&stage), format!("{ours}echo mine\n")).expect("the hook is writable");
    stage.relay_ok(&["guard", "uninstall"]);
    assert_eq!(fs::read_to_string(hook(&stage)).expect("it stayed"), "#!/bin/sh\necho mine\n");
}

#[test]
fn without_relay_mesh_or_its_data_a_commit_goes_on_and_says_so() {
    let stage = guarded(&[]);
    for value in fs::read_dir(stage.data.join("reservations")).expect("it is there").flatten() {
        fs::write(value.path(), "[]").expect("the data is writable");
    }
    write(&stage, "src/a.rs", "1");
    let passed = commit(&stage, None);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(passed.stderr.contains("is damaged") && passed.stderr.contains("; the commit goes on"), "{passed:?}");

    fs::write(stage.project.join(".relay-mesh.toml"), "team = 1\n").expect("the project is writable");
    let passed = commit(&stage, None);
    assert_eq!((passed.code, passed.stderr.contains("expected a string")), (Some(0), true), "{passed:?}");

    let script = fs::read_to_string(hook(&stage)).expect("the guard stands there");
    let binary = stage.binary().display().to_string();
    fs::write(hook(&stage), script.replace(&binary, "/nowhere/relay-mesh")).expect("the hook is writable");
    write(&stage, "src/a.rs", "2");
    let passed = commit(&stage, None);
    let said = "relay-mesh guard: /nowhere/relay-mesh was not found, so reservations were not checked\n";
    assert_eq!((passed.code, passed.stderr.as_str()), (Some(0), said));
}

#[test]
fn what_is_staged_counts_wherever_one_stands_and_looking_makes_no_data_folder() {
    let stage = stage();
    write(&stage, "src/a.rs", "fn a() {}\n");
    assert_eq!(commit(&stage, None).code, Some(0), "nothing guards it yet");
    write(&stage, "src/a.rs", "fn b() {}\n");
    write(&stage, "docs/a.md", "# A\n");
    stage.git(&["add", "docs/a.md"]);
    let check = || stage.relay(&["guard", "check"]).within(&stage.project.join("docs"));
    assert_eq!(check().run().code, Some(0), "what was changed and not staged is not committed");
    stage.git(&["add", "src/a.rs"]);
    assert_eq!(check().run().code, Some(6));
    let nowhere = stage.folder.join("nowhere");
    assert_eq!(check().env("RELAY_DIR", &nowhere).run().code, Some(0), "there nobody holds anything");
    assert!(!nowhere.exists());
}

#[test]
fn where_a_project_only_advises_the_commit_goes_on_with_a_word() {
    let stage = guarded(&[]);
    stage.relay_ok(&["reservations", "mode", "advise"]);
    write(&stage, "src/a.rs", "fn a() {}\n");
    let passed = commit(&stage, None);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(passed.stderr.contains("src/a.rs is held by alice"), "{passed:?}");
    assert!(passed.stderr.contains("this project only advises, so the commit goes on: tell alice"), "{passed:?}");
}

#[test]
fn hooks_of_the_projects_own_folder_are_guarded_for_the_team_and_those_of_many_repositories_are_left_alone() {
    let stage = stage();
    fs::create_dir(stage.project.join(".githooks")).expect("the project is writable");
    stage.git(&["config", "core.hooksPath", ".githooks"]);
    stage.relay_ok(&["guard", "install"]);
    let script = fs::read_to_string(stage.project.join(".githooks/pre-commit")).expect("the guard stands there");
    assert!(!script.contains(&stage.binary().display().to_string()), "a team commits it: {script}");
    write(&stage, "src/a.rs", "fn a() {}\n");
    assert!(commit(&stage, None).stderr.contains("src/a.rs is held by alice"));
    stage.relay_ok(&["guard", "uninstall"]);
    assert!(!stage.project.join(".githooks/pre-commit").exists());

    let everywhere = stage.home.join("hooks");
    fs::create_dir(&everywhere).expect("the home is writable");
    stage.git(&["config", "--unset", "core.hooksPath"]);
    stage.git(&["config", "--global", "core.hooksPath", &everywhere.display().to_string()]);
    let refused = stage.run(&["guard", "install"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(
        refused.stderr.contains("which other repositories use too\nhint: add `relay-mesh guard check"),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(&everywhere).expect("it is there").count(), 0);
    assert_eq!(stage.run(&["guard", "status"]).code, Some(1));

    let outside = stage.relay(&["guard", "install", "--json"]).within(&stage.folder).run();
    let told: Value = serde_json::from_str(&outside.stderr).expect("JSON");
    assert_eq!((outside.code, &told["exit"]), (Some(3), &3.into()), "{told}");
}

/// Every file in git's own hooks folder, with its mode.
fn hooks(stage: &Stage) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let entry = |path: PathBuf| {
        let found = path.symlink_metadata().expect("it is there");
        let bytes = match fs::read_link(&path) {
            Ok(target) => target.display().to_string().into_bytes(),
            Err(_) => fs::read(&path).expect("it can be read"),
        };
        (path, found.permissions().mode(), bytes)
    };
    let folder: &Path = &stage.project.join(".git/hooks");
    let mut all: Vec<_> = fs::read_dir(folder).expect("it is there").flatten().map(|one| entry(one.path())).collect();
    all.sort();
    all
}

fn stage() -> Stage {
    alice_holds_the_sources(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn guarded(further: &[&str]) -> Stage {
    let stage = stage();
    stage.relay_ok(&[&["guard", "install"], further].concat());
    stage
}

fn commit(stage: &Stage, agent: Option<&str>) -> Outcome {
    commit_in(stage, &stage.project, agent)
}
