//! The guard of commits with hook managers: the real husky, lefthook and pre-commit. Their own hooks still run, also
//! after they are set up again.

use std::fs;
use std::path::{Path, PathBuf};

use test_support::{Outcome, Program, Stage, guarded::*};

#[test]
fn with_husky_the_guard_is_a_part_of_the_projects_script() {
    let stage = stage();
    let husky = || {
        let program = modules().join("husky/bin.js");
        Program::new("node").arg(program).envs(stage.environment()).within(&stage.project).succeed();
    };
    husky();
    let script = stage.project.join(".husky/pre-commit");
    fs::write(&script, "echo husky ran >&2\n").expect("the project is writable");
    let installed = stage.relay_ok(&["guard", "install"]);
    assert!(installed.contains(".husky/pre-commit (by husky)"), "{installed}");
    let text = fs::read_to_string(&script).expect("it is there");
    assert!(!text.contains(&stage.binary().display().to_string()), "a team commits it: {text}");
    husky();
    is_guarded(&stage, "husky ran");
    stage.relay_ok(&["guard", "uninstall"]);
    assert_eq!(fs::read_to_string(&script).expect("it is there"), "echo husky ran >&2\n");
}

#[test]
fn with_lefthook_the_guard_is_a_command_of_this_machine() {
    let stage = stage();
    let settings = "pre-commit:\n  commands:\n    hello:\n      run: echo lefthook ran\n";
    fs::write(stage.project.join("lefthook.yml"), settings).expect("the project is writable");
    fs::write(stage.project.join(".gitignore"), "lefthook-local.yml\n").expect("the project is writable");
    lefthook(&stage);
    let local = stage.project.join("lefthook-local.yml");
    let installed = stage.relay_ok(&["guard", "install"]);
    assert!(installed.contains("lefthook-local.yml (by lefthook)"), "{installed}");
    lefthook(&stage);
    is_guarded(&stage, "lefthook ran");
    stage.relay_ok(&["guard", "uninstall"]);
    assert!(!local.exists());

    let mine = "# mine\npre-push:\n  commands:\n    slow:\n      run: echo slow";
    fs::write(&local, mine).expect("the project is writable");
    stage.relay_ok(&["guard", "install"]);
    is_guarded(&stage, "lefthook ran");
    stage.relay_ok(&["guard", "uninstall"]);
    assert_eq!(fs::read_to_string(&local).expect("it is there"), mine);

    let occupied = "pre-commit:\n  parallel: true\n";
    fs::write(&local, occupied).expect("the project is writable");
    let refused = stage.run(&["guard", "install"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("hint: add a command `relay-mesh guard check`"), "{refused:?}");
    assert_eq!(fs::read_to_string(&local).expect("it is there"), occupied);
}

#[test]
fn with_pre_commit_the_guard_runs_before_its_hooks_whichever_came_first() {
    for guard_first in [true, false] {
        let stage = stage();
        let settings = "repos:\n- repo: local\n  hooks:\n  - id: hello\n    name: hello\n    entry: echo it ran\n    \
            language: system\n    verbose: true\n";
        fs::write(stage.project.join(".pre-commit-config.yaml"), settings).expect("the project is writable");
        if guard_first {
            stage.relay_ok(&["guard", "install"]);
        }
        pre_commit(&stage);
        let installed = stage.relay_ok(&["guard", "install"]);
        assert!(installed.contains("pre-commit.legacy (by pre-commit)"), "{installed}");
        pre_commit(&stage);
        is_guarded(&stage, "it ran");
        stage.relay_ok(&["guard", "uninstall"]);
        assert!(!hook(&stage).with_file_name("pre-commit.legacy").exists());
        assert!(hook(&stage).exists(), "the framework's own hook stays");
    }
}

/// Only alice can commit what she holds, and the manager's own hook runs for her.
fn is_guarded(stage: &Stage, said: &str) {
    write(
        stage,
        "src/a.rs",
        &format!("// {said}\n{}", fs::read_to_string(stage.project.join("src/a.rs")).unwrap_or_default()),
    );
    let refused = commit(stage, None);
    let told = format!("{}{}", refused.stdout, refused.stderr);
    assert_eq!((refused.code, told.contains("src/a.rs is held by alice")), (Some(1), true), "{told}");
    let passed = commit(stage, Some("alice"));
    let told = format!("{}{}", passed.stdout, passed.stderr);
    assert_eq!((passed.code, told.contains(said)), (Some(0), true), "{told}");
    let status = stage.run(&["guard", "status"]);
    assert_eq!(status.code, Some(0), "{status:?}");
}

fn lefthook(stage: &Stage) {
    let program = modules().join(".bin/lefthook");
    Program::new(program).arg("install").envs(stage.environment()).within(&stage.project).succeed();
}

fn pre_commit(stage: &Stage) {
    let program = tests().join(".venv/bin/pre-commit");
    Program::new(program).arg("install").envs(stage.environment()).within(&stage.project).succeed();
}

fn commit(stage: &Stage, agent: Option<&str>) -> Outcome {
    commit_with(stage, &stage.project, agent, &[modules().join(".bin")])
}

fn stage() -> Stage {
    alice_holds_the_sources(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn modules() -> PathBuf {
    tests().join("node_modules")
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}
