//! examples/dispatch, as cron or CI runs it: with the real Claude Code and a scripted model, stopped or killed midway,
//! and if another agent holds the reservation.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::{ClaudeCode, Model, Program, Script, Stage, isolated, wait_for};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dispatch/dispatch.sh")
}

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["register", "boss"]);
    stage
}

/// The script with its own arguments, in the project.
fn dispatch(stage: &Stage, arguments: &[&str]) -> Program {
    Program::new(script())
        .envs(stage.environment())
        .env("DISPATCH_HEARTBEAT", "1")
        .args(arguments)
        .within(&stage.project)
}

fn reserved(stage: &Stage) -> Vec<String> {
    let told: Value = serde_json::from_str(&stage.relay_ok(&["reservations", "--json"])).expect("JSON");
    let all = told["reservations"].as_array().expect("a list").iter();
    all.map(|one| {
        format!("{} {}", one["owner"].as_str().unwrap_or_default(), one["pattern"].as_str().unwrap_or_default())
    })
    .collect()
}

fn reports(stage: &Stage) -> String {
    stage.relay_ok(&["read", "--agent", "boss"])
}

#[test]
fn the_real_claude_code_runs_under_a_reservation_and_is_reported() {
    isolated(|| {
        let stage = stage();
        let model = Model::start(
            Script::new()
                .call("Tidy the notes.", "Bash", json!({"command": "relay-mesh reservations", "description": "Look"}))
                .say("nightly", "The notes are tidy."),
        );
        let claude = ClaudeCode::new(&stage, &model);
        let program = dispatch(
            &stage,
            &["--as", "nightly", "--reserve", "notes/**", "--report", "boss", "--task", "tidies the notes", "--"],
        );
        let outcome = claude.started_by(program, "Tidy the notes.").run();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stdout.contains("The notes are tidy."), "it saw its own reservation: {outcome:?}");
        assert_eq!(reserved(&stage), Vec::<String>::new());
        let report = reports(&stage);
        assert!(report.contains("tidies the notes: done") && report.contains("The notes are tidy."), "{report}");
    });
}

#[test]
fn a_run_that_fails_is_stopped_or_finds_the_way_barred_gives_everything_back() {
    let stage = stage();
    let failing =
        ["--as", "ci", "--reserve", "src/**", "--report", "boss", "--", "sh", "-c", "echo 3 of 40 failed; exit 9"];
    let outcome = dispatch(&stage, &failing).run();
    assert_eq!(outcome.code, Some(9), "its end is the command's: {outcome:?}");
    assert_eq!(reserved(&stage), Vec::<String>::new());
    assert!(reports(&stage).contains("3 of 40 failed"));

    // If the output is not valid UTF-8 or was cut within a character, its valid text is reported.
    for (prints, expected) in [
        (r"printf 'wei\377rd \303end'", "weird end"),
        (r"printf 'ü%.0s' $(seq 3000); printf '\nlast line.'", "last line."),
    ] {
        let outcome = dispatch(&stage, &["--as", "ci", "--report", "boss", "--", "sh", "-c", prints]).run();
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{prints}");
        assert!(reports(&stage).contains(expected), "{prints}: {}", reports(&stage));
    }
    let nameless = dispatch(&stage, &["--as", "Bad", "--report", "boss", "--", "touch", "ran"]).run();
    assert_eq!(nameless.code, Some(2), "{nameless:?}");
    assert!(!nameless.stderr.contains("lapses"), "it reserved nothing: {nameless:?}");

    stage.relay_ok(&["reserve", "src/lib.rs", "--from", "boss"]);
    let outcome =
        dispatch(&stage, &["--as", "ci", "--reserve", "docs", "--reserve", "src/**", "--", "touch", "ran"]).run();
    assert_eq!(outcome.code, Some(6), "{outcome:?}");
    assert!(outcome.stdout.contains("held by boss") || outcome.stderr.contains("held by boss"), "{outcome:?}");
    assert!(!stage.project.join("ran").exists(), "nothing is run without its reservation");
    assert_eq!(reserved(&stage), ["boss src/lib.rs"], "all or nothing");
    stage.relay_ok(&["release", "--all", "--from", "boss"]);

    // The command reports that it runs, and waits for a signal.
    let waits = "trap 'echo tidied > stopped; exit 0' TERM; : > begun; while :; do sleep 0.05; done";
    let mut running =
        dispatch(&stage, &["--as", "ci", "--reserve", "src/**", "--report", "boss", "--", "sh", "-c", waits])
            .start(&stage.folder.join("dispatch.log"));
    wait_for("it has begun", || stage.project.join("begun").exists().then_some(()));
    assert_eq!(reserved(&stage), ["ci src/**"].map(str::to_owned));
    let task = stage.relay_ok(&["agents"]);
    assert!(task.contains("runs sh"), "{task}");
    assert_eq!(running.stop(), Some(143));
    assert!(stage.project.join("stopped").exists(), "the command was stopped too, and waited for");
    assert_eq!(reserved(&stage), Vec::<String>::new());
    assert!(reports(&stage).contains("stopped by SIGTERM"));
}

#[test]
fn a_run_that_is_killed_is_taken_up_by_the_next_one() {
    let stage = stage();
    let mut running =
        dispatch(&stage, &["--as", "ci", "--reserve", "src/**", "--", "sh", "-c", "echo $$ > begun; exec sleep 600"])
            .start(&stage.folder.join("dispatch.log"));
    let pid = wait_for("it has begun", || {
        let text = std::fs::read_to_string(stage.project.join("begun")).ok()?;
        text.trim().parse::<u32>().ok()
    });
    running.kill();
    assert_eq!(reserved(&stage), ["ci src/**"], "nobody gave it back");
    let other = stage.run(&["reserve", "src/a.rs", "--from", "boss"]);
    assert_eq!(other.code, Some(6), "until it lapses it is held");
    Program::new("kill").arg(pid.to_string()).run();
    // It keeps its name although mail has arrived meanwhile.
    stage.relay_ok(&["send", "ci", "are you there?", "--from", "boss"]);
    let outcome = dispatch(&stage, &["--as", "ci", "--reserve", "src/**", "--", "true"]).run();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(reserved(&stage), Vec::<String>::new());
    assert_eq!(stage.relay_ok(&["agents", "--json"]).matches("\"name\"").count(), 2, "it is the same agent");
}

#[test]
fn a_wrong_command_line_does_nothing() {
    let stage = stage();
    for arguments in
        [&["--as", "ci"] as &[&str], &["--", "true"], &["--as"], &["--reserve", "x", "--", "true"], &["true"]]
    {
        let outcome = dispatch(&stage, arguments).run();
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains("usage: "), "{outcome:?}");
    }
    let agents = stage.relay_ok(&["agents", "--json"]);
    assert_eq!(agents.matches("\"name\"").count(), 1, "{agents}");
}
