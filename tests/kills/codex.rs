//! Codex, killed after each of its hooks that carries mail, after a turn that its app server was given, after
//! urgent mail broke into one, and after the queue was given a notification.

use std::sync::Arc;

use serde_json::json;
use test_support::{
    AFTERWARDS, AppServer, Client, Codex, DeliveryHistory, HookGate, Killed, Model, ModelAnswer, Stage, Terminal,
    isolated, send, send_with, session_of,
};

use crate::{QUIETLY, TEXT, only, stage};

#[test]
fn killed_after_session_start() {
    isolated(|| {
        let (stage, gate) = gated();
        let model = Model::start(Codex::joining("alice"));
        let codex = embedded(&stage, &model, &gate);
        let (terminal, session) = joined(&stage, &codex);
        terminal.kill();
        let id = send_with(&stage, "alice", TEXT, QUIETLY);
        // It runs this hook in the first turn.
        let terminal = codex.open_with(&["resume", &session]);
        gate.close("SessionStart");
        terminal.type_line("Hello.");
        gate.wait_until_reached("SessionStart");
        terminal.kill();
        let killed = killed(&stage, &model, "SessionStart", &id);
        comes_again(&stage, &model, &codex, &session, killed);
    });
}

#[test]
fn killed_after_a_users_prompt() {
    isolated(|| {
        let (stage, gate) = gated();
        let model = Model::start(Codex::joining("alice"));
        let codex = embedded(&stage, &model, &gate);
        let (terminal, session) = joined(&stage, &codex);
        let id = send_with(&stage, "alice", TEXT, QUIETLY);
        gate.close("UserPromptSubmit");
        terminal.type_line("Hello.");
        gate.wait_until_reached("UserPromptSubmit");
        terminal.kill();
        let killed = killed(&stage, &model, "UserPromptSubmit", &id);
        comes_again(&stage, &model, &codex, &session, killed);
    });
}

#[test]
fn killed_after_a_tool() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let model = Model::start(Codex::joining("alice").answer_with("Read the readme", move |_| {
            send_with(&mail, "alice", TEXT, QUIETLY);
            ModelAnswer::Call { tool: "exec_command".to_owned(), input: json!({"cmd": "cat README.md"}) }
        }));
        let codex = embedded(&stage, &model, &gate).flag("--dangerously-bypass-approvals-and-sandbox");
        let (terminal, session) = joined(&stage, &codex);
        gate.close("PostToolUse");
        terminal.type_line("Read the readme.");
        gate.wait_until_reached("PostToolUse");
        terminal.kill();
        let killed = killed(&stage, &model, "PostToolUse", &only(&stage));
        comes_again(&stage, &model, &codex, &session, killed);
    });
}

#[test]
fn killed_after_a_fetch() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let model = Model::start(Codex::joining("alice").answer_with("Look for mail", move |_| {
            send_with(&mail, "alice", TEXT, QUIETLY);
            ModelAnswer::Call { tool: Client::Codex.tool("fetch_messages"), input: json!({}) }
        }));
        let codex = embedded(&stage, &model, &gate).flag("--dangerously-bypass-approvals-and-sandbox");
        let (terminal, session) = joined(&stage, &codex);
        gate.close("PostToolUse");
        terminal.type_line("Look for mail.");
        gate.wait_until_reached("PostToolUse");
        terminal.kill();
        let client = ("codex", Client::Codex.version(&stage));
        let point = ("fetch", "it had the reply");
        let killed = Killed::in_history(&stage, &model, client, point, (&only(&stage), TEXT)).went_out();
        comes_again(&stage, &model, &codex, &session, killed);
    });
}

#[test]
fn killed_at_the_end_of_a_turn() {
    isolated(|| {
        let (stage, gate) = gated();
        let mail = Arc::clone(&stage);
        let model = Model::start(Codex::joining("alice").answer_with("Do it", move |_| {
            send_with(&mail, "alice", TEXT, QUIETLY);
            ModelAnswer::Say("I am done.".to_owned())
        }));
        let codex = embedded(&stage, &model, &gate);
        let (terminal, session) = joined(&stage, &codex);
        gate.close("Stop");
        terminal.type_line("Do it.");
        gate.wait_until_reached("Stop");
        terminal.kill();
        let killed = killed(&stage, &model, "Stop", &only(&stage));
        comes_again(&stage, &model, &codex, &session, killed);
    });
}

#[test]
fn killed_after_its_queue_was_given_a_notification() {
    isolated(|| {
        let stage = stage();
        Client::Codex.install(&stage);
        let model = Model::start(Codex::joining("alice"));
        let codex = Codex::new(&stage, &model).app_server(AppServer::Embedded);
        let (terminal, session) = joined(&stage, &codex);
        let id = send(&stage, "alice", TEXT);
        // It looks into its queue every ten seconds.
        DeliveryHistory::up_to(&stage, &id, "notified");
        terminal.kill();
        let client = ("codex", Client::Codex.version(&stage));
        let killed = Killed::at(&stage, &model, client, ("queue", "idle"), (&id, TEXT));
        comes_again(&stage, &model, &codex, &session, killed);
    });
}

#[test]
fn killed_after_its_app_server_was_given_a_turn() {
    isolated(|| {
        let stage = stage();
        Client::Codex.install(&stage);
        let model = Model::start(Codex::joining("alice"));
        let codex = Codex::new(&stage, &model);
        let (terminal, session) = joined(&stage, &codex);
        model.ears.close();
        let id = send(&stage, "alice", TEXT);
        model.ears.wait_for_unheard();
        // The thread holds it as an item of its turn.
        DeliveryHistory::up_to(&stage, &id, "shown");
        codex.crash_app_server();
        terminal.kill();
        let client = ("codex", Client::Codex.version(&stage));
        let point = ("app-server", "idle, its request was not read");
        let killed = Killed::in_history(&stage, &model, client, point, (&id, TEXT));
        model.ears.open();
        comes_again(&stage, &model, &codex, &session, killed);
    });
}

#[test]
fn killed_after_urgent_mail_broke_into_a_turn() {
    isolated(|| {
        let stage = stage();
        Client::Codex.install(&stage);
        let model = Model::start(Codex::joining("alice").talk("Think about it", "I am thinking"));
        let codex = Codex::new(&stage, &model);
        let (terminal, session) = joined(&stage, &codex);
        terminal.type_line("Think about it.");
        terminal.wait_for("I am thinking");
        model.ears.close();
        let id = send_with(&stage, "alice", TEXT, &["--priority", "urgent"]);
        model.ears.wait_for_unheard();
        let history = DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(history.route("shown").as_deref(), Some("steer"));
        codex.crash_app_server();
        terminal.kill();
        let client = ("codex", Client::Codex.version(&stage));
        let point = ("steer", "in a turn, its request was not read");
        let killed = Killed::in_history(&stage, &model, client, point, (&id, TEXT));
        model.ears.open();
        comes_again(&stage, &model, &codex, &session, killed);
    });
}

fn killed(stage: &Stage, model: &Model, hook: &str, id: &str) -> Killed {
    let route = format!("hook:{hook}");
    assert_eq!(DeliveryHistory::of(stage, id).route("accepted").as_deref(), Some(route.as_str()));
    let client = ("codex", Client::Codex.version(stage));
    Killed::at(stage, model, client, (&route, "its hook had just answered"), (id, TEXT))
}

fn comes_again(stage: &Stage, model: &Model, codex: &Codex<'_>, session: &str, killed: Killed) {
    send_with(stage, "alice", AFTERWARDS, QUIETLY);
    let terminal = codex.open_with(&["resume", session]);
    terminal.type_line("Good morning");
    killed.comes_again(stage, model);
    assert_eq!(session_of(stage, "alice").as_deref(), Some(session), "under the same name");
}

fn joined(stage: &Stage, codex: &Codex<'_>) -> (Terminal, String) {
    let terminal = codex.joined("alice");
    (terminal, session_of(stage, "alice").expect("alice is bound to her thread"))
}

/// Terminals with an app server of their own, so that nothing outlives them.
fn embedded<'a>(stage: &'a Stage, model: &Model, gate: &HookGate) -> Codex<'a> {
    Codex::new(stage, model).with("RELAY_MESH_BIN", &gate.program()).app_server(AppServer::Embedded)
}

fn gated() -> (Arc<Stage>, HookGate) {
    let stage = stage();
    Client::Codex.install(&stage);
    let gate = HookGate::new(&stage);
    (stage, gate)
}
