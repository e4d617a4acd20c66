//! The conformance kit as an author runs it: the real binary on a component and its fixtures. Every adapter of this
//! repository passes.

use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::{Stage, isolated};

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// The adapters of this repository: the folders in plugins/ that have a manifest.
fn plugins() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
    let entries = std::fs::read_dir(folder).expect("plugins/ is there");
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    folders.retain(|folder| folder.join("adapter.toml").is_file());
    folders.sort();
    folders
}

fn component(folder: &Path) -> String {
    let name = folder.file_name().expect("a name");
    folder.join(name).with_extension("wasm").display().to_string()
}

#[test]
fn every_adapter_of_ours_passes_and_leaves_the_person_alone() {
    isolated(|| {
        let stage = stage();
        let before = std::fs::read_dir(&stage.home).expect("a home").count();
        let plugins = plugins();
        assert!(plugins.len() >= 5, "{plugins:?}");
        for folder in plugins {
            let report = stage.run(&["plugin", "test", &component(&folder), "--json"]);
            let told: Value =
                serde_json::from_str(&report.stdout).unwrap_or_else(|error| panic!("{error}: {report:?}"));
            let failed: Vec<&Value> = checks(&told).filter(|check| check["outcome"] == "failed").collect();
            assert!(failed.is_empty() && report.code == Some(0), "{}: {failed:#?}", folder.display());
            assert_eq!(told["passed"], true);
            let untried: Vec<&Value> = checks(&told).filter(|check| check["outcome"] == "untried").collect();
            assert!(untried.is_empty(), "{}: record what is missing: {untried:#?}", folder.display());
            let edits =
                told["abilities"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "refused edits"));
            // Those without hooks refuse nothing.
            let has_hooks = !["acp", "copilot", "generic"].iter().any(|name| folder.ends_with(name));
            let expected = if has_hooks { "yes" } else { "absent" };
            assert_eq!(edits.map(|edits| &edits["verdict"]), Some(&expected.into()), "{}", folder.display());
            assert!(told["costs"]["calls"].as_u64().is_some_and(|calls| calls > 100), "{}", told["costs"]);
        }
        assert_eq!(std::fs::read_dir(&stage.home).expect("a home").count(), before, "no data folder, no cache");
    });
}

/// The checks of a report.
fn checks(report: &Value) -> impl Iterator<Item = &Value> {
    let abilities = report["abilities"].as_array().into_iter().flatten();
    abilities.flat_map(|ability| ability["checks"].as_array().into_iter().flatten())
}

#[test]
fn a_table_says_what_an_adapter_can_do_and_by_what_that_is_known() {
    isolated(|| {
        let stage = stage();
        let codex = plugins().into_iter().find(|folder| folder.ends_with("codex")).expect("codex");
        let told = stage.relay_ok(&["plugin", "test", &component(&codex), "--all"]);
        for line in ["Codex 0.1.0 (`codex`, interface 0.1, digest ", "ABILITY ", "hooks ", "passed: "] {
            assert!(told.lines().any(|shown| shown.starts_with(line)), "{line}: {told}");
        }
        assert!(told.contains("held: push: 0.169.0-queue with one that refuses\n  failed"), "{told}");
    });
}

#[test]
fn what_does_not_hold_is_told_with_what_was_expected() {
    isolated(|| {
        let stage = stage();
        let generic = plugins().into_iter().find(|folder| folder.ends_with("generic")).expect("generic");
        let folder = stage.folder.join("fixtures/callers");
        std::fs::create_dir_all(&folder).expect("made");
        let wrong = r#"{"client-name": "zed", "detects": {"session": "s1"}}"#;
        std::fs::write(folder.join("zed.json"), wrong).expect("written");
        let fixtures = stage.folder.join("fixtures").display().to_string();
        let test = |more: &[&str]| {
            let component = component(&generic);
            stage.run(&[&["plugin", "test", &component, "--fixtures", &fixtures], more].concat())
        };
        let outcome = test(&[]);
        let expected = "failed: detection: zed\n  expected: a session, id s1\n  got: no session\n  hint: ";
        assert!(outcome.stdout.contains(expected) && outcome.code == Some(1), "{outcome:?}");
        assert_eq!(test(&["--json"]).code, Some(1));
        std::fs::write(folder.join("zed.json"), "{}").expect("written");
        let outcome = test(&[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
        assert!(outcome.stderr.contains("zed.json` is not a fixture: missing field `detects`"), "{outcome:?}");
        let outcome = stage.run(&["plugin", "test", "absent.wasm"]);
        assert!(outcome.code == Some(1) && outcome.stderr.contains("hint: name the component's file"), "{outcome:?}");
    });
}
