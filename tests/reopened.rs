//! A session that its user opens again, and does not type in: it is here, it keeps its name, and mail wakes it. And one
//! that its user has left: it is not here, though its harness would go on with it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::{
    AppServer, ClaudeCode, Client, Codex, DeliveryHistory, Model, OpenCode, Script, Stage, Terminal, isolated,
    presence_of, send, session_of, wait_for, wait_or_show,
};

#[test]
fn claude_code_that_is_opened_again_is_woken_before_its_user_types() {
    isolated(|| {
        let stage = installed(Client::ClaudeCode);
        let model = Model::start(joining(Client::ClaudeCode).say("While you were away", "I read it."));
        let client = ClaudeCode::new(&stage, &model);
        let first = client.ask("Join the mesh as alice.", &[]);
        assert_eq!(first.result, "I am alice.", "{:?}", first.outcome);
        let id = send(&stage, "alice", "While you were away.");
        let _terminal = client.open_with(&["--resume", &first.session]);
        model.wait_for_news("While you were away");
        let history = DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(history.route("shown").as_deref(), Some("hook:FileChanged"));
        is_woken(&stage, &model, &first.session);
        assert_eq!(model.times_told("While you were away"), 1, "shown once");
    });
}

#[test]
fn codex_that_is_opened_again_is_woken_before_its_user_types() {
    isolated(|| {
        let stage = installed(Client::Codex);
        let model = Model::start(Codex::joining("alice").say("Are you there", "I am here again."));
        let codex = Codex::new(&stage, &model);
        let session = left(&stage, codex.joined("alice"));
        let _terminal = codex.open_with(&["resume", &session]);
        is_woken(&stage, &model, &session);
    });
}

#[test]
fn codex_of_its_own_that_is_opened_again_is_woken_before_its_user_types() {
    isolated(|| {
        let stage = installed(Client::Codex);
        let model = Model::start(Codex::joining("alice").say("Are you there", "I am here again."));
        let codex = Codex::new(&stage, &model).app_server(AppServer::Embedded);
        let session = left(&stage, codex.joined("alice"));
        let _terminal = codex.open_with(&["resume", &session]);
        is_woken(&stage, &model, &session);
    });
}

#[test]
fn opencode_that_is_opened_again_is_woken_before_its_user_types() {
    isolated(|| {
        for again in ["--session", "--continue"] {
            let stage = installed(Client::OpenCode);
            let model = Model::start(joining(Client::OpenCode).say("Are you there", "I am here again."));
            let client = OpenCode::new(&stage, &model);
            let run = client.ask("Join the mesh as alice.", &[]);
            wait_for("alice is not here", || (!is_here(&stage)).then_some(()));
            let further: Vec<&str> = if again == "--session" { vec![again, &run.session] } else { vec![again] };
            let _terminal = client.open(&further);
            is_woken(&stage, &model, &run.session);
        }
    });
}

/// Codex's app server goes on with a thread when its terminal is closed.
#[test]
fn codex_that_nobody_has_on_screen_does_nothing_for_mail() {
    isolated(|| {
        let stage = installed(Client::Codex);
        let model = Model::start(Codex::joining("alice").say("Do it", "I have done it.").say("Hello", "Hello."));
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        let session = left(&stage, terminal);
        assert!(because(&stage).contains("no terminal shows it"), "{}", because(&stage));
        let id = send(&stage, "alice", "Do it.");
        // Another terminal of the same app server shows another thread.
        let other = codex.open();
        other.type_line("Hello");
        Codex::says(&other, "Hello.");
        assert_eq!(DeliveryHistory::of(&stage, &id).statuses(), ["stored"]);
        assert_eq!(model.times_told("Do it"), 0, "nobody would have seen it");
        assert!(!is_here(&stage), "{}", because(&stage));
        drop(other);
        let _terminal = codex.open_with(&["resume", &session]);
        model.wait_for_news("Do it");
        DeliveryHistory::up_to(&stage, &id, "shown");
    });
}

#[test]
fn codex_whose_terminal_has_gone_on_to_another_thread_does_nothing_for_mail() {
    isolated(|| {
        let stage = installed(Client::Codex);
        let model = Model::start(Codex::joining("alice").say("Do it", "I have done it.").say("Begin anew", "I begin."));
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        // It refuses commands until the turn's hooks have ended, which this line shows.
        terminal.wait_for("Worked for");
        terminal.type_line("/new");
        terminal.wait_for("Where should the new conversation run?");
        terminal.press("Enter");
        terminal.wait_until_gone("Where should the new conversation run?");
        terminal.type_line("Begin anew.");
        // Before the thread is there Enter does nothing, and what was typed stays.
        wait_for("it begins", || {
            let has_begun = terminal.screen().contains("I begin.");
            if !has_begun {
                terminal.press("Enter");
                std::thread::sleep(Duration::from_secs(1));
            }
            has_begun.then_some(())
        });
        wait_for("alice is not on screen", || (!is_here(&stage)).then_some(()));
        let id = send(&stage, "alice", "Do it.");
        terminal.type_line("Begin anew again.");
        model.wait_for_news("Begin anew again");
        assert_eq!(DeliveryHistory::of(&stage, &id).statuses(), ["stored"]);
        assert_eq!(model.times_told("Do it"), 0, "nobody would have seen it");
    });
}

#[test]
fn codex_works_in_the_background_if_its_user_wants_that() {
    isolated(|| {
        let stage = installed(Client::Codex);
        stage.configure("background = true\n");
        let model = Model::start(Codex::joining("alice").say("Do it", "I have done it."));
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        terminal.wait_for("Worked for");
        terminal.type_line("/quit");
        let in_background = || because(&stage).contains("in the background").then_some(());
        wait_or_show("it is in the background", in_background, || {
            format!("{}\n{}", because(&stage), terminal.screen())
        });
        let id = send(&stage, "alice", "Do it.");
        model.wait_for_news("Do it");
        DeliveryHistory::up_to(&stage, &id, "shown");
    });
}

#[test]
fn codex_whose_agent_went_on_elsewhere_is_nobody_when_it_is_opened_again() {
    isolated(|| {
        let stage = installed(Client::Codex);
        let script = moving_on(Codex::joining("alice"), Client::Codex);
        let model = Model::start(script);
        let codex = Codex::new(&stage, &model);
        let old = left(&stage, codex.joined("alice"));
        let terminal = codex.open();
        terminal.type_line("Go on as alice.");
        Codex::says(&terminal, "I go on as alice.");
        let again = codex.open_with(&["resume", &old]);
        is_of_the_later_session(&stage, &model, &old, &again);
    });
}

#[test]
fn opencode_whose_agent_went_on_elsewhere_is_nobody_when_it_is_opened_again() {
    isolated(|| {
        let stage = installed(Client::OpenCode);
        let model = Model::start(moving_on(joining(Client::OpenCode), Client::OpenCode));
        let client = OpenCode::new(&stage, &model);
        let old = client.ask("Join the mesh as alice.", &[]).session;
        wait_for("alice is not here", || (!is_here(&stage)).then_some(()));
        let terminal = client.open(&[]);
        terminal.type_line("Go on as alice.");
        terminal.wait_for("I go on as alice.");
        let again = client.open(&["--session", &old]);
        is_of_the_later_session(&stage, &model, &old, &again);
    });
}

/// A script with a second session that takes the name of the first one.
fn moving_on(script: Script, client: Client) -> Script {
    script
        .call("Go on as alice", &client.tool("register_agent"), json!({"name": "alice"}))
        .say("alice", "I go on as alice.")
        .say("Are you there", "I am.")
        .say("Who are you", "Nobody.")
}

/// An agent has one session, also while the one that it had is open again beside it.
#[track_caller]
fn is_of_the_later_session(stage: &Stage, model: &Model, old: &str, again: &Terminal) {
    let later = session_of(stage, "alice").expect("alice is bound to a session");
    assert_ne!(later, old);
    again.type_line("Who are you?");
    again.wait_for("Nobody.");
    assert_eq!(session_of(stage, "alice").as_deref(), Some(later.as_str()), "{}", again.screen());
    let id = send(stage, "alice", "Are you there?");
    let told = model.wait_for_news("Are you there").everything();
    assert!(!told.contains("Who are you"), "the older session was told: {told}");
    DeliveryHistory::up_to(stage, &id, "shown");
    assert_eq!(model.times_told("Are you there"), 1, "one session reads her mail");
}

/// Closes a terminal as its user does, and waits until the agent is not here any more. Returns its session.
fn left(stage: &Stage, terminal: Terminal) -> String {
    let session = session_of(stage, "alice").expect("alice is bound to her session");
    // It refuses commands until the turn's hooks have ended, which this line shows.
    terminal.wait_for("Worked for");
    terminal.type_line("/quit");
    wait_for("alice is not here", || (!is_here(stage)).then_some(()));
    session
}

/// The session is here under its name, and mail wakes it.
#[track_caller]
fn is_woken(stage: &Stage, model: &Model, session: &str) {
    wait_for("alice is here again", || is_here(stage).then_some(()));
    let taken: Value = serde_json::from_str(&stage.relay_ok(&["register", "alice", "--json"])).expect("JSON");
    assert_eq!(taken["name"], "alice-2", "her name is not free: {taken}");
    let id = send(stage, "alice", "Are you there?");
    model.wait_for_news("Are you there");
    DeliveryHistory::up_to(stage, &id, "shown");
    assert_eq!(model.times_told("Are you there"), 1, "shown once");
    assert_eq!(session_of(stage, "alice").as_deref(), Some(session));
}

fn is_here(stage: &Stage) -> bool {
    matches!(presence_of(stage, "alice").as_deref(), Some("idle" | "busy" | "needs-input"))
}

/// Why the agent has the presence that it has.
fn because(stage: &Stage) -> String {
    let told: Value = serde_json::from_str(&stage.relay_ok(&["agents", "--json"])).expect("JSON");
    let agents = told["agents"].as_array().cloned().unwrap_or_default();
    let alice = agents.iter().find(|agent| agent["name"] == "alice");
    alice.and_then(|alice| alice["evidence"].as_str()).unwrap_or_default().to_owned()
}

fn joining(client: Client) -> Script {
    Script::joining(&client.tool("register_agent"), "alice")
}

fn installed(client: Client) -> Arc<Stage> {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    client.install(&stage);
    Arc::new(stage)
}
