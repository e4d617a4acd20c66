//! Pausing with the real binary and the real Claude Code: nothing begins a turn, a tool is refused with the reason, and what
//! has waited comes in order. Only the model is scripted.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::{ClaudeCode, Model, Outcome, Script, Stage, isolated, send, wait_for};

const REGISTER: &str = "mcp__relay-mesh__register_agent";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// What `agents --json` says of the first agent.
fn first(stage: &Stage) -> Value {
    let agents: Value = serde_json::from_str(&stage.relay_ok(&["agents", "--json"])).expect("JSON");
    agents["agents"][0].clone()
}

#[test]
fn only_the_user_pauses_and_it_is_shown_until_they_resume() {
    let stage = stage();
    for name in ["alice", "bob"] {
        stage.relay_ok(&["register", name]);
    }
    let check = |outcome: &Outcome, code: i32, words: &str| {
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{words}: {outcome:?}");
    };
    check(&stage.run(&["pause"]), 2, "AGENT");
    check(&stage.run(&["pause", "carol"]), 3, "no agent named `carol`");
    check(&stage.run(&["pause", "alice", "carol"]), 3, "no agent named `carol`");
    assert!(first(&stage)["paused"].is_null(), "nothing is half done");
    for (name, value) in [("RELAY_OPENCODE_SESSION", "ses_1"), ("RELAY_RUN", "01JD8Z3K5V0000000000000000")] {
        for words in [&["pause", "alice"][..], &["resume", "--all"]] {
            check(&stage.relay(words).env(name, value).run(), 4, "this shell belongs to an agent");
        }
    }
    check(&stage.run(&["pause", "alice"]), 0, "`relay-mesh resume alice` lets it go on");
    assert!(stage.relay_ok(&["send", "alice", "hello"]).contains("stored for alice (paused)"));
    assert_eq!(stage.relay_ok(&["pause", "--all"]), "bob is paused\n");
    assert_eq!(first(&stage)["paused"], true);
    let listed = stage.relay_ok(&["status", "--agents"]);
    assert_eq!(listed.matches("its user has paused it; ").count(), 2, "{listed}");
    assert_eq!(stage.relay_ok(&["resume", "alice", "bob"]), "alice is resumed\nbob is resumed\n");
    check(&stage.run(&["resume", "--all"]), 0, "none of them was paused");
    assert!(first(&stage)["paused"].is_null());
}

#[test]
fn the_real_claude_code_begins_no_turn_and_uses_no_tool_while_it_is_paused() {
    isolated(|| {
        let stage = stage();
        stage.relay_ok(&["install", "claude-code", "--project", &stage.project_path(), "--yes"]);
        let file = stage.project.join("new.txt");
        let script = Script::joining(REGISTER, "alice")
            .call("Write it", "Write", json!({"file_path": file, "content": "written"}))
            .say("your user has paused you", "I am paused.")
            .say("Second of two", "I have read both.");
        let model = Model::start(script);
        let terminal = ClaudeCode::new(&stage, &model).open();
        terminal.type_line("Join the mesh as alice.");
        terminal.wait_for("● I am alice.");
        terminal.wait_until_gone("esc to interrupt");
        stage.relay_ok(&["pause", "alice"]);
        send(&stage, "alice", "First of two.");
        send(&stage, "alice", "Second of two.");
        // The wake file was written, and a turn would begin within a second.
        std::thread::sleep(Duration::from_secs(4));
        assert_eq!(model.times_told("First of two"), 0, "{}", terminal.screen());
        terminal.type_line("Write it.");
        terminal.wait_for("I am paused.");
        terminal.wait_until_gone("esc to interrupt");
        assert!(!file.exists(), "the tool was refused");
        assert_eq!((model.times_told("First of two"), first(&stage)["waiting"].clone()), (0, json!(2)));
        stage.relay_ok(&["resume", "alice"]);
        let told = model.wait_for_news("Second of two").news();
        let (one, two) = (told.find("First of two"), told.find("Second of two"));
        assert!(one.is_some() && one < two, "in order: {told}");
        wait_for("nothing waits", || (first(&stage)["waiting"] == 0).then_some(()));
    });
}
