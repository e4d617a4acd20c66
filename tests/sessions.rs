//! Sessions, alike for each harness, with real clients and scripted models: two in one project, runs without a
//! terminal, and a session that is closed while mail waits.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use serde_json::json;
use test_support::{
    Ability, Client, Codex, DeliveryHistory, Host, Model, ModelAnswer, OpenCode, Script, Stage, isolated, observed,
    presence_of, send, session_of, unread, wait_for,
};

#[test]
fn two_sessions_of_claude_code_in_one_project_are_two_agents() {
    isolated(|| two_sessions(Client::ClaudeCode));
}

#[test]
fn two_sessions_of_codex_in_one_project_are_two_agents() {
    isolated(|| two_sessions(Client::Codex));
}

#[test]
fn two_sessions_of_opencode_in_one_project_are_two_agents() {
    isolated(|| two_sessions(Client::OpenCode));
}

/// Each is woken for its own mail, and neither is shown the other's.
fn two_sessions(client: Client) {
    let stage = installed(client);
    let names = ["alice", "carol"];
    let script = names.iter().fold(Script::new(), |script, name| {
        script
            .call(&format!("Join as {name}."), &client.tool("register_agent"), json!({"name": name}))
            .say(name, &format!("I am {name}."))
            .say(&format!("For {name} alone"), &format!("{name} has it."))
    });
    let model = Model::start(script);
    let seats = names.map(|name| {
        let seat = client.open(&stage, &model);
        seat.terminal.type_line(&format!("Join as {name}."));
        seat.says(&format!("I am {name}."));
        seat
    });
    let sessions = names.map(|name| session_of(&stage, name).unwrap_or_else(|| panic!("{name} has a session")));
    assert_ne!(sessions[0], sessions[1]);
    let ids = names.map(|name| send(&stage, name, &format!("For {name} alone")));
    for ((name, id), seat) in names.iter().zip(&ids).zip(&seats) {
        seat.says(&format!("{name} has it."));
        DeliveryHistory::up_to(&stage, id, "shown");
        assert_eq!(model.times_told(&format!("For {name} alone")), 1, "{name} is told once");
    }
    for heard in model.heard() {
        let told = heard.everything();
        let (hers, others) = if told.contains("Join as alice.") { ("alice", "carol") } else { ("carol", "alice") };
        assert!(told.contains(&format!("Join as {hers}.")), "each conversation is one of the two: {told}");
        assert!(!told.contains(&format!("For {others} alone")), "{hers} was told what is for {others}: {told}");
    }
    assert_eq!(names.map(|name| session_of(&stage, name)), sessions.map(Some), "nobody has moved");
}

#[test]
fn a_run_of_claude_code_without_a_terminal_fetches_what_comes_while_it_works() {
    isolated(|| fetches_while_it_works(Client::ClaudeCode));
}

#[test]
fn a_run_of_codex_without_a_terminal_fetches_what_comes_while_it_works() {
    isolated(|| fetches_while_it_works(Client::Codex));
}

#[test]
fn a_run_of_opencode_without_a_terminal_fetches_what_comes_while_it_works() {
    isolated(|| fetches_while_it_works(Client::OpenCode));
}

/// Mail that arrives while the model thinks and that it fetches itself is not shown again by a hook, a connector or the
/// turn's end. Mail after the run waits for the next one.
fn fetches_while_it_works(client: Client) {
    let stage = installed(client);
    let (mail, fetch) = (Arc::clone(&stage), client.tool("fetch_messages"));
    let model = Model::start(
        Script::new()
            .call("Join the mesh", &client.tool("register_agent"), json!({"name": "alice"}))
            .answer_with("alice", move |_| {
                send(&mail, "alice", "While you work");
                ModelAnswer::Call { tool: fetch.clone(), input: json!({"acknowledge": true}) }
            })
            .say("While you work", "I read it.")
            .say("While you were away", "I read that too."),
    );
    let run = client.ask(&stage, &model, "Join the mesh as alice, then read your mail.", None);
    assert_eq!(run.result, "I read it.", "{:?}", run.outcome);
    assert_eq!(model.times_told("While you work"), 1);
    assert_eq!(session_of(&stage, "alice").as_ref(), Some(&run.session), "it speaks for its own session");
    assert!(unread(&stage, "alice").is_empty());
    let id = send(&stage, "alice", "While you were away");
    assert_eq!(DeliveryHistory::of(&stage, &id).statuses(), ["stored"], "nobody is there");
    let again = client.ask(&stage, &model, "Go on.", Some(&run.session));
    assert_eq!((&again.result, &again.session), (&"I read that too.".to_owned(), &run.session), "{:?}", again.outcome);
    DeliveryHistory::up_to(&stage, &id, "shown");
    assert_eq!(model.times_told("While you were away"), 1);
}

#[test]
fn claude_code_that_is_closed_while_mail_waits_shows_it_when_it_is_opened_again() {
    isolated(|| closed_while_mail_waits(Client::ClaudeCode));
}

#[test]
fn codex_that_is_closed_while_mail_waits_shows_it_when_it_is_opened_again() {
    isolated(|| closed_while_mail_waits(Client::Codex));
}

#[test]
fn opencode_that_is_closed_while_mail_waits_shows_it_when_it_is_opened_again() {
    isolated(|| closed_while_mail_waits(Client::OpenCode));
}

/// The session is busy when the mail arrives, and its terminal is closed before the mail could be shown.
fn closed_while_mail_waits(client: Client) {
    let stage = installed(client);
    let (mail, (sent, was_sent), (close, was_closed)) = (Arc::clone(&stage), channel(), channel());
    let was_closed = Mutex::new(was_closed);
    let model = Model::start(
        Script::new()
            .call("Join the mesh", &client.tool("register_agent"), json!({"name": "alice"}))
            .say("alice", "I am here.")
            .answer_with("Think about it", move |_| {
                sent.send(send(&mail, "alice", "Before you go")).expect("the test waits for it");
                was_closed.lock().expect("one turn at a time").recv().expect("the test closes the terminal");
                ModelAnswer::Say("Nobody hears this.".to_owned())
            })
            .say("Before you go", "I have read it."),
    );
    let mut seat = client.open(&stage, &model);
    seat.terminal.type_line("Join the mesh as alice.");
    seat.says("I am here.");
    let session = session_of(&stage, "alice").expect("alice is bound to her session");
    seat.terminal.type_line("Think about it.");
    let id = was_sent.recv().expect("the model is asked");
    seat.terminal.close();
    close.send(()).expect("the model waits for it");
    seat.reopen(&session);
    seat.terminal.type_line("Good morning");
    model.wait_for_news("Before you go");
    seat.settles(&model);
    DeliveryHistory::up_to(&stage, &id, "shown");
    model.has_message_once(&id);
    assert_eq!(session_of(&stage, "alice"), Some(session), "under the same name");
}

#[test]
fn claude_code_that_was_woken_is_busy_until_its_turn_ends() {
    isolated(|| busy_while_woken(Client::ClaudeCode));
}

#[test]
fn codex_that_was_woken_is_busy_until_its_turn_ends() {
    isolated(|| busy_while_woken(Client::Codex));
}

#[test]
fn opencode_that_was_woken_is_busy_until_its_turn_ends() {
    isolated(|| busy_while_woken(Client::OpenCode));
}

/// Its model thinks for a while about the mail that woke it, and uses no tool.
fn busy_while_woken(client: Client) {
    let stage = installed(client);
    let looks = Arc::clone(&stage);
    let model = Model::start(
        Script::new()
            .call("Join the mesh", &client.tool("register_agent"), json!({"name": "alice"}))
            .say("alice", "I am here.")
            .answer_with("Think about it", move |_| {
                wait_for("alice is busy", || (presence_of(&looks, "alice")? == "busy").then_some(()));
                ModelAnswer::Say("I have thought about it.".to_owned())
            }),
    );
    let seat = client.open(&stage, &model);
    seat.terminal.type_line("Join the mesh as alice.");
    seat.says("I am here.");
    wait_for("alice is idle", || (presence_of(&stage, "alice")? == "idle").then_some(()));
    send(&stage, "alice", "Think about it");
    seat.says("I have thought about it.");
    wait_for("alice is idle again", || (presence_of(&stage, "alice")? == "idle").then_some(()));
}

#[test]
fn mail_that_waits_at_the_end_of_a_turn_of_opencode_begins_the_next_one() {
    isolated(|| {
        let stage = installed(Client::OpenCode);
        let mail = Arc::clone(&stage);
        let model = Model::start(
            Script::new()
                .call("Join the mesh", &Client::OpenCode.tool("register_agent"), json!({"name": "alice"}))
                .answer_with("alice", move |_| {
                    send(&mail, "alice", "One more thing");
                    ModelAnswer::Say("I am done.".to_owned())
                })
                .say("One more thing", "Now I am done."),
        );
        let seat = Client::OpenCode.open(&stage, &model);
        seat.terminal.type_line("Join the mesh as alice.");
        let told = model.wait_for_news("One more thing");
        seat.says("Now I am done.");
        let history = DeliveryHistory::up_to(&stage, &test_support::id_of(&told.news(), "One more thing"), "shown");
        assert_eq!(model.times_told("One more thing"), 1, "shown once");
        observed(&stage, Client::OpenCode, Ability::TurnEnd, history.route("shown").as_deref());
    });
}

#[test]
fn compaction_of_codex_takes_neither_the_protocol_nor_the_name() {
    isolated(|| {
        let stage = installed(Client::Codex);
        let model = Model::start(
            Script::new()
                .call("Join the mesh", &Client::Codex.tool("register_agent"), json!({"name": "alice"}))
                .say("alice", "I am here.")
                .say("Do you still hear me?", "I hear you."),
        );
        let seat = Client::Codex.open(&stage, &model);
        seat.terminal.type_line("Join the mesh as alice.");
        seat.says("I am here.");
        let session = session_of(&stage, "alice");
        // It refuses commands until the turn's hooks have ended, which this line shows.
        seat.terminal.wait_for("Worked for");
        seat.terminal.type_line("/compact");
        seat.terminal.wait_for("Context compacted");
        seat.settles(&model);
        let id = send(&stage, "alice", "Do you still hear me?");
        let woken = model.wait_for_news("Do you still hear me?");
        DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(model.times_told("Do you still hear me?"), 1, "shown once");
        assert_eq!(session_of(&stage, "alice"), session, "under the same name");
        let protocol = woken.place_of("Register once with register_agent");
        observed(&stage, Client::Codex, Ability::Compaction, protocol.as_deref());
    });
}

#[test]
fn claude_code_that_is_set_up_for_a_user_joins_in_any_project() {
    isolated(|| joins_for_a_user(Client::ClaudeCode));
}

#[test]
fn codex_that_is_set_up_for_a_user_joins_in_any_project() {
    isolated(|| joins_for_a_user(Client::Codex));
}

#[test]
fn opencode_that_is_set_up_for_a_user_joins_in_any_project() {
    isolated(|| joins_for_a_user(Client::OpenCode));
}

/// The project has no settings of the mesh, yet the session is bound, told the protocol and shown mail.
fn joins_for_a_user(client: Client) {
    let stage = Arc::new(stage());
    let before = stage.tree(&stage.project);
    stage.relay_ok(&["install", client.name(), "--user", "--yes"]);
    assert_eq!(stage.tree(&stage.project), before);
    // Claude Code adds the plugin's name to its tools' names.
    let register = match client {
        Client::ClaudeCode => "mcp__plugin_relay-mesh_relay-mesh__register_agent".to_owned(),
        Client::Codex | Client::OpenCode => client.tool("register_agent"),
    };
    let model = Model::start(Script::joining(&register, "alice").say("While you were away", "I read it."));
    let run = client.ask(&stage, &model, "Join the mesh as alice.", None);
    assert_eq!(session_of(&stage, "alice").as_ref(), Some(&run.session), "{:?}", run.outcome);
    assert!(model.heard()[0].place_of("Register once with register_agent").is_some(), "it is told the protocol");
    let id = send(&stage, "alice", "While you were away");
    let again = client.ask(&stage, &model, "Go on.", Some(&run.session));
    assert_eq!(again.result, "I read it.", "{:?}", again.outcome);
    DeliveryHistory::up_to(&stage, &id, "shown");
}

#[test]
fn codex_over_http_is_bound_to_its_thread() {
    isolated(|| {
        let (stage, host) = over_http(Client::Codex);
        let model = Model::start(joining(Client::Codex));
        let client = Codex::new(&stage, &model).with("RELAY_MESH_TOKEN", &host.token);
        let run = client.ask("Join the mesh as alice.", &[]);
        assert_eq!(session_of(&stage, "alice").as_ref(), Some(&run.session), "{:?}", run.outcome);
    });
}

#[test]
fn opencode_over_http_is_bound_to_its_session() {
    isolated(|| {
        let (stage, _host) = over_http(Client::OpenCode);
        let model = Model::start(joining(Client::OpenCode));
        let run = OpenCode::new(&stage, &model).ask("Join the mesh as alice.", &[]);
        assert_eq!(session_of(&stage, "alice").as_ref(), Some(&run.session), "{:?}", run.outcome);
    });
}

/// A project whose client reaches a running server by settings without a secret.
fn over_http(client: Client) -> (Stage, Host) {
    let stage = stage();
    let host = Host::start(&stage);
    let url = format!("http://127.0.0.1:{}/mcp", host.port);
    let project = stage.project.display().to_string();
    let by = ["--transport", "http", "--http-url", &url];
    stage.relay_ok(&[&["install", client.name(), "--project", &project, "--yes"][..], &by].concat());
    for (path, text) in stage.tree(&stage.project) {
        assert!(!String::from_utf8_lossy(&text).contains(&host.token), "{} holds the token", path.display());
    }
    (stage, host)
}

/// A script that joins as alice.
fn joining(client: Client) -> Script {
    Script::joining(&client.tool("register_agent"), "alice")
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn installed(client: Client) -> Arc<Stage> {
    let stage = stage();
    client.install(&stage);
    Arc::new(stage)
}

/// The session is given mail as it opens, and is left before its model was asked anything.
#[test]
fn mail_that_a_session_was_given_and_never_read_waits_for_its_next_one() {
    isolated(|| {
        let stage = installed(Client::ClaudeCode);
        let model = Model::start(joining(Client::ClaudeCode).say("For your eyes", "I have read it."));
        let mut seat = Client::ClaudeCode.open(&stage, &model);
        seat.terminal.type_line("Join the mesh as alice.");
        seat.says("I am alice.");
        let session = session_of(&stage, "alice").expect("alice is bound to her session");
        seat.terminal.close();
        is_missed(&stage);
        let id = send(&stage, "alice", "For your eyes");
        seat.reopen(&session);
        DeliveryHistory::up_to(&stage, &id, "accepted");
        seat.terminal.close();
        is_missed(&stage);
        assert!(!DeliveryHistory::of(&stage, &id).statuses().contains(&"shown".to_owned()), "nobody has read it");
        seat.reopen(&session);
        seat.terminal.type_line("Good morning");
        let told = model.wait_for_news("For your eyes");
        assert!(told.everything().contains("repeated=\"perhaps\""), "{}", told.everything());
        seat.settles(&model);
        DeliveryHistory::up_to(&stage, &id, "shown");
    });
}

/// The session gets mail while a tool runs, and is killed before the tool has ended.
#[test]
fn mail_that_a_session_was_given_while_a_tool_ran_outlives_its_kill() {
    isolated(|| {
        let stage = installed(Client::ClaudeCode);
        let model = Model::start(
            joining(Client::ClaudeCode)
                .call("Take your time", "Bash", json!({"command": "touch begun && tail -f begun"}))
                .say("Mind the gap", "I mind it."),
        );
        let mut seat = Client::ClaudeCode.open(&stage, &model);
        seat.terminal.type_line("Join the mesh as alice.");
        seat.says("I am alice.");
        let session = session_of(&stage, "alice").expect("alice is bound to her session");
        seat.terminal.type_line("Take your time");
        wait_for("the tool runs", || stage.project.join("begun").exists().then_some(()));
        let id = send(&stage, "alice", "Mind the gap");
        DeliveryHistory::up_to(&stage, &id, "accepted");
        assert_eq!(DeliveryHistory::of(&stage, &id).route("accepted").as_deref(), Some("hook:FileChanged"));
        seat.terminal.close();
        assert!(!DeliveryHistory::of(&stage, &id).statuses().contains(&"shown".to_owned()), "nobody has read it");
        seat.reopen(&session);
        seat.terminal.type_line("Good morning");
        let told = model.wait_for_news("Mind the gap");
        assert!(told.everything().contains("repeated=\"perhaps\""), "{}", told.everything());
        seat.settles(&model);
        DeliveryHistory::up_to(&stage, &id, "shown");
    });
}

fn is_missed(stage: &Stage) {
    wait_for("the session is missed", || (presence_of(stage, "alice")? == "offline").then_some(()));
}
