//! OpenCode in the mesh, end to end: the real client in a terminal, headless and as a server. Its idle sessions are
//! woken by its connector and over HTTP. Only the model is scripted.

use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{
    Ability, Client, DeliveryHistory, Heard, Host, Model, ModelAnswer, OpenCode, Script, Stage, Terminal, id_of,
    isolated, observed, session_of, wait_for,
};

const REGISTER: &str = "relay-mesh_register_agent";
const SEND: &str = "relay-mesh_send_message";

#[test]
fn an_idle_session_in_a_terminal_is_woken_and_answers() {
    isolated(|| {
        let stage = stage();
        let before = stage.tree(&stage.project);
        install(&stage);
        let host = Host::start(&stage);
        let model = Model::start(joining("alice").call_with(
            "What is the answer?",
            SEND,
            |news| json!({"to": "bob", "body": "The answer is 42.", "reply_to": id_in(news)}),
        ));
        let terminal = OpenCode::new(&stage, &model).open(&[]);
        terminal.type_line("Join the mesh as alice.");
        says(&terminal, "I am alice.");
        let session = session_of(&stage, "alice").expect("it is bound by its ticket");
        assert!(session.starts_with("ses_"), "{session}");

        let mut bob = host.client("a-plain-client");
        bob.call("register_agent", json!({"name": "bob"}));
        let sent = bob.call("send_message", json!({"to": "alice", "body": "What is the answer?"}));
        let id = sent.structured["id"].as_str().expect("a message has an id").to_owned();
        let woken = model.wait_for_news("What is the answer?");
        assert!(woken.everything().contains("You are `alice` on the relay-mesh."), "it knows who it is");
        model.reads_the_protocol_once("Join the mesh as alice.");
        let reply = bob.call("fetch_messages", json!({"wait_seconds": 20, "acknowledge": true}));
        assert!(reply.text.contains("The answer is 42."), "{reply:?}");
        // An answer says more than the connector's words that it is taken and on screen, and may come first.
        wait_for("the history is reached", || {
            let reached = statuses(&stage, &id);
            ["accepted", "acknowledged"].iter().all(|status| reached.iter().any(|one| one == status)).then_some(())
        });
        let mut reached = statuses(&stage, &id);
        reached.retain(|status| status != "shown");
        assert_eq!(reached, ["stored", "accepted", "acknowledged"]);
        assert!(
            model.heard().iter().all(|heard| !heard.body.to_string().contains("_relay")),
            "no ticket reaches the model"
        );

        drop(terminal);
        stage.relay_ok(&["uninstall", "opencode", "--project", &project(&stage), "--yes"]);
        assert_eq!(tree_without_its_own(&stage), before, "byte for byte");
    });
}

#[test]
fn two_sessions_of_one_server_are_two_agents_and_each_keeps_its_agent_and_model() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(
            Script::new()
                .call("Join as alice", REGISTER, json!({"name": "alice"}))
                .say("you are `alice`", "I am alice.")
                .call("Join as carol", REGISTER, json!({"name": "carol"}))
                .say("you are `carol`", "I am carol.")
                .say("Only for alice", "Heard.")
                .say("Only for carol", "Heard."),
        );
        let server = OpenCode::new(&stage, &model).with("OPENCODE_SERVER_PASSWORD", "a password").serve();
        let (alice, carol) = (server.session(), server.session());
        server.say(&alice, "plan", "Join as alice.");
        server.say(&carol, "build", "Join as carol.");
        assert_eq!(session_of(&stage, "alice").as_ref(), Some(&alice));
        assert_eq!(session_of(&stage, "carol").as_ref(), Some(&carol));
        observed(&stage, Client::OpenCode, Ability::Bind, Some("the harness's session id"));
        for (agent, session, mode) in [("alice", &alice, "plan"), ("carol", &carol, "build")] {
            let words = format!("Only for {agent}");
            stage.relay_ok(&["send", agent, &words]);
            let woken = model.wait_for_news(&words);
            assert_eq!(woken.body["model"], "two", "the model that the session had");
            server.wait_until_idle(session);
            let prompts = prompts(&server.messages(session));
            assert_eq!(
                prompts.last().map(|prompt| (&prompt["agent"], &prompt["model"]["modelID"])),
                Some((&json!(mode), &json!("two")))
            );
        }
        model.wait_until_spoken();
    });
}

#[test]
fn a_session_that_has_not_joined_is_invited_by_the_connector_inside_it() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(good_morning().say("Welcome", "Thank you."));
        let terminal = OpenCode::new(&stage, &model).open(&[]);
        terminal.type_line("Good morning.");
        says(&terminal, "Good morning to you.");
        let found = discovered(&stage);
        assert_eq!((&found["agent"], &found["wakes_by"]), (&Value::Null, &json!(["listen"])), "{found}");
        let session = found["session"].as_str().expect("a session has an id").to_owned();
        let invited = stage.relay_ok(&["invite", &session, "Help me with the tests."]);
        let woken = model.wait_for_news("Help me with the tests.").news();
        assert!(woken.contains("Somebody at a shell of this machine invites you to join the relay-mesh"), "{woken}");
        assert!(woken.contains("Register once with register_agent"), "the protocol is there: {woken}");
        assert!(woken.contains("<relay-mesh-message id="), "what was written stands in an envelope: {woken}");
        let outcomes = ["invitation shown by listen", "has joined as alice"];
        assert!(outcomes.iter().any(|outcome| invited.contains(outcome)), "{invited}");
        says(&terminal, "I am alice.");
        assert_eq!(session_of(&stage, "alice"), Some(session));
        let id = send(&stage, "alice", "Welcome to the mesh.");
        says(&terminal, "Thank you.");
        DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(routes(&stage, &id).last().map(String::as_str), Some("listen"));
        for words in ["Help me with the tests.", "Welcome to the mesh."] {
            assert_eq!(told(&model, words).len(), 1, "{words}: it came once");
        }
    });
}

#[test]
fn a_session_that_works_is_invited_between_its_tools() {
    isolated(|| {
        let stage = installed();
        let (inviting, readme) = (Arc::clone(&stage), stage.project.join("README.md"));
        let model = Model::start(
            Script::new()
                .answer_with("Read the readme", move |_| {
                    let session = discovered(&inviting)["session"].as_str().expect("an id").to_owned();
                    let told = inviting.relay_ok(&["invite", &session]);
                    assert!(
                        told.contains("invitation stored; it comes when the session is idle or uses a tool"),
                        "{told}"
                    );
                    ModelAnswer::Call { tool: "read".to_owned(), input: json!({"filePath": readme}) }
                })
                .call("invites you to join", REGISTER, json!({"name": "alice"}))
                .say("you are `alice`", "I am alice."),
        );
        let run = OpenCode::new(&stage, &model).ask("Read the readme.", &[]);
        assert_eq!(run.result, "I am alice.", "{:?}", run.outcome);
        assert!(model.wait_for_news("# A project").news().contains("invites you to join"));
        assert_eq!(told(&model, "invites you to join").len(), 1, "once");
    });
}

#[test]
fn where_the_connector_cannot_invite_the_command_does_so_over_http() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(good_morning());
        let server = OpenCode::new(&stage, &model).with("OPENCODE_SERVER_PASSWORD", "a password").serve();
        let session = server.session();
        server.say(&session, "build", "Good morning.");
        assert_eq!(discovered(&stage)["wakes_by"], json!(["listen", "prompt_async"]));
        OpenCode::disconnect(&stage);
        assert_eq!(discovered(&stage)["wakes_by"], json!(["prompt_async"]), "nobody listens any more");
        stage.relay_ok(&["invite", &session, "Help me with the tests."]);
        wait_for("she has joined", || session_of(&stage, "alice"));
        server.wait_until_idle(&session);
        assert_eq!(told(&model, "Help me with the tests.").len(), 1, "it was invited once");
    });
}

#[test]
fn a_fork_takes_over_neither_name_nor_mail() {
    isolated(|| {
        let stage = installed();
        let script = joining("alice").say("Who are you?", "I do not know.").say("Only for alice", "Heard.");
        let model = Model::start(script);
        let server = OpenCode::new(&stage, &model).with("OPENCODE_SERVER_PASSWORD", "a password").serve();
        let session = server.session();
        server.say(&session, "plan", "Join the mesh as alice.");
        let fork = server.fork(&session);
        server.say(&fork, "plan", "Who are you?");
        assert_eq!(session_of(&stage, "alice").as_ref(), Some(&session), "she has stayed");
        let id = send(&stage, "alice", "Only for alice");
        wait_for("it counts as shown", || statuses(&stage, &id).contains(&"shown".to_owned()).then_some(()));
        server.wait_until_idle(&session);
        let holds = |session: &str| Value::Array(server.messages(session)).to_string().contains("Only for alice");
        assert!(holds(&session) && !holds(&fork), "and so has her mail");
    });
}

#[test]
fn where_the_connector_cannot_wake_the_host_does_so_over_http() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice").say("By the other way", "It came."));
        let server = OpenCode::new(&stage, &model).with("OPENCODE_SERVER_PASSWORD", "a password").serve();
        let session = server.session();
        server.say(&session, "plan", "Join the mesh as alice.");
        OpenCode::disconnect(&stage);
        let _host = Host::start(&stage);
        let id = send(&stage, "alice", "By the other way");
        let woken = model.wait_for_news("By the other way");
        assert_eq!(woken.body["model"], "two");
        wait_for("it counts as shown", || statuses(&stage, &id).contains(&"shown".to_owned()).then_some(()));
        assert_eq!(routes(&stage, &id), ["prompt_async"]);
        observed(&stage, Client::OpenCode, Ability::IdleWake, Some("prompt_async"));
        server.wait_until_idle(&session);
        assert_eq!(told(&model, "By the other way").len(), 1);
        assert_eq!(prompts(&server.messages(&session)).last().map(|prompt| &prompt["agent"]), Some(&json!("plan")));
    });
}

#[test]
fn where_both_ways_are_open_each_message_takes_one() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice"));
        let terminal = OpenCode::new(&stage, &model).open(&["--port", "5555"]);
        terminal.type_line("Join the mesh as alice.");
        says(&terminal, "I am alice.");
        let hint = std::fs::read_to_string(session_file(&stage)).expect("the session is kept");
        assert!(hint.contains(r#"\"port\":5555"#), "the host knows the way too: {hint}");
        let _host = Host::start(&stage);
        let ids: Vec<String> = (1..=5).map(|number| send(&stage, "alice", &format!("Message {number}."))).collect();
        for id in &ids {
            wait_for("it counts as shown", || statuses(&stage, id).contains(&"shown".to_owned()).then_some(()));
            assert_eq!(routes(&stage, id).last().map(String::as_str), Some("listen"), "the connector goes first");
        }
        terminal.wait_until_gone("esc interrupt");
        let everything = model.heard().last().expect("it was asked").everything();
        for number in 1..=5 {
            assert_eq!(everything.matches(&format!("Message {number}.")).count(), 1, "{everything}");
        }
    });
}

#[test]
fn a_session_that_waits_for_its_person_is_left_alone_until_they_answered() {
    isolated(|| {
        let stage = installed();
        let command = json!({"command": "echo it is $((6 * 7))", "description": "Count"});
        let model = Model::start(joining("alice").call("Count", "bash", command).say("it is 42", "42."));
        let asks = json!({"permission": {"bash": "ask"}}).to_string();
        let terminal = OpenCode::new(&stage, &model).with("OPENCODE_CONFIG_CONTENT", &asks).open(&[]);
        terminal.type_line("Join the mesh as alice.");
        says(&terminal, "I am alice.");
        terminal.type_line("Count to 42.");
        terminal.wait_for("Permission required");
        wait_for("the mesh knows that it waits", || {
            std::fs::read_to_string(session_file(&stage)).is_ok_and(|kept| kept.contains("needs-input")).then_some(())
        });
        let id = send(&stage, "alice", "While you wait");
        terminal.press("Enter");
        model.wait_for_news("it is 42");
        wait_for("it counts as shown", || statuses(&stage, &id).contains(&"shown".to_owned()).then_some(()));
        assert_eq!(status(&stage, &id)["recipients"][0]["history"][1]["evidence"], json!({"tool": "bash"}));
        assert_eq!(told(&model, "While you wait").len(), 1);
    });
}

#[test]
fn a_subagent_is_an_agent_of_its_own_and_takes_nobody_elses_mail() {
    isolated(|| {
        let stage = installed();
        let mail = Arc::clone(&stage);
        let task = json!({"description": "Help", "prompt": "Join as helper.", "subagent_type": "general"});
        let model = Model::start(
            Script::new()
                .call("Join the mesh", REGISTER, json!({"name": "alice"}))
                .call("you are `alice`", "task", task)
                .answer_with("Join as helper", move |_| {
                    mail.relay_ok(&["send", "alice", "For alice alone"]);
                    ModelAnswer::Call { tool: REGISTER.to_owned(), input: json!({"name": "helper"}) }
                })
                .say("you are `helper`", "The helper is done.")
                .say("The helper is done.", "All done."),
        );
        let run = OpenCode::new(&stage, &model).ask("Join the mesh as alice, then have somebody help.", &[]);
        assert_eq!(run.result, "All done.", "{:?}", run.outcome);
        let (alice, helper) = (session_of(&stage, "alice"), session_of(&stage, "helper"));
        assert!(alice == Some(run.session) && helper.is_some() && helper != alice, "{alice:?} {helper:?}");
        let shown = told(&model, "For alice alone");
        assert!(shown.len() == 1 && shown[0].news().contains("The helper is done."), "to its own agent, once");
    });
}

#[test]
fn a_shell_that_an_agent_starts_speaks_for_it() {
    isolated(|| {
        let stage = installed();
        stage.relay_ok(&["register", "bob"]);
        let command = json!({"command": "relay-mesh send bob 'Written in a shell'", "description": "Send"});
        let model = Model::start(
            Script::new()
                .call("Join the mesh", REGISTER, json!({"name": "alice"}))
                .call("you are `alice`", "bash", command)
                .say("stored for bob", "Sent."),
        );
        let run = OpenCode::new(&stage, &model).ask("Join the mesh as alice and write to bob from a shell.", &[]);
        assert_eq!(run.result, "Sent.", "{:?}", run.outcome);
        let read: Value = serde_json::from_str(&stage.relay_ok(&["read", "--agent", "bob", "--json"])).expect("JSON");
        assert_eq!(read["messages"][0]["from"], "alice", "{read}");
    });
}

#[test]
fn the_password_of_a_server_is_in_no_file_and_another_one_is_known_at_once() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice"));
        let mut server = OpenCode::new(&stage, &model).with("OPENCODE_SERVER_PASSWORD", "correct horse 1").serve();
        let session = server.session();
        server.say(&session, "build", "Join the mesh as alice.");
        let answers = format!("the OpenCode on port {} answers", server.port);
        let doctor = || stage.run(&["doctor", "opencode", "--project", &project(&stage)]).stdout;
        assert!(doctor().contains(&answers), "{}", doctor());
        let files = stage.tree(&stage.data);
        let holds = |bytes: &Vec<u8>| bytes.windows(13).any(|piece| piece == b"correct horse");
        let told: Vec<_> = files.iter().filter(|(_, bytes)| holds(bytes)).map(|(path, _)| path).collect();
        assert!(files.len() > 5 && told.is_empty(), "{told:?}");
        server.process.kill();
        let another = OpenCode::new(&stage, &model).with("OPENCODE_SERVER_PASSWORD", "correct horse 2").serve();
        assert_eq!(another.port, server.port);
        assert!(doctor().contains(&answers), "{}", doctor());
    });
}

#[test]
fn mail_that_comes_mid_turn_is_shown_with_the_next_tool_and_only_there() {
    isolated(|| {
        let stage = installed();
        let mail = Arc::clone(&stage);
        let readme = stage.project.join("README.md");
        let model = Model::start(
            Script::new()
                .call("Join the mesh", REGISTER, json!({"name": "alice"}))
                .answer_with("you are `alice`", move |_| {
                    mail.relay_ok(&["send", "alice", "Mind the gap."]);
                    ModelAnswer::Call { tool: "read".to_owned(), input: json!({"filePath": readme}) }
                })
                .say("# A project", "I read it."),
        );
        let run = OpenCode::new(&stage, &model).ask("Join the mesh as alice, then read the readme.", &[]);
        assert_eq!(run.result, "I read it.", "{:?}", run.outcome);
        let with_tool = model.wait_for_news("# A project");
        assert!(with_tool.news().contains("Mind the gap."), "{}", with_tool.news());
        assert_eq!(told(&model, "Mind the gap.").len(), 1, "and no turn more");
        let history = DeliveryHistory::up_to(&stage, &id_of(&with_tool.news(), "Mind the gap."), "shown");
        observed(&stage, Client::OpenCode, Ability::MidTurn, history.route("shown").as_deref());
    });
}

#[test]
fn compaction_takes_neither_the_protocol_nor_the_name() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice").say("Do you still hear me?", "I hear you."));
        let server = OpenCode::new(&stage, &model).serve();
        let session = server.session();
        server.say(&session, "build", "Join the mesh as alice.");
        server.compact(&session);
        server.wait_until_idle(&session);
        let id = send(&stage, "alice", "Do you still hear me?");
        let woken = model.wait_for_news("Do you still hear me?");
        let everything = woken.everything();
        assert!(!everything.contains("Join the mesh as alice."), "the history is gone: {everything}");
        for words in ["You are `alice` on the relay-mesh.", "Register once with register_agent"] {
            assert_eq!(everything.matches(words).count(), 1, "{words}: {everything}");
        }
        wait_for("it counts as shown", || statuses(&stage, &id).contains(&"shown".to_owned()).then_some(()));
        let protocol = woken.place_of("Register once with register_agent");
        observed(&stage, Client::OpenCode, Ability::Compaction, protocol.as_deref());
    });
}

#[test]
fn a_connector_that_is_killed_loses_nothing_and_shows_nothing_twice() {
    isolated(|| {
        let stage = installed();
        let mail = Arc::clone(&stage);
        let model = Model::start(
            joining("alice")
                .answer_with("While it lives", |_| {
                    // The model has the message; its receipt may or may not have been processed.
                    OpenCode::end_listener();
                    ModelAnswer::Say("One.".to_owned())
                })
                .answer_with("While it is gone", move |_| {
                    mail.relay_ok(&["send", "alice", "While it comes back"]);
                    OpenCode::end_listener();
                    ModelAnswer::Say("Two.".to_owned())
                })
                .say("While it comes back", "Three."),
        );
        let server = OpenCode::new(&stage, &model).serve();
        let session = server.session();
        server.say(&session, "build", "Join the mesh as alice.");
        let first = send(&stage, "alice", "While it lives");
        model.wait_for_news("While it lives");
        server.wait_until_idle(&session);
        let second = send(&stage, "alice", "While it is gone");
        model.wait_until_spoken();
        server.wait_until_idle(&session);
        for id in [&first, &second] {
            wait_for("it counts as shown", || statuses(&stage, id).contains(&"shown".to_owned()).then_some(()));
        }
        wait_for("nothing waits", || {
            stage.relay_ok(&["read", "--agent", "alice", "--unread"]).is_empty().then_some(())
        });
        for words in ["While it lives", "While it is gone", "While it comes back"] {
            assert_eq!(told(&model, words).len(), 1, "{words}");
        }
    });
}

#[test]
fn without_relay_mesh_it_says_so_and_goes_on() {
    isolated(|| {
        let stage = installed();
        let local = stage.project.join(".opencode/relay-mesh.local.json");
        std::fs::write(local, r#"{"program": ["/nowhere/relay-mesh"]}"#).expect("the project is writable");
        let model = Model::start(Script::new().say("Good morning", "Good morning."));
        let terminal = OpenCode::new(&stage, &model).open(&[]);
        terminal.type_line("Good morning");
        terminal.wait_for("could not be started");
        terminal.wait_for("Good morning.");
        model.wait_until_spoken();
    });
}

/// A script that joins as `name` when asked to.
fn joining(name: &str) -> Script {
    Script::new()
        .call("Join the mesh", REGISTER, json!({"name": name}))
        .say(&format!("you are `{name}`"), &format!("I am {name}."))
}

/// A script that says good morning, and joins as alice when it is invited.
fn good_morning() -> Script {
    Script::new()
        .say("Good morning.", "Good morning to you.")
        .call("invites you to join", REGISTER, json!({"name": "alice"}))
        .say("you are `alice`", "I am alice.")
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// A stage with the mesh installed in its project.
fn installed() -> Arc<Stage> {
    let stage = stage();
    install(&stage);
    Arc::new(stage)
}

fn install(stage: &Stage) {
    stage.relay_ok(&["install", "opencode", "--project", &project(stage), "--yes"]);
}

fn project(stage: &Stage) -> String {
    stage.project.display().to_string()
}

/// The project without the files that OpenCode creates in each of its folders: an ignore file that hides itself and the
/// downloads beside it.
fn tree_without_its_own(stage: &Stage) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let own = stage.project.join(".opencode");
    let mut tree = stage.tree(&stage.project);
    tree.retain(|path, _| *path != own && *path != own.join(".gitignore"));
    tree
}

/// Sends from the command line and returns the message's id.
fn send(stage: &Stage, to: &str, body: &str) -> String {
    let sent: Value = serde_json::from_str(&stage.relay_ok(&["send", to, body, "--json"])).expect("--json writes JSON");
    sent["id"].as_str().expect("a message has an id").to_owned()
}

/// The requests to the model in which a text was new.
fn told(model: &Model, text: &str) -> Vec<Heard> {
    model.heard().into_iter().filter(|heard| heard.news().contains(text)).collect()
}

/// The prompts of a session, from its user or the mesh.
fn prompts(messages: &[Value]) -> Vec<Value> {
    let asked = messages.iter().filter(|message| message["info"]["role"] == "user");
    asked.map(|message| message["info"].clone()).collect()
}

/// The id in the first envelope of a text.
fn id_in(news: &str) -> String {
    let Some((_, after)) = news.split_once("<relay-mesh-message id=\"") else {
        panic!("mail comes in an envelope, and this has none: {news}");
    };
    after.split('"').next().unwrap_or_default().to_owned()
}

/// The only discovered session.
fn discovered(stage: &Stage) -> Value {
    let found: Value = serde_json::from_str(&stage.relay_ok(&["discover", "--json"])).expect("--json writes JSON");
    assert_eq!(found["sessions"][0]["harness"], "opencode", "{found}");
    found["sessions"][0].clone()
}

/// The file of the only session.
fn session_file(stage: &Stage) -> std::path::PathBuf {
    let kept = std::fs::read_dir(stage.data.join("sessions/opencode")).expect("a session is kept").flatten();
    kept.map(|entry| entry.path()).next().expect("one session")
}

/// The delivery of a message, as the user sees it.
fn status(stage: &Stage, id: &str) -> Value {
    serde_json::from_str(&stage.relay_ok(&["message", id, "--json"])).expect("--json writes JSON")
}

/// One field of each delivery step of a message with one recipient.
fn steps(stage: &Stage, id: &str, field: &str) -> Vec<String> {
    let status = status(stage, id);
    let steps = status["recipients"][0]["history"].as_array().cloned().unwrap_or_default();
    steps.iter().filter_map(|step| step[field].as_str().map(str::to_owned)).collect()
}

fn statuses(stage: &Stage, id: &str) -> Vec<String> {
    steps(stage, id, "status")
}

fn routes(stage: &Stage, id: &str) -> Vec<String> {
    steps(stage, id, "route")
}

/// Waits until the session has said this and is idle again.
fn says(terminal: &Terminal, words: &str) {
    terminal.wait_for(words);
    terminal.wait_until_gone("esc interrupt");
}
