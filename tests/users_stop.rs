//! What a user does at the keyboard of the real Claude Code, and what that means for mail: Esc, "No" to a question of
//! the client, a long absence. Only the model is scripted.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::{
    ClaudeCode, Model, ModelAnswer, Script, Stage, Terminal, isolated, presence_of, wait_for, wait_or_show,
};

/// Work that can be seen to have begun. The client refuses a bare `sleep`.
const WORK: &str = "touch begun && tail -f begun";
const REGISTER: &str = "mcp__relay-mesh__register_agent";

#[test]
fn after_esc_mail_waits_for_the_users_next_prompt() {
    isolated(|| {
        let stage = installed("");
        let script = joining().call("Work long", "Bash", json!({"command": WORK, "description": "Works long"}));
        let model = Model::start(script.say("Not before I say so", "Now I have read it."));
        let terminal = ClaudeCode::new(&stage, &model).open();
        join(&terminal);
        terminal.type_line("Work long.");
        wait_for("the tool runs", || stage.project.join("begun").exists().then_some(()));
        assert_eq!(presence_of(&stage, "alice").as_deref(), Some("busy"));
        terminal.press("Escape");
        terminal.wait_for("Interrupted");
        let id = send(&stage, "Not before I say so.");
        wait_for("the stop is known", || evidence(&stage).contains("its user stopped it").then_some(()));
        // The wake file was written, and a turn would begin within a second.
        std::thread::sleep(Duration::from_secs(4));
        assert_eq!(model.times_told("Not before I say so"), 0, "{}", terminal.screen());
        assert!(!statuses(&stage, &id).contains(&"accepted".to_owned()), "{:?}", statuses(&stage, &id));
        terminal.type_line("What now?");
        model.wait_for_news("Not before I say so");
        wait_for("it was shown", || statuses(&stage, &id).contains(&"shown".to_owned()).then_some(()));
    });
}

/// No hook runs at Esc, and no mail comes that would have one look.
#[test]
fn after_esc_a_session_is_not_said_to_work() {
    isolated(|| {
        let stage = installed("");
        let script = joining().call("Work long", "Bash", json!({"command": WORK, "description": "Works long"}));
        let model = Model::start(script.say("Go on", "I go on."));
        let terminal = ClaudeCode::new(&stage, &model).open();
        join(&terminal);
        terminal.type_line("Work long.");
        wait_for("the tool runs", || stage.project.join("begun").exists().then_some(()));
        assert_eq!(presence_of(&stage, "alice").as_deref(), Some("busy"));
        terminal.press("Escape");
        terminal.wait_for("Interrupted");
        let is_idle = || (presence_of(&stage, "alice").as_deref() == Some("idle")).then_some(());
        let listed = || {
            let files = stage.tree(&stage.home.join(".claude/sessions"));
            let texts = files.values().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            format!("{}\n{}", texts.collect::<Vec<_>>().join("\n"), terminal.screen())
        };
        wait_or_show("it is known to be idle", is_idle, listed);
        assert!(evidence(&stage).contains("as its harness says"), "{}", evidence(&stage));
        terminal.type_line("Go on.");
        terminal.wait_for("● I go on.");
    });
}

#[test]
fn a_session_whose_user_refused_is_reached_without_their_prompt() {
    isolated(|| {
        let stage = installed("hold-after-stop = '3s'\n");
        // Outside of the project, so the client asks.
        let target = stage.home.join("new.txt").display().to_string();
        let script = joining()
            .call("Write it", "Write", json!({"file_path": target, "content": "new"}))
            .say("While it asked", "I read the first.")
            .say("After it was refused", "I read the second.");
        let model = Model::start(script);
        let terminal = ClaudeCode::new(&stage, &model).open_with(&["--permission-mode", "acceptEdits"]);
        join(&terminal);
        terminal.type_line("Write it.");
        terminal.wait_for("Do you want to");
        wait_for("the question is known", || {
            (presence_of(&stage, "alice").as_deref() == Some("needs-input")).then_some(())
        });
        let first = send(&stage, "While it asked.");
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(model.times_told("While it asked"), 0, "it has a question open");
        terminal.press("Escape");
        terminal.wait_until_gone("Do you want to");
        // Nothing is typed from here on. The process that delivers looks again by itself, at growing intervals.
        let second = send(&stage, "After it was refused.");
        model.wait_for_news("While it asked");
        model.wait_for_news("After it was refused");
        for id in [first, second] {
            wait_for("it was shown", || statuses(&stage, &id).contains(&"shown".to_owned()).then_some(()));
        }
    });
}

#[test]
fn a_backlog_is_read_to_its_end_after_one_prompt() {
    isolated(|| {
        const MANY: usize = 100;
        let stage = installed("");
        let model = Model::start(joining());
        let client = ClaudeCode::new(&stage, &model);
        let first = client.ask("Join the mesh as alice.", &[]);
        assert_eq!(first.result, "I am alice.", "{:?}", first.outcome);
        for number in 0..MANY {
            send(&stage, &format!("Number {number:03}. {}", "x".repeat(1_000)));
        }
        let terminal = client.open_with(&["--resume", &first.session]);
        terminal.type_line("Go on.");
        let waiting = || {
            let read: Value = serde_json::from_str(&stage.relay_ok(&["agents", "--json"])).expect("JSON");
            read["agents"][0]["waiting"].clone()
        };
        let none = || (waiting() == json!(0)).then_some(());
        wait_or_show("all of it was shown", none, || format!("{} wait\n{}", waiting(), terminal.screen()));
        for number in 0..MANY {
            let times = model.times_told(&format!("Number {number:03}."));
            assert_eq!(times, 1, "number {number}, {}", terminal.screen());
        }
    });
}

#[test]
fn a_message_at_the_end_of_a_turn_reaches_the_model_once() {
    isolated(|| {
        let stage = installed("");
        let mail = Arc::clone(&stage);
        let script = joining().answer_with("Do it", move |_| {
            send(&mail, "One more thing.");
            ModelAnswer::Say("I am done.".to_owned())
        });
        let model = Model::start(script.say("One more thing", "Now I am done."));
        let terminal = ClaudeCode::new(&stage, &model).open();
        join(&terminal);
        terminal.type_line("Do it.");
        let told = model.wait_for_news("One more thing").everything();
        assert_eq!(told.matches("One more thing.").count(), 1, "{told}");
        terminal.wait_for("● Now I am done.");
        let protocol = told.matches("Register once with register_agent").count();
        assert_eq!(protocol, 1, "it is in the server's instructions alone: {told}");
    });
}

#[test]
fn the_rest_of_a_long_message_is_there_for_the_asking() {
    isolated(|| {
        let stage = installed("");
        let rest = |news: &str| {
            let (_, after) = news.split_once("fetch_messages with message_id ").expect("it says how to get the rest");
            let id: String = after.chars().take(26).collect();
            let offset: String = after
                .split_once("offset ")
                .expect("and from where")
                .1
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            json!({"message_id": id, "offset": offset.parse::<u64>().expect("a number")})
        };
        let script = joining()
            .call_with("Begins here", "mcp__relay-mesh__fetch_messages", rest)
            .say("and ends here", "I have read all of it.");
        let model = Model::start(script);
        let terminal = ClaudeCode::new(&stage, &model).open();
        join(&terminal);
        let id = send(&stage, &format!("Begins here {} and ends here.", "x".repeat(20_000)));
        model.wait_for_news("Begins here");
        model.wait_for_news("and ends here");
        terminal.wait_for("● I have read all of it.");
        wait_for("its status says that all of it went out", || {
            let recipient = status(&stage, &id)["recipients"][0].clone();
            (recipient["status"] == "read" && recipient["cut"].is_null()).then_some(())
        });
    });
}

/// A script that joins as alice when asked to.
fn joining() -> Script {
    Script::joining(REGISTER, "alice")
}

fn join(terminal: &Terminal) {
    terminal.type_line("Join the mesh as alice.");
    terminal.wait_for("● I am alice.");
    terminal.wait_until_gone("esc to interrupt");
}

fn installed(settings: &str) -> Arc<Stage> {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.configure(settings);
    stage.relay_ok(&["install", "claude-code", "--project", &stage.project.display().to_string(), "--yes"]);
    Arc::new(stage)
}

fn send(stage: &Stage, body: &str) -> String {
    let sent: Value = serde_json::from_str(&stage.relay_ok(&["send", "alice", body, "--json"])).expect("JSON");
    sent["id"].as_str().expect("a message has an id").to_owned()
}

fn evidence(stage: &Stage) -> String {
    let agents: Value = serde_json::from_str(&stage.relay_ok(&["agents", "--json"])).expect("JSON");
    agents["agents"][0]["evidence"].as_str().unwrap_or_default().to_owned()
}

fn statuses(stage: &Stage, id: &str) -> Vec<String> {
    let steps = status(stage, id)["recipients"][0]["history"].as_array().cloned().unwrap_or_default();
    steps.iter().filter_map(|step| step["status"].as_str().map(str::to_owned)).collect()
}

fn status(stage: &Stage, id: &str) -> Value {
    serde_json::from_str(&stage.relay_ok(&["message", id, "--json"])).expect("JSON")
}
