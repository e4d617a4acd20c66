//! A user's stop, their "No" and a held loop, with the real Codex and OpenCode: what waits begins no turn by itself, and
//! goes on when the user speaks. tests/users_stop.rs and tests/claude_code.rs have the same of Claude Code. Only the
//! models are scripted.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::{Client, DeliveryHistory, Host, Model, Script, Stage, id_of, isolated, presence_of, send, wait_for};

/// Long enough for a turn that mail began to show: an idle session is woken within a second.
const A_WHILE: Duration = Duration::from_secs(4);
/// Messages that are held at once.
const MANY: usize = 30;

#[test]
fn after_esc_codex_gets_mail_with_its_users_next_prompt() {
    isolated(|| after_esc_mail_waits(Client::Codex, 1));
}

#[test]
fn after_esc_opencode_gets_mail_with_its_users_next_prompt() {
    // It asks for the key once more.
    isolated(|| after_esc_mail_waits(Client::OpenCode, 2));
}

#[test]
fn after_a_no_codex_gets_mail_with_its_users_next_prompt() {
    isolated(|| {
        let stage = installed(Client::Codex, "");
        let outside =
            json!({"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "Why not?"});
        let script = joining(Client::Codex).call("Make it", "exec_command", outside);
        after_a_no_mail_waits(&stage, Client::Codex, script, ("Make it.", "Would you like to run", &["Escape"]));
        assert!(!stage.project.join("made").exists(), "nothing was approved");
    });
}

#[test]
fn after_a_no_opencode_gets_mail_with_its_users_next_prompt() {
    isolated(|| {
        let stage = installed(Client::OpenCode, "");
        std::fs::write(stage.project.join("opencode.json"), json!({"permission": {"bash": "ask"}}).to_string())
            .expect("the project is writable");
        Client::OpenCode.install(&stage);
        let script = joining(Client::OpenCode).call(
            "Make it",
            "bash",
            json!({"command": "touch made", "description": "Makes it"}),
        );
        let no = ["Right", "Right", "Enter", "Enter"];
        after_a_no_mail_waits(&stage, Client::OpenCode, script, ("Make it.", "Permission required", &no));
        assert!(!stage.project.join("made").exists(), "nothing was approved");
    });
}

#[test]
fn what_the_loop_guard_holds_wakes_codex_only_with_its_user() {
    isolated(|| a_held_loop_waits_for_the_user(Client::Codex));
}

#[test]
fn what_the_loop_guard_holds_wakes_opencode_only_with_its_user() {
    isolated(|| a_held_loop_waits_for_the_user(Client::OpenCode));
}

/// What an agent writes goes on with what it has just read, also if it is a program that answers within a millisecond.
#[test]
fn the_loop_guard_counts_what_is_answered_at_once() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let host = Host::start(&stage);
    let mut pair = ["ann", "bob"].map(|name| {
        let mut client = host.client("a-plain-client");
        client.call("register_agent", json!({"name": name}));
        (client, name)
    });
    for turn in 0..100 {
        let (writer, reader) = (turn % 2, (turn + 1) % 2);
        pair[writer].0.call("send_message", json!({"to": pair[reader].1, "body": format!("Number {turn}.")}));
        pair[reader].0.call("fetch_messages", json!({"wait_seconds": 5}));
    }
    let inboxes = stage.tree(&stage.data.join("agents"));
    let lines: Vec<Value> = inboxes
        .iter()
        .filter(|(path, _)| path.to_string_lossy().contains("/inbox"))
        .flat_map(|(_, bytes)| bytes.split(|byte| *byte == b'\n'))
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let hops = |turn: usize| {
        let line = lines.iter().find(|line| line["body"] == format!("Number {turn}."));
        line.unwrap_or_else(|| panic!("number {turn} in {lines:?}"))["trace"]["hops"].as_u64()
    };
    let counted: Vec<Option<u64>> = (0..100).map(hops).collect();
    assert_eq!(counted, (0..100).map(Some).collect::<Vec<_>>());
}

fn after_esc_mail_waits(client: Client, presses: usize) {
    let stage = installed(client, "");
    let script = joining(client).talk("Think about it", "I am thinking").say("Not before I say so", "I read it.");
    let model = Model::start(script);
    let seat = client.open(&stage, &model);
    seat.terminal.type_line("Join the mesh as alice.");
    seat.says("I am alice.");
    seat.terminal.type_line("Think about it.");
    seat.terminal.wait_for("I am thinking");
    wait_for("it works", || (presence_of(&stage, "alice").as_deref() == Some("busy")).then_some(()));
    for _ in 0..presses {
        seat.terminal.press("Escape");
        std::thread::sleep(Duration::from_millis(300));
    }
    wait_for("it has stopped", || (presence_of(&stage, "alice").as_deref() == Some("idle")).then_some(()));
    let id = send(&stage, "alice", "Not before I say so.");
    std::thread::sleep(A_WHILE);
    assert_eq!(model.times_told("Not before I say so"), 0, "{}", seat.terminal.screen());
    assert_eq!(DeliveryHistory::of(&stage, &id).statuses(), ["stored"]);
    seat.terminal.type_line("What now?");
    model.wait_for_news("Not before I say so");
    DeliveryHistory::up_to(&stage, &id, "shown");
    assert_eq!(model.times_told("Not before I say so"), 1, "shown once");
}

fn after_a_no_mail_waits(stage: &Arc<Stage>, client: Client, script: Script, (task, asks, no): (&str, &str, &[&str])) {
    let model = Model::start(script.say("Not before I say so", "I read it."));
    let seat = client.open(stage, &model);
    seat.terminal.type_line("Join the mesh as alice.");
    seat.says("I am alice.");
    seat.terminal.type_line(task);
    seat.terminal.wait_for(asks);
    wait_for("it asks", || (presence_of(stage, "alice").as_deref() == Some("needs-input")).then_some(()));
    let waiting = send(stage, "alice", "Not before I say so, and it came while you were asked.");
    for key in no {
        seat.terminal.press(key);
        std::thread::sleep(Duration::from_millis(300));
    }
    seat.terminal.wait_until_gone(asks);
    wait_for("it has stopped", || (presence_of(stage, "alice").as_deref() == Some("idle")).then_some(()));
    let late = send(stage, "alice", "Not before I say so, and it came after the no.");
    std::thread::sleep(A_WHILE);
    assert_eq!(model.times_told("Not before I say so"), 0, "{}", seat.terminal.screen());
    seat.terminal.type_line("What now?");
    model.wait_for_news("it came while you were asked");
    for (id, text) in [(waiting, "it came while you were asked"), (late, "it came after the no")] {
        DeliveryHistory::up_to(stage, &id, "shown");
        assert_eq!(model.times_told(text), 1, "shown once");
    }
}

fn a_held_loop_waits_for_the_user(client: Client) {
    let stage = installed(client, "[loops]\nhops = 2\n");
    let host = Host::start(&stage);
    let answer = |text: &'static str| move |news: &str| json!({"to": "bob", "body": format!("To {text}."), "reply_to": id_of(news, text)});
    let tool = client.tool("send_message");
    let script = joining(client)
        .call_with("Greeting 01", &tool, answer("Greeting 01"))
        .call_with("Greeting 02", &tool, answer("Greeting 02"))
        .call_with("Greeting 03", &tool, answer("Greeting 03"));
    let model = Model::start(script);
    let seat = client.open(&stage, &model);
    seat.terminal.type_line("Join the mesh as alice.");
    seat.says("I am alice.");
    let mut bob = host.client("a-plain-client");
    bob.call("register_agent", json!({"name": "bob"}));
    let replied = |bob: &mut test_support::HttpClient, to: &str| {
        let reply = bob.call("fetch_messages", json!({"wait_seconds": 20, "acknowledge": true}));
        assert!(reply.text.contains(&format!("To {to}.")), "{reply:?}\n{}", seat.terminal.screen());
    };
    for greeting in ["Greeting 01", "Greeting 02"] {
        bob.call("send_message", json!({"to": "alice", "body": greeting}));
        model.wait_for_news(greeting);
        replied(&mut bob, greeting);
    }
    seat.settles(&model);
    // Two messages and two answers are as much as two agents may do without a user.
    let held = |number: usize, bob: &mut test_support::HttpClient| {
        let sent = bob.call("send_message", json!({"to": "alice", "body": format!("Greeting {number:02}")}));
        sent.structured["id"].as_str().expect("a message has an id").to_owned()
    };
    let ids: Vec<String> = (3..3 + MANY).map(|number| held(number, &mut bob)).collect();
    std::thread::sleep(A_WHILE);
    for (id, number) in ids.iter().zip(3..) {
        assert_eq!(model.times_told(&format!("Greeting {number:02}")), 0, "{}", seat.terminal.screen());
        let status: Value = serde_json::from_str(&stage.relay_ok(&["message", id, "--json"])).expect("JSON");
        assert!(status["recipients"][0]["held"].is_string(), "{status}");
    }
    seat.terminal.type_line("Has anything come?");
    model.wait_for_news("Greeting 03");
    // The chain has ended with the user's prompt, so what is answered now is held no more.
    replied(&mut bob, "Greeting 03");
    for (id, number) in ids.iter().zip(3..) {
        DeliveryHistory::up_to(&stage, id, if number == 3 { "acknowledged" } else { "shown" });
        assert_eq!(model.times_told(&format!("Greeting {number:02}")), 1, "number {number} is shown once");
    }
}

fn joining(client: Client) -> Script {
    Script::joining(&client.tool("register_agent"), "alice")
}

fn installed(client: Client, settings: &str) -> Arc<Stage> {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.configure(settings);
    client.install(&stage);
    Arc::new(stage)
}
