//! What comes of a run when something goes wrong, with each real client and a scripted model: the server refuses, fails,
//! breaks off or hangs, a limit is reached, a tool is denied, and one of the processes is stopped or killed. All of it takes
//! a quarter of an hour and so is not part of `make test`: `make run-faults` writes what it has seen into docs/runs.json and
//! docs/runs.md. What each run of the tests sees of that is held against it (tests/seen_tables.rs).

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use test_support::{Behaviour, ModelAnswer, Program, RunScene, Script, Stage, isolated, says, wait_for};

/// The harness's call that writes a file.
fn writes(harness: &str, file: &Path) -> ModelAnswer {
    let made = file.display().to_string();
    let (tool, input) = match harness {
        "claude-code" => ("Write", json!({"file_path": made, "content": "made"})),
        "codex" => ("exec_command", json!({"cmd": format!("echo made > {made}")})),
        "opencode" => ("write", json!({"filePath": made, "content": "made"})),
        _ => ("write_file", json!({"file_path": made, "content": "made"})),
    };
    ModelAnswer::Call { tool: tool.to_owned(), input }
}

/// The harness's call that runs a program, which leaves a file.
fn runs_a_program(harness: &str, file: &Path) -> ModelAnswer {
    let command = format!("echo ran > {}", file.display());
    let (tool, input) = match harness {
        "claude-code" => ("Bash", json!({"command": command, "description": "Leave a file"})),
        "codex" => ("exec_command", json!({"cmd": command})),
        "opencode" => ("bash", json!({"command": command, "description": "Leave a file"})),
        _ => ("run_shell_command", json!({"command": command})),
    };
    ModelAnswer::Call { tool: tool.to_owned(), input }
}

/// Sets a harness up, whose model can call its tool that writes a file, and gives an answer by a schema.
fn scene(harness: &'static str, table: &'static str) -> RunScene {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let script = match harness {
        "claude-code" => Script::new().call("Give me n", "StructuredOutput", json!({"n": 1})),
        _ => Script::new().say("Give me n", "{\"n\": 1}"),
    };
    let call = writes(harness, &stage.project.join("made.txt"));
    RunScene::of(harness, table, stage, script.answer_with("Write it", move |_| call.clone()))
}

/// Signals the run, its guard or its harness while its model hangs, and notes what came of it.
fn struck(scene: &RunScene, whom: &str, signal: &str) {
    scene.model.behaves(Some(Behaviour::Answers(ModelAnswer::Talk("I begin".to_owned()))));
    let before = (scene.newest(), scene.model.heard().len());
    let program = scene.relay(&["run", scene.harness, "Begin", "--timeout", "60", "--json"]);
    let mut run = program.start(&scene.stage.folder.join("run.log"));
    let (folder, running) = wait_for("the model hangs", || {
        let folder = scene.newest().filter(|newest| Some(newest) != before.0.as_ref())?;
        let running = std::fs::read(folder.join("running-1")).ok()?;
        let running: Value = serde_json::from_slice(&running).ok()?;
        let ready = running["program"]["pid"].is_u64() && scene.model.heard().len() > before.1;
        ready.then_some((folder, running))
    });
    let pid = match whom {
        "run" => u64::from(run.child.id()),
        "guard" => running["guard"]["pid"].as_u64().expect("a number"),
        _ => running["program"]["pid"].as_u64().expect("a number"),
    };
    Program::new("kill").args([format!("-{signal}"), pid.to_string()]).succeed();
    run.ended();
    scene.nothing_is_left();
    let result = wait_for("the run has a result", || {
        scene.stage.relay_ok(&["runs", "list", "--json"]);
        serde_json::from_slice::<Value>(&std::fs::read(folder.join("result.json")).ok()?).ok()
    });
    assert_eq!(result["ok"], false, "{whom} {signal}: {result}");
    scene.note(&format!("SIG{signal} to {whom}"), &result);
}

/// What goes wrong between a harness and its model, and what a task may ask for.
fn faults(harness: &'static str) {
    let mut scene = scene(harness, "faults");
    // By itself it would ask for longer than these runs last.
    scene.environment.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), "1".to_owned()));
    let schema =
        r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
    let first = scene.case("an answer", says("I am done."), "Begin", &[]);
    assert_eq!(first["structured"]["response"], "I am done.", "{first}");
    scene.stops_by();
    let kept = scene.case("a schema that is kept", None, "Give me n.", &["--schema", schema]);
    assert_eq!(kept["output"], json!({"n": 1}), "{kept}");
    let broken = scene.case("a schema that is not", says("One."), "Give me another.", &["--schema", schema]);
    assert_eq!((&broken["ended"], &broken["output"]), (&json!("shape"), &Value::Null), "{broken}");
    scene.case("HTTP 401", Some(Behaviour::Refuses(401)), "Begin", &[]);
    scene.case("HTTP 429", Some(Behaviour::Refuses(429)), "Begin", &["--timeout", "12"]);
    scene.case("HTTP 500", Some(Behaviour::Refuses(500)), "Begin", &["--timeout", "12"]);
    scene.case(
        "a stream that breaks off",
        Some(Behaviour::BreaksOff("I am".to_owned())),
        "Begin",
        &["--timeout", "20"],
    );
    let hangs = Some(Behaviour::Answers(ModelAnswer::Talk("I begin".to_owned())));
    let late = scene.case("a model that hangs", hangs, "Begin", &["--timeout", "5"]);
    assert_eq!(late["ended"], "time", "{late}");
    let denied = scene.case("a tool that is not allowed", None, "Write it.", &[]);
    assert!(!scene.stage.project.join("made.txt").exists(), "{denied}");
    let session = first["session"].as_str().expect("a session").to_owned();
    let resumed = scene.case("--resume", says("I go on."), "Go on", &["--resume", &session]);
    assert_eq!((&resumed["ok"], &resumed["session"]), (&json!(true), &json!(session)), "{resumed}");
    let forked = scene.case("--fork", says("I go my way."), "Go on", &["--fork", &session]);
    assert_ne!(forked["session"], json!(session), "{forked}");
    scene.limits();
    scene.model.behaves(says("That was long."));
    let long = format!("Begin {}", "x".repeat(200_000));
    let program = scene.relay(&["run", harness, "--stdin", "--timeout", "60", "--json"]).input(long);
    let long: Value = serde_json::from_str(program.run().stdout.trim()).expect("JSON");
    assert_eq!(long["ok"], true, "{}", long["why"]);
    scene.note("a task of 200 KB", &long);
}

/// Signals to each of the processes, while the model hangs.
fn signals(harness: &'static str) {
    let scene = scene(harness, "signals");
    for whom in ["run", "guard", "harness"] {
        for signal in ["INT", "TERM", "KILL"] {
            struck(&scene, whom, signal);
        }
    }
}

/// How far each reach goes: what a model gets done that wants to write a file and to run a program.
const REACHES: [&str; 4] = ["look", "edit", "work", "unguarded"];

/// What a harness can, as its runs show it.
fn abilities(harness: &'static str) {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let file = |kind: &str, reach: &str| stage.project.join(format!("{kind}-{reach}.txt"));
    // In each run the model first writes a file, then runs a program.
    let next: Arc<Mutex<Option<ModelAnswer>>> = Arc::default();
    let mut script = Script::new();
    for reach in REACHES {
        let (write, run) = (writes(harness, &file("made", reach)), runs_a_program(harness, &file("ran", reach)));
        let next = Arc::clone(&next);
        script = script.answer_with(&format!("Do it with the reach {reach}"), move |_| {
            *next.lock().expect("no panic") = Some(run.clone());
            write.clone()
        });
    }
    let script = script.otherwise(move |_| {
        let next = next.lock().expect("no panic").take();
        next.unwrap_or_else(|| ModelAnswer::Say("I am done.".to_owned()))
    });
    let (made, ran) = (REACHES.map(|reach| file("made", reach)), REACHES.map(|reach| file("ran", reach)));
    let scene = RunScene::of(harness, "abilities", stage, script);
    for (at, reach) in REACHES.into_iter().enumerate() {
        let task = format!("Do it with the reach {reach}.");
        let here: &[&str] = if reach == "look" { &[] } else { &["--here"] };
        let name = format!("--reach {reach}");
        let result = scene.unseen(None, &task, &[&["--reach", reach, "--timeout", "60"], here].concat());
        let done = match (made[at].exists(), ran[at].exists()) {
            (true, true) => "writes files, runs programs",
            (true, false) => "writes files",
            (false, true) => "runs programs",
            (false, false) => "changes nothing",
        };
        let ended = result["ended"].as_str().unwrap_or("refused");
        let cell = match (ended, done) {
            ("answered", done) => done.to_owned(),
            (ended, "changes nothing") => ended.to_owned(),
            (ended, done) => format!("{done}, then {ended}"),
        };
        if reach == "look" {
            assert_eq!(done, "changes nothing", "{result}");
            let listed = result["denials"].as_array().is_some_and(|denials| !denials.is_empty());
            scene.seen("says what it denied", yes(listed));
        }
        scene.seen(&name, &cell);
    }
    let first = scene.unseen(None, "Begin", &[]);
    let session = first["session"].as_str().unwrap_or_default().to_owned();
    let usage = &first["usage"];
    let counted = [("input", "input_tokens"), ("cached", "cached_input_tokens"), ("output", "output_tokens")];
    let counted = counted.iter().filter(|(_, name)| usage[*name].is_u64()).map(|(word, _)| *word).collect::<Vec<_>>();
    let counted = if counted.is_empty() { "no".to_owned() } else { counted.join(", ") };
    for (name, cell) in [
        ("names its session", yes(!session.is_empty())),
        ("counts tokens", counted.as_str()),
        ("counts cost", yes(usage["cost_usd"].is_number())),
        ("counts turns", yes(first["turns"].is_u64())),
    ] {
        scene.seen(name, cell);
    }
    for (flag, most) in [("--schema", r#"{"type":"object"}"#), ("--turns", "3"), ("--budget", "1")] {
        let bound = scene.unseen(None, "Begin", &[flag, most]);
        let is_kept = bound["refused"].is_null() && !bound["without"].to_string().contains("no schema");
        scene.seen(flag, yes(is_kept));
    }
    for flag in ["--resume", "--fork"] {
        let result = scene.unseen(None, "Go on", &[flag, &session]);
        scene.seen(flag, yes(result["ok"] == true));
    }
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn claude_code_and_a_model_that_fails() {
    isolated(|| faults("claude-code"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn codex_and_a_model_that_fails() {
    isolated(|| faults("codex"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn gemini_cli_and_a_model_that_fails() {
    isolated(|| faults("gemini-cli"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn opencode_and_a_model_that_fails() {
    isolated(|| faults("opencode"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn what_claude_code_can() {
    isolated(|| abilities("claude-code"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn what_codex_can() {
    isolated(|| abilities("codex"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn what_gemini_cli_can() {
    isolated(|| abilities("gemini-cli"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn what_opencode_can() {
    isolated(|| abilities("opencode"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn claude_code_is_stopped_and_killed() {
    isolated(|| signals("claude-code"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn codex_is_stopped_and_killed() {
    isolated(|| signals("codex"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn gemini_cli_is_stopped_and_killed() {
    isolated(|| signals("gemini-cli"));
}

#[test]
#[ignore = "each takes minutes: `make run-faults`"]
fn opencode_is_stopped_and_killed() {
    isolated(|| signals("opencode"));
}
