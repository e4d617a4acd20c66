//! examples/dispatch, as cron or CI runs it: with the real Claude Code and a scripted model, stopped or killed midway,
//! and if another agent holds the reservation.

use std::path::{Path, PathBuf};

use serde_json::json;
use test_support::{ClaudeCode, Model, Program, Script, Stage, isolated, wait_for};

/// Says that it has begun, and waits.
const WAITS: &str = "#!/bin/sh\ncase \"$*\" in *--version*) echo '2.1.329 (Claude Code)'; exit 0;; esac\ncat >/dev/null\n: > \
                     begun\nsetsid sleep 300 &\nwait\n";

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["register", "boss"]);
    std::fs::create_dir_all(stage.programs()).expect("the home is writable");
    stage
}

/// The script with its own arguments, in the project.
fn dispatch(stage: &Stage, arguments: &[&str]) -> Program {
    let script: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dispatch/dispatch.sh");
    Program::new(script).envs(stage.environment()).args(arguments).within(&stage.project)
}

fn waiting(stage: &Stage) {
    stage.program("claude", WAITS);
}

fn reports(stage: &Stage) -> String {
    stage.relay_ok(&["read", "--agent", "boss"])
}

#[test]
fn the_real_claude_code_works_under_a_reservation_and_is_reported() {
    isolated(|| {
        let stage = stage();
        std::os::unix::fs::symlink(ClaudeCode::program_path(), stage.programs().join("claude")).expect("a link");
        let notes = stage.project.join("notes.md");
        let write = json!({"file_path": notes.display().to_string(), "content": "tidy\n"});
        let model =
            Model::start(Script::new().call("Tidy the notes.", "Write", write).say("notes.md", "The notes are tidy."));
        let claude = ClaudeCode::new(&stage, &model);
        let words = ["nightly", "boss", "claude", "Tidy the notes.", "--reserve", "notes.md"];
        let outcome = dispatch(&stage, &words).envs(claude.environment().to_vec()).run();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("The notes are tidy."), "{outcome:?}");
        assert_eq!(std::fs::read_to_string(notes).expect("written"), "tidy\n");
        assert_eq!(stage.held(), Vec::<String>::new());
        let report = reports(&stage);
        assert!(report.contains("ended: answered") && report.contains("The notes are tidy."), "{report}");
    });
}

#[test]
fn a_run_that_is_stopped_or_killed_or_finds_the_way_barred_gives_everything_back() {
    let stage = stage();
    waiting(&stage);
    let words = ["ci", "boss", "claude", "Wait.", "--reserve", "src/**", "--reserve", "docs"];
    stage.relay_ok(&["reserve", "src/lib.rs", "--from", "boss"]);
    let barred = dispatch(&stage, &words).run();
    assert_eq!(barred.code, Some(6), "{barred:?}");
    assert!(barred.stderr.contains("boss holds `src/lib.rs`"), "{barred:?}");
    assert!(!stage.project.join("begun").exists(), "nothing is run without its reservation");
    assert_eq!(stage.held(), ["boss src/lib.rs"], "all or nothing");
    stage.relay_ok(&["release", "--all", "--from", "boss"]);
    for signal in ["TERM", "KILL"] {
        let mut running = dispatch(&stage, &words).start(&stage.folder.join("dispatch.log"));
        wait_for("it has begun", || stage.project.join("begun").exists().then_some(()));
        std::fs::remove_file(stage.project.join("begun")).expect("there");
        assert_eq!(stage.held().len(), 2, "{:?}", stage.held());
        Program::new("kill").args([format!("-{signal}"), running.child.id().to_string()]).succeed();
        running.ended();
        wait_for("everything is given back", || {
            stage.relay_ok(&["runs", "list"]);
            stage.held().is_empty().then_some(())
        });
        let report =
            wait_for("it is reported", || Some(reports(&stage)).filter(|text| text.contains("ended: stopped")));
        assert!(report.contains("Run "), "{report}");
    }
}

#[test]
fn a_wrong_command_line_does_nothing() {
    let stage = stage();
    for arguments in [&[] as &[&str], &["ci"], &["ci", "boss"], &["ci", "boss", "nothing", "x"]] {
        let outcome = dispatch(&stage, arguments).run();
        assert!(matches!(outcome.code, Some(2 | 3)), "{arguments:?}: {outcome:?}");
    }
    let agents = stage.relay_ok(&["agents", "--json"]);
    assert_eq!(agents.matches("\"name\"").count(), 1, "{agents}");
}
