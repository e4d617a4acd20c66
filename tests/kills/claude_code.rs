//! Claude Code, killed after each of its hooks that carries mail, and after a fetch.

use std::sync::Arc;

use serde_json::json;
use test_support::{
    AFTERWARDS, ClaudeCode, Client, DeliveryHistory, HookGate, Killed, Model, ModelAnswer, Script, Stage, Terminal,
    isolated, send, send_with, session_of, wait_for,
};

use crate::{QUIETLY, TEXT, is_missed, only, stage};

const REGISTER: &str = "mcp__relay-mesh__register_agent";

#[test]
fn killed_after_a_wake_of_a_session_that_was_opened_again() {
    isolated(|| {
        let (stage, gate) = gated();
        let model = Model::start(joining());
        let client = ClaudeCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        terminal.kill();
        is_missed(&stage);
        let id = send(&stage, "alice", TEXT);
        gate.close("FileChanged");
        let terminal = client.open_with(&["--resume", &session]);
        gate.wait_until_reached("FileChanged");
        terminal.kill();
        let killed = killed(&stage, &model, "FileChanged", "idle, opened again", &id);
        comes_again(&stage, &model, &client, &session, killed);
    });
}

#[test]
fn killed_after_a_users_prompt() {
    isolated(|| {
        let (stage, gate) = gated();
        let model = Model::start(joining());
        let client = ClaudeCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        let id = send_with(&stage, "alice", TEXT, QUIETLY);
        gate.close("UserPromptSubmit");
        terminal.type_line("Hello.");
        gate.wait_until_reached("UserPromptSubmit");
        terminal.kill();
        let killed = killed(&stage, &model, "UserPromptSubmit", "its hook had just answered", &id);
        comes_again(&stage, &model, &client, &session, killed);
    });
}

#[test]
fn killed_after_a_tool() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let read = json!({"file_path": stage.project.join("README.md")});
        let model = Model::start(joining().answer_with("Read the readme", move |_| {
            send_with(&mail, "alice", TEXT, QUIETLY);
            ModelAnswer::Call { tool: "Read".to_owned(), input: read.clone() }
        }));
        let client = ClaudeCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        gate.close("PostToolUse");
        terminal.type_line("Read the readme.");
        gate.wait_until_reached("PostToolUse");
        terminal.kill();
        let killed = killed(&stage, &model, "PostToolUse", "its hook had just answered", &only(&stage));
        comes_again(&stage, &model, &client, &session, killed);
    });
}

#[test]
fn killed_after_a_fetch() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let model = Model::start(joining().answer_with("Look for mail", move |_| {
            send_with(&mail, "alice", TEXT, QUIETLY);
            ModelAnswer::Call { tool: Client::ClaudeCode.tool("fetch_messages"), input: json!({}) }
        }));
        let client = ClaudeCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        gate.close("PostToolUse");
        terminal.type_line("Look for mail.");
        gate.wait_until_reached("PostToolUse");
        terminal.kill();
        let client_of = ("claude-code", Client::ClaudeCode.version(&stage));
        let point = ("fetch", "it had the reply");
        let killed = Killed::in_history(&stage, &model, client_of, point, (&only(&stage), TEXT)).went_out();
        comes_again(&stage, &model, &client, &session, killed);
    });
}

#[test]
fn killed_at_the_end_of_a_turn() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let model = Model::start(joining().answer_with("Do it", move |_| {
            send_with(&mail, "alice", TEXT, QUIETLY);
            ModelAnswer::Say("I am done.".to_owned())
        }));
        let client = ClaudeCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        gate.close("Stop");
        terminal.type_line("Do it.");
        gate.wait_until_reached("Stop");
        terminal.kill();
        let killed = killed(&stage, &model, "Stop", "its hook had just answered", &only(&stage));
        comes_again(&stage, &model, &client, &session, killed);
    });
}

#[test]
fn killed_after_a_wake_while_a_tool_ran() {
    isolated(|| {
        let stage = installed();
        let work = json!({"command": "touch begun && tail -f begun"});
        let model = Model::start(joining().call("Take your time", "Bash", work));
        let client = ClaudeCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        terminal.type_line("Take your time.");
        wait_for("the tool runs", || stage.project.join("begun").exists().then_some(()));
        let id = send(&stage, "alice", TEXT);
        DeliveryHistory::up_to(&stage, &id, "accepted");
        terminal.kill();
        let killed = killed(&stage, &model, "FileChanged", "a tool ran", &id);
        comes_again(&stage, &model, &client, &session, killed);
    });
}

#[test]
fn killed_after_a_wake_of_an_idle_session() {
    isolated(|| {
        let (stage, gate) = gated();
        let model = Model::start(joining());
        let client = ClaudeCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        gate.close("FileChanged");
        let id = send(&stage, "alice", TEXT);
        gate.wait_until_reached("FileChanged");
        terminal.kill();
        let killed = killed(&stage, &model, "FileChanged", "idle, its hook had just answered", &id);
        comes_again(&stage, &model, &client, &session, killed);
    });
}

fn killed(stage: &Stage, model: &Model, hook: &str, point: &str, id: &str) -> Killed {
    let route = format!("hook:{hook}");
    assert_eq!(DeliveryHistory::of(stage, id).route("accepted").as_deref(), Some(route.as_str()));
    let client = ("claude-code", Client::ClaudeCode.version(stage));
    Killed::at(stage, model, client, (&route, point), (id, TEXT))
}

fn comes_again(stage: &Stage, model: &Model, client: &ClaudeCode<'_>, session: &str, killed: Killed) {
    send_with(stage, "alice", AFTERWARDS, QUIETLY);
    let terminal = client.open_with(&["--resume", session]);
    terminal.type_line("Good morning");
    killed.comes_again(stage, model);
    assert_eq!(session_of(stage, "alice").as_deref(), Some(session), "under the same name");
}

fn joined(stage: &Stage, client: &ClaudeCode<'_>) -> (Terminal, String) {
    let terminal = client.open();
    terminal.type_line("Join the mesh as alice.");
    terminal.wait_for("● I am alice.");
    terminal.wait_until_gone("esc to interrupt");
    wait_for("the turn is over", || test_support::presence_of(stage, "alice").filter(|presence| presence == "idle"));
    (terminal, session_of(stage, "alice").expect("alice is bound to her session"))
}

fn joining() -> Script {
    Script::new().call("Join the mesh", REGISTER, json!({"name": "alice"})).say("alice", "I am alice.")
}

fn installed() -> Arc<Stage> {
    let stage = stage();
    Client::ClaudeCode.install(&stage);
    stage
}

/// A project whose hooks can be stopped.
fn gated() -> (Arc<Stage>, HookGate) {
    let stage = installed();
    let gate = HookGate::new(&stage);
    // Its hooks name the program by its path.
    let settings = stage.project.join(".claude/settings.local.json");
    let text = std::fs::read_to_string(&settings).expect("it is installed");
    let ours = format!("\"{}\"", stage.binary().display());
    assert!(text.contains(&ours), "{text}");
    std::fs::write(&settings, text.replace(&ours, &format!("\"{}\"", gate.program()))).expect("it is writable");
    (stage, gate)
}
