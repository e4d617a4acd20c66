//! Gemini CLI, killed after each of its hooks that carries mail.

use std::sync::Arc;

use serde_json::json;
use test_support::{
    AFTERWARDS, DeliveryHistory, Gemini, HookGate, Killed, Model, ModelAnswer, Script, Stage, Terminal, isolated,
    presence_of, send, send_with, session_of, wait_for,
};

use crate::{QUIETLY, TEXT, only, stage};

#[test]
fn killed_after_a_users_prompt() {
    isolated(|| {
        let (stage, gate) = gated();
        let model = Model::start(joining());
        let gemini = Gemini::new(&stage, &model).with("RELAY_MESH_BIN", &gate.program());
        let (terminal, session) = joined(&stage, &gemini);
        // Before the message, because the hook of the turn's end would carry it too. Nothing wakes it.
        gate.close("BeforeAgent");
        let id = send(&stage, "alice", TEXT);
        Gemini::prompt(&terminal, "Hello.");
        gate.wait_until_reached("BeforeAgent");
        terminal.kill();
        let killed = killed(&stage, &model, "BeforeAgent", &id);
        comes_again(&stage, &model, &gemini, &session, killed);
    });
}

#[test]
fn killed_after_a_tool() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let read = json!({"file_path": stage.project.join("README.md")});
        let model = Model::start(joining().answer_with("Read the readme", move |_| {
            send(&mail, "alice", TEXT);
            ModelAnswer::Call { tool: "read_file".to_owned(), input: read.clone() }
        }));
        let gemini = Gemini::new(&stage, &model).with("RELAY_MESH_BIN", &gate.program());
        let (terminal, session) = joined(&stage, &gemini);
        gate.close("AfterTool");
        Gemini::prompt(&terminal, "Read the readme.");
        gate.wait_until_reached("AfterTool");
        terminal.kill();
        let killed = killed(&stage, &model, "AfterTool", &only(&stage));
        comes_again(&stage, &model, &gemini, &session, killed);
    });
}

#[test]
fn killed_after_a_fetch() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let model = Model::start(joining().answer_with("Look for mail", move |_| {
            send_with(&mail, "alice", TEXT, QUIETLY);
            ModelAnswer::Call { tool: Gemini::tool("fetch_messages"), input: json!({}) }
        }));
        let gemini = Gemini::new(&stage, &model).with("RELAY_MESH_BIN", &gate.program());
        let (terminal, session) = joined(&stage, &gemini);
        gate.close("AfterTool");
        Gemini::prompt(&terminal, "Look for mail.");
        gate.wait_until_reached("AfterTool");
        terminal.kill();
        let client = ("gemini-cli", Gemini::version(&stage));
        let killed =
            Killed::in_history(&stage, &model, client, ("fetch", "it had the reply"), (&only(&stage), TEXT)).went_out();
        comes_again(&stage, &model, &gemini, &session, killed);
    });
}

#[test]
fn killed_at_the_end_of_a_turn() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let model = Model::start(joining().answer_with("Do it", move |_| {
            send(&mail, "alice", TEXT);
            ModelAnswer::Say("I am done.".to_owned())
        }));
        let gemini = Gemini::new(&stage, &model).with("RELAY_MESH_BIN", &gate.program());
        let (terminal, session) = joined(&stage, &gemini);
        gate.close("AfterAgent");
        Gemini::prompt(&terminal, "Do it.");
        gate.wait_until_reached("AfterAgent");
        terminal.kill();
        let killed = killed(&stage, &model, "AfterAgent", &only(&stage));
        comes_again(&stage, &model, &gemini, &session, killed);
    });
}

fn killed(stage: &Stage, model: &Model, hook: &str, id: &str) -> Killed {
    let route = format!("hook:{hook}");
    assert_eq!(DeliveryHistory::of(stage, id).route("accepted").as_deref(), Some(route.as_str()));
    let client = ("gemini-cli", Gemini::version(stage));
    Killed::at(stage, model, client, (&route, "its hook had just answered"), (id, TEXT))
}

fn comes_again(stage: &Stage, model: &Model, gemini: &Gemini<'_>, session: &str, killed: Killed) {
    send_with(stage, "alice", AFTERWARDS, QUIETLY);
    let terminal = gemini.open_with(&["--resume", session]);
    Gemini::prompt(&terminal, "Good morning");
    killed.comes_again(stage, model);
    assert_eq!(session_of(stage, "alice").as_deref(), Some(session), "under the same name");
}

fn joined(stage: &Stage, gemini: &Gemini<'_>) -> (Terminal, String) {
    let terminal = gemini.open();
    Gemini::prompt(&terminal, "Join the mesh as alice.");
    Gemini::says(&terminal, "I am alice.");
    // Its words are on screen before its hook says that the turn is over.
    wait_for("alice waits", || (presence_of(stage, "alice")? == "idle").then_some(()));
    (terminal, session_of(stage, "alice").expect("alice is bound to her session"))
}

fn joining() -> Script {
    Script::new()
        .call("Join the mesh", &Gemini::tool("register_agent"), json!({"name": "alice"}))
        .say("you are `alice`", "I am alice.")
}

fn gated() -> (Arc<Stage>, HookGate) {
    let stage = stage();
    stage.relay_ok(&["install", "gemini-cli", "--project", &stage.project_path(), "--yes"]);
    let gate = HookGate::new(&stage);
    (stage, gate)
}
