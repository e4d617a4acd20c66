//! Installing and uninstalling with the real binary for every harness, in realistic files: with comments, other servers
//! and hooks, and any indentation. A second install changes nothing, and the removal restores every byte.

#[path = "installs/people.rs"]
mod people;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use test_support::{Stage, isolated};

use people::{Kept, PEOPLE};

#[derive(Clone, Copy, Debug)]
enum Scope {
    Project,
    User,
}

/// Whether an install changes files; the adapter for any client is set up by hand.
fn edits(harness: &str) -> bool {
    // What is only driven has nothing to install.
    !["acp", "copilot", "generic"].contains(&harness)
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

#[test]
fn what_has_nothing_to_install_says_how_it_joins() {
    let stage = stage();
    for (harness, words) in [("acp", "spawn NAME --acp"), ("copilot", "spawn copilot --name NAME"), ("generic", "mcp")]
    {
        for arguments in [&["--project", "."][..], &["--user"], &["--dry-run"]] {
            let told = stage.relay_ok(&[&["install", harness], arguments].concat());
            assert!(told.contains(words), "{harness} {arguments:?}: {told}");
        }
        let told: Value = serde_json::from_str(&stage.relay_ok(&["install", harness, "--json"])).expect("JSON");
        let steps = told["next_steps"].to_string();
        assert!(told["outcome"] == "unchanged" && steps.contains(words), "{told}");
    }
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

/// Files that a team commits must be the same on every machine.
fn names_nothing_of_this_machine(stage: &Stage) {
    // Files that are for one machine only, and that the install reports as such.
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

/// Text that the user adds to our file meanwhile survives the removal.
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

/// Sets up a user's files and removes every file afterwards: a separate stage per user would recompile every adapter.
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

/// Every file in the home except the mesh's own.
fn files(stage: &Stage) -> BTreeMap<PathBuf, String> {
    let all = stage.tree(&stage.home).into_iter().filter(|(path, _)| path.is_file());
    let theirs = all.filter(|(path, _)| !path.starts_with(&stage.data) && !path.starts_with(stage.home.join(".cache")));
    theirs.map(|(path, bytes)| (path, String::from_utf8(bytes).expect("settings are text"))).collect()
}

/// The comments in a file, each with its line.
fn comments(text: &str) -> Vec<String> {
    let marks = |line: &&str| line.contains("// ") || line.trim_start().starts_with('#') || line.contains(" # ");
    text.lines().filter(marks).map(str::to_owned).collect()
}

/// The names of the built-in adapters.
fn adapters(stage: &Stage) -> Vec<String> {
    let listed: Value = serde_json::from_str(&stage.relay_ok(&["harnesses", "--json"])).expect("--json writes JSON");
    let harnesses = listed["harnesses"].as_array().into_iter().flatten();
    let names: Vec<_> = harnesses.filter_map(|harness| harness["harness"].as_str().map(str::to_owned)).collect();
    assert!(names.len() >= 5, "{listed}");
    names
}

#[test]
fn a_set_up_that_its_harness_will_not_read_is_said_to_be_none_yet() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let settings = stage.project.join(".claude/settings.local.json");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("the stage is writable");
    std::fs::write(&settings, "{\n  // mine\n  \"model\": \"opus\"\n}\n").expect("the stage is writable");
    let install = ["install", "claude-code", "--project", &stage.project_path(), "--yes"];
    for _ in 0..2 {
        let outcome = stage.run(&install);
        let words = "warning: it does not work yet: .claude/settings.local.json is not plain JSON";
        assert!(outcome.code == Some(0) && outcome.stderr.contains(words), "{outcome:?}");
    }
    std::fs::write(&settings, "{\n  \"model\": \"opus\"\n}\n").expect("the stage is writable");
    let outcome = stage.run(&install);
    assert!(outcome.code == Some(0) && !outcome.stderr.contains("warning"), "{outcome:?}");
}

#[test]
fn a_project_that_is_set_up_is_listed_so_below_it_and_in_its_worktrees() {
    let stage = stage();
    run(&stage, "install", "claude-code", Scope::Project);
    let (below, linked) = (stage.project.join("sub/deep"), stage.home.join("linked"));
    std::fs::create_dir_all(&below).expect("the stage is writable");
    stage.git(&["worktree", "add", "-q", &linked.display().to_string()]);
    for folder in [&stage.project, &below, &linked] {
        let told = stage.relay(&["harnesses", "--json"]).within(folder).succeed();
        let listed: Value = serde_json::from_str(&told).expect("--json writes JSON");
        let harnesses = listed["harnesses"].as_array().into_iter().flatten();
        let states: Vec<&Value> =
            harnesses.filter(|line| line["harness"] == "claude-code").map(|line| &line["project"]).collect();
        assert_eq!(states, ["installed"], "{}: {listed}", folder.display());
    }
}

/// Out of two projects, the user's own settings and the commits of one project, from anywhere.
#[test]
fn one_command_takes_everything_out_and_says_what_is_left() {
    isolated(|| {
        let stage = stage();
        let second = stage.home.join("second project");
        std::fs::create_dir_all(&second).expect("the stage is writable");
        let before = files(&stage);
        let second_path = second.display().to_string();
        for harness in ["claude-code", "codex", "opencode"] {
            run(&stage, "install", harness, Scope::Project);
            stage.relay_ok(&["install", harness, "--project", &second_path, "--yes"]);
        }
        run(&stage, "install", "gemini-cli", Scope::User);
        stage.relay_ok(&["guard", "install", "--repo", &stage.project_path()]);
        let all = files(&stage);
        let shown = stage.run(&["uninstall", "--all", "--dry-run"]);
        assert!(shown.code == Some(0) && shown.stdout.contains("second project"), "{shown:?}");
        let nobody = stage.run(&["uninstall", "--all"]);
        assert_eq!(nobody.code, Some(4), "nobody has agreed: {nobody:?}");
        assert!(nobody.stderr.contains("relay-mesh guard uninstall --repo ~/project"), "{nobody:?}");
        assert_eq!(files(&stage), all, "so nothing was changed");
        assert!(!nobody.stderr.contains("What is left"), "everything is: {nobody:?}");
        // What fails is said, and the rest goes on.
        let damaged = stage.data.join("installs/opencode-project-0123456789abcdef.json");
        std::fs::write(&damaged, "{").expect("the stage is writable");
        let stuck = second.join(".codex");
        let moved = second.join("moved");
        std::fs::rename(&stuck, &moved).expect("the stage is writable");
        std::fs::write(&stuck, "no folder").expect("the stage is writable");
        let outcome = stage.run(&["uninstall", "--all", "--yes"]);
        assert!(outcome.stderr.contains("codex in ~/second project: "), "{outcome:?}");
        assert!(outcome.stderr.contains("opencode-project-0123456789abcdef.json"), "{outcome:?}");
        assert_ne!(outcome.code, Some(0), "{outcome:?}");
        std::fs::remove_file(&damaged).expect("the stage is writable");
        std::fs::remove_file(&stuck).expect("the stage is writable");
        std::fs::rename(&moved, &stuck).expect("the stage is writable");
        let outcome = stage.run(&["uninstall", "--all", "--yes"]);
        assert!(outcome.code == Some(0) && outcome.stderr.contains("── codex in ~/second project"), "{outcome:?}");
        for left in ["What is left is yours to remove: your mail and all else in ~/.relay-mesh", "the program /"] {
            assert!(outcome.stderr.contains(left), "{left}: {outcome:?}");
        }
        assert_eq!(files(&stage), before, "every byte is as it was");
        let again = stage.run(&["uninstall", "--all", "--yes"]);
        assert!(again.code == Some(0) && again.stderr.contains("No harness is set up"), "{again:?}");
        for how in ["--dry-run", "--yes"] {
            let told: Value = serde_json::from_str(&stage.relay_ok(&["uninstall", "--all", how, "--json"]))
                .unwrap_or_else(|error| panic!("{how}: one document: {error}"));
            assert_eq!(told, json!({"outcome": "unchanged", "files": [], "next_steps": []}), "{how}");
        }
        // A project that was deleted needs nothing.
        stage.relay_ok(&["install", "claude-code", "--project", &second_path, "--yes"]);
        std::fs::remove_dir_all(&second).expect("the stage is writable");
        let gone = stage.run(&["uninstall", "--all", "--yes"]);
        assert!(gone.code == Some(0) && gone.stderr.contains("No harness is set up"), "{gone:?}");
        assert_eq!(stage.run(&["uninstall"]).code, Some(2), "a harness, or all of them");
        assert_eq!(stage.run(&["uninstall", "--all", "codex"]).code, Some(2), "one or the other");
    });
}

/// A plugin of a marketplace is its harness's own: no install of ours wrote it, so none takes it out.
#[test]
fn a_plugin_that_a_harness_keeps_is_named_with_the_command_that_removes_it() {
    isolated(|| {
        let stage = stage();
        let plugin = "relay-mesh@relay-mesh";
        for (path, text) in [
            (".claude/plugins/installed_plugins.json", json!({"version": 2, "plugins": {plugin: [{}]}}).to_string()),
            (".claude/settings.json", json!({"enabledPlugins": {plugin: true}}).to_string()),
            (".codex/config.toml", format!("[plugins.\"{plugin}\"]\nenabled = true\n")),
            (".copilot/settings.json", json!({"enabledPlugins": {plugin: true}}).to_string()),
        ] {
            let path = stage.home.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("the home is writable");
            std::fs::write(path, text).expect("the home is writable");
        }
        // What another harness has of ours does not hide it.
        run(&stage, "install", "gemini-cli", Scope::User);
        let before = files(&stage);
        let removes = [
            ("Claude Code", "claude plugin uninstall"),
            ("Codex", "codex plugin remove"),
            ("Copilot CLI", "copilot plugin uninstall"),
        ];
        let steps = removes.map(|(harness, removes)| {
            let has = format!("Next: {harness} has relay-mesh as the plugin `{plugin}`, which it removes itself");
            format!("{has}: {removes} {plugin}\n")
        });
        for (how, code, is_told) in [(&["--dry-run"][..], 0, true), (&[], 4, false), (&["--yes"], 0, true)] {
            let outcome = stage.run(&[&["uninstall", "--all"], how].concat());
            assert_eq!(outcome.code, Some(code), "{how:?}: {outcome:?}");
            for step in &steps {
                assert_eq!(outcome.stderr.contains(step), is_told, "{how:?}: {outcome:?}");
            }
            assert!(!outcome.stderr.contains("Remove the server"), "of no other client: {outcome:?}");
        }
        for file in [".claude/plugins/installed_plugins.json", ".claude/settings.json", ".codex/config.toml"] {
            let path = stage.home.join(file);
            assert_eq!(files(&stage).get(&path), before.get(&path), "{file} is as it was");
        }
    });
}
