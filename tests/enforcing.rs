//! The real clients edit files that another agent holds: the hook refuses, the model is told who holds the file, and
//! after the release the same edit passes. Only the model is scripted.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{ClaudeCode, Codex, Headless, Model, ModelAnswer, OpenCode, Script, Stage, isolated};

/// The text of every refusal, in all harnesses.
const REFUSED: &str = "- src/a.rs is held by alice through src/** (exclusive, ";
/// The holder's reason.
const REASON: &str = "new grammar";

#[test]
fn claude_code_writes_what_another_holds_only_once_it_is_released() {
    isolated(|| {
        let edit = |stage: &Stage| ModelAnswer::Call {
            tool: "Write".to_owned(),
            input: json!({"file_path": file(stage), "content": "fn a() {}\n"}),
        };
        refused_then_written("claude-code", edit, |stage, model| {
            ClaudeCode::new(stage, model).ask("Write it.", &["--permission-mode", "acceptEdits"])
        });
    });
}

#[test]
fn codex_writes_what_another_holds_only_once_it_is_released() {
    isolated(|| {
        let edit = |_: &Stage| ModelAnswer::Call {
            tool: "apply_patch".to_owned(),
            input: Value::from("*** Begin Patch\n*** Add File: src/a.rs\n+fn a() {}\n*** End Patch\n"),
        };
        refused_then_written("codex", edit, |stage, model| {
            Codex::new(stage, model).ask("Write it.", &["--dangerously-bypass-approvals-and-sandbox"])
        });
    });
}

#[test]
fn opencode_writes_what_another_holds_only_once_it_is_released() {
    isolated(|| {
        let edit = |stage: &Stage| ModelAnswer::Call {
            tool: "write".to_owned(),
            input: json!({"filePath": file(stage), "content": "fn a() {}\n"}),
        };
        refused_then_written("opencode", edit, |stage, model| OpenCode::new(stage, model).ask("Write it.", &[]));
    });
}

#[test]
fn cursor_is_answered_in_its_own_form_by_the_payloads_that_are_known_of_it() {
    let stage = alice_holds("cursor");
    let recorded = include_str!("../plugins/cursor/fixtures/hooks/documented-preToolUse-Write.json");
    let mut payload = serde_json::from_str::<Value>(recorded).expect("JSON")["payload"].clone();
    payload["workspace_roots"] = json!([stage.project]);
    let hook = |path: &str| -> Value {
        let mut payload = payload.clone();
        payload["tool_input"] = json!({"file_path": stage.project.join(path), "content": "fn a() {}"});
        let told = stage.relay(&["hook", "cursor", "preToolUse"]).input(payload.to_string()).succeed();
        serde_json::from_str(&told).expect("JSON")
    };
    let refused = hook("src/a.rs");
    assert_eq!(refused["permission"], "deny", "{refused}");
    for reader in ["user_message", "agent_message"] {
        assert!(
            refused[reader].as_str().is_some_and(|told| told.contains(REFUSED) && told.contains(REASON)),
            "{refused}"
        );
    }
    assert_eq!(hook("docs/a.md"), json!({}), "nobody holds that");
    stage.relay_ok(&["release", "src", "--from", "alice"]);
    assert_eq!(hook("src/a.rs"), json!({}), "after the release it is written");
}

#[test]
fn where_a_project_only_advises_the_edit_passes_and_the_model_is_told() {
    isolated(|| {
        let stage = alice_holds("claude-code");
        stage.relay_ok(&["reservations", "mode", "advise"]);
        let model = Model::start(
            Script::new()
                .call("Write it", "Write", json!({"file_path": file(&stage), "content": "fn a() {}\n"}))
                .say(REFUSED, "I shall tell alice."),
        );
        let run = ClaudeCode::new(&stage, &model).ask("Write it.", &["--permission-mode", "acceptEdits"]);
        assert_eq!(run.result, "I shall tell alice.", "{:?}", run.outcome);
        assert!(file(&stage).exists(), "it was not refused");
        let told = model.wait_for_news(REFUSED).news();
        assert!(told.contains("It was not refused, because this project only advises."), "{told}");
    });
}

#[test]
fn what_claude_code_edits_is_reserved_for_it_where_that_is_wished() {
    isolated(|| {
        let stage = stage("claude-code");
        std::fs::write(stage.project.join(".relay-mesh.toml"), "[reservations]\nauto-reserve = true\n")
            .expect("written");
        let model = Model::start(
            Script::new()
                .call("Join and write", "mcp__relay-mesh__register_agent", json!({"name": "bob"}))
                .call("bob", "Write", json!({"file_path": file(&stage), "content": "fn a() {}\n"}))
                .say("created", "It is written."),
        );
        let run = ClaudeCode::new(&stage, &model).ask("Join and write it.", &["--permission-mode", "acceptEdits"]);
        assert_eq!(run.result, "It is written.", "{:?}", run.outcome);
        let held: Value = serde_json::from_str(&stage.relay_ok(&["reservations", "--json"])).expect("JSON");
        let held = &held["reservations"][0];
        assert_eq!(
            (&held["owner"], &held["pattern"], &held["mode"], &held["reason"]),
            (&json!("bob"), &json!("src/a.rs"), &json!("exclusive"), &json!("auto: it is being edited"))
        );
    });
}

/// The model edits a file, is refused, gets it released, and edits it again.
fn refused_then_written(
    harness: &str,
    edit: impl Fn(&Stage) -> ModelAnswer + Send + Copy + 'static,
    run: impl Fn(&Stage, &Model) -> Headless,
) {
    let stage = alice_holds(harness);
    let (first, again) = (Arc::clone(&stage), Arc::clone(&stage));
    let model = Model::start(
        Script::new()
            .answer_with("Write it", move |_| edit(&first))
            .answer_with(REFUSED, move |_| {
                assert!(!file(&again).exists(), "what was refused was not written");
                again.relay_ok(&["release", "src", "--from", "alice"]);
                edit(&again)
            })
            .say("", "It is written."),
    );
    let ran = run(&stage, &model);
    assert_eq!(ran.result, "It is written.", "{:?}", ran.outcome);
    model.wait_until_spoken();
    let told = model.wait_for_news(REFUSED).news();
    assert!(told.contains(REASON) && told.contains("Ask alice to release it"), "{told}");
    let written = std::fs::read_to_string(file(&stage)).expect("after the release it is written");
    assert_eq!(written, "fn a() {}\n");
}

/// A stage with a harness set up, on which alice holds the sources.
fn alice_holds(harness: &str) -> Arc<Stage> {
    let stage = stage(harness);
    stage.relay_ok(&["register", "alice"]);
    stage.relay_ok(&["reserve", "src", "--from", "alice", "--reason", REASON]);
    stage
}

fn stage(harness: &str) -> Arc<Stage> {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    std::fs::create_dir(stage.project.join("src")).expect("the project is writable");
    stage.relay_ok(&["install", harness, "--project", &stage.project.display().to_string(), "--yes"]);
    Arc::new(stage)
}

fn file(stage: &Stage) -> PathBuf {
    stage.project.join("src/a.rs")
}
