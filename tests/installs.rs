//! Installing and taking out, with the real binary, for every harness, on files as people keep them: with
//! comments, with servers and hooks of others, indented as they like it. A second install changes nothing,
//! and after the removal every byte is as it was.

#[path = "installs/people.rs"]
mod people;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use test_support::{Stage, isolated};

use people::{Kept, PEOPLE};

/// Where an install goes.
#[derive(Clone, Copy, Debug)]
enum Scope {
    Project,
    User,
}

/// Whether an install finds files to change in this scope; any client is set up by hand.
fn edits(harness: &str) -> bool {
    harness != "generic"
}

#[test]
fn each_comes_and_goes_and_leaves_every_byte() {
    isolated(|| {
        let stage = stage();
        for person in PEOPLE {
            with(&stage, person, |stage| {
                for harness in adapters(stage) {
                    comes_and_goes(stage, person, &harness, Scope::Project);
                    comes_and_goes(stage, person, &harness, Scope::User);
                }
            });
        }
    });
}

fn comes_and_goes(stage: &Stage, person: &Kept, harness: &str, scope: Scope) {
    let before = files(stage);
    run(stage, "install", harness, scope);
    let installed = files(stage);
    assert_eq!(installed != before, edits(harness), "{harness}, {scope:?}, {}", person.name);
    for (path, text) in &before {
        let now = installed.get(path).unwrap_or_else(|| panic!("{harness} took {} away", path.display()));
        for comment in comments(text) {
            assert!(comments(now).contains(&comment), "{harness}, {}: {comment} is lost", path.display());
        }
    }
    run(stage, "install", harness, scope);
    assert_eq!(files(stage), installed, "a second install: {harness}, {scope:?}, {}", person.name);
    run(stage, "uninstall", harness, scope);
    assert_eq!(files(stage), before, "{harness}, {scope:?}, {}", person.name);
    run(stage, "uninstall", harness, scope);
    assert_eq!(files(stage), before, "a second removal: {harness}, {scope:?}, {}", person.name);
}

#[test]
fn all_come_and_go_side_by_side() {
    isolated(|| {
        let stage = stage();
        for person in PEOPLE {
            with(&stage, person, |stage| {
                let (adapters, before) = (adapters(stage), files(stage));
                let all = |command| {
                    for scope in [Scope::Project, Scope::User] {
                        adapters.iter().for_each(|harness| run(stage, command, harness, scope));
                    }
                };
                all("install");
                names_nothing_of_this_machine(stage);
                all("uninstall");
                assert_eq!(files(stage), before, "{}", person.name);
                all("install");
                outlives(stage, || all("uninstall"));
            });
        }
    });
}

/// What a team commits is the same on every machine.
fn names_nothing_of_this_machine(stage: &Stage) {
    // What each harness keeps for one machine alone, and says so.
    let own = [".claude/settings.local.json", ".opencode/relay-mesh.local.json"].map(|path| stage.project.join(path));
    let machine = [stage.folder.display().to_string(), stage.binary().display().to_string()];
    let committed: Vec<_> = files(stage).into_iter().filter(|(path, _)| path.starts_with(&stage.project)).collect();
    assert!(committed.len() > 10, "there are files to look at");
    for (path, text) in committed.iter().filter(|(path, _)| !own.contains(path)) {
        for word in &machine {
            assert!(!text.contains(word.as_str()), "{} holds {word}: {text}", path.display());
        }
    }
}

/// What somebody writes into a file of ours meanwhile is theirs.
fn outlives(stage: &Stage, remove: impl Fn()) {
    let rules = stage.project.join("AGENTS.md");
    let text = std::fs::read_to_string(&rules).expect("Codex has its part in it");
    std::fs::write(&rules, format!("{text}\nWritten in between.\n")).expect("the project is writable");
    remove();
    let text = std::fs::read_to_string(&rules).expect("it is the person's now");
    assert!(text.contains("Written in between.") && !text.contains("relay-mesh"), "{text}");
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// Has a person's files where they keep them, and takes every file away afterwards: a stage of its own for
/// each person would compile every adapter anew.
fn with(stage: &Stage, person: &Kept, body: impl FnOnce(&Stage)) {
    let everybodys = files(stage);
    for (path, text) in person.files {
        let path = stage.home.join(path);
        std::fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("the stage is writable");
        std::fs::write(path, text).expect("the stage is writable");
    }
    body(stage);
    for path in files(stage).into_keys().filter(|path| !everybodys.contains_key(path)) {
        std::fs::remove_file(path).expect("the stage is writable");
    }
}

fn run(stage: &Stage, command: &str, harness: &str, scope: Scope) {
    let project = stage.project.display().to_string();
    match scope {
        Scope::Project => stage.relay_ok(&[command, harness, "--project", &project, "--yes"]),
        Scope::User => stage.relay_ok(&[command, harness, "--user", "--yes"]),
    };
}

/// Every file in the home, but for those of the mesh itself.
fn files(stage: &Stage) -> BTreeMap<PathBuf, String> {
    let all = stage.tree(&stage.home).into_iter().filter(|(path, _)| path.is_file());
    let theirs = all.filter(|(path, _)| !path.starts_with(&stage.data) && !path.starts_with(stage.home.join(".cache")));
    theirs.map(|(path, bytes)| (path, String::from_utf8(bytes).expect("settings are text"))).collect()
}

/// The comments in a file, each with the line that it stands on.
fn comments(text: &str) -> Vec<String> {
    let marks = |line: &&str| line.contains("// ") || line.trim_start().starts_with('#') || line.contains(" # ");
    text.lines().filter(marks).map(str::to_owned).collect()
}

/// The adapters that are built in, by name.
fn adapters(stage: &Stage) -> Vec<String> {
    let listed: Value = serde_json::from_str(&stage.relay_ok(&["harnesses", "--json"])).expect("--json writes JSON");
    let harnesses = listed["harnesses"].as_array().into_iter().flatten();
    let names: Vec<_> = harnesses.filter_map(|harness| harness["harness"].as_str().map(str::to_owned)).collect();
    assert!(names.len() >= 5, "{listed}");
    names
}
