//! The main job, end to end: the real Claude Code and a plain MCP client find each other through the real binary and
//! talk, and the idle client is woken. Only the model is scripted.

use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{
    Ability, ClaudeCode, Client, DeliveryHistory, Heard, Host, Model, ModelAnswer, Script, Stage, Terminal, Transcript,
    agents, id_of, isolated, observed, presence_of, session_of, wait_for,
};

const REGISTER: &str = "mcp__relay-mesh__register_agent";
const SEND: &str = "mcp__relay-mesh__send_message";

#[test]
fn two_agents_talk_and_the_idle_one_is_woken() {
    isolated(|| {
        let stage = stage();
        let before = stage.tree(&stage.project);
        let mut transcript = Transcript::new();

        let installed = stage.relay_ok(&["install", "claude-code", "--project", &project(&stage), "--yes"]);
        transcript.step("person", "relay-mesh install claude-code --project . --yes", &files_in(&installed));
        let host = Host::start(&stage);
        transcript.step("person", "relay-mesh serve", "it answers on loopback");

        let model = Model::start(joining("alice").call_with(
            "What is the answer?",
            SEND,
            |news| json!({"to": "bob", "body": "The answer is 42.", "reply_to": id_in(news)}),
        ));
        let terminal = ClaudeCode::new(&stage, &model).open();
        terminal.type_line("Join the mesh as alice.");
        says(&terminal, "I am alice.");
        transcript.step(
            "Claude Code",
            "joins the mesh, asked by its person, and is idle again",
            &visible(&terminal.screen()),
        );

        let mut bob = host.client("a-plain-client");
        let registered = bob.call("register_agent", json!({"name": "bob"}));
        transcript.step("plain MCP client", "register_agent bob", &registered.text);
        let found = bob.call("find_agents", json!({"query": "alic"}));
        assert!(found.text.contains("alice"), "{found:?}");
        transcript.step("plain MCP client", "find_agents alic", &found.text);
        let sent = bob.call("send_message", json!({"to": "alice", "body": "What is the answer?"}));
        assert!(!sent.failed, "{sent:?}");
        let id = sent.structured["id"].as_str().expect("a message has an id").to_owned();
        transcript.step("plain MCP client", "send_message to alice", &sent.text);

        let woken = model.wait_for_news("What is the answer?");
        transcript.step("Claude Code", "wakes, and its model is told", &woken.news());
        assert!(woken.place_of("mail from bob").is_none(), "the notice is for her user: {}", woken.news());
        let reply = bob.call("fetch_messages", json!({"wait_seconds": 20, "acknowledge": true}));
        assert!(reply.text.contains("The answer is 42."), "{reply:?}");
        transcript.step("plain MCP client", "fetch_messages, waiting", &reply.text);

        let status = wait_for("the history is reached", || {
            let status = bob.call("message_status", json!({"id": id}));
            status.text.contains("acknowledged").then_some(status)
        });
        assert_eq!(statuses(&stage, &id), ["stored", "notified", "accepted", "acknowledged"]);
        transcript.step("plain MCP client", "message_status", &status.text);
        let shown_by = self::status(&stage, &id)["recipients"][0]["history"][2]["route"].clone();
        assert_eq!(shown_by, "hook:FileChanged", "it was the wake that showed it");

        drop(terminal);
        let removed = stage.relay_ok(&["uninstall", "claude-code", "--project", &project(&stage), "--yes"]);
        transcript.step("person", "relay-mesh uninstall claude-code --project . --yes", &files_in(&removed));
        assert_eq!(stage.git_status(), "", "the project is as it was");
        assert_eq!(stage.tree(&stage.project), before, "byte for byte");
        transcript.show();
    });
}

#[test]
fn mail_that_waits_when_a_turn_ends_is_shown_before_it_ends() {
    isolated(|| {
        let stage = installed();
        let mail = Arc::clone(&stage);
        let model = Model::start(
            Script::new()
                .call("Join the mesh", REGISTER, json!({"name": "alice"}))
                .answer_with("alice", move |_| {
                    mail.relay_ok(&["send", "alice", "One more thing before you go."]);
                    ModelAnswer::Say("I am done.".to_owned())
                })
                .say("One more thing before you go.", "Now I am done."),
        );
        let run = ClaudeCode::new(&stage, &model).ask("Join the mesh as alice.", &[]);
        assert_eq!(run.result, "Now I am done.", "{:?}", run.outcome);
        assert!(
            model.heard().iter().all(|heard| heard.place_of("mail from shell").is_none()),
            "the model is told once"
        );
        model.wait_until_spoken();
        let told: Vec<_> =
            model.heard().iter().filter(|heard| heard.news().contains("One more thing")).cloned().collect();
        assert_eq!(told.len(), 1, "shown once, and not again");
        assert_eq!(session_of(&stage, "alice"), Some(run.session), "she belongs to the client's own session");
        observed(&stage, Client::ClaudeCode, Ability::Bind, Some("the harness's session id"));
        seen_as(&stage, Ability::TurnEnd, &told[0], "One more thing before you go.");
    });
}

/// A model that joins as alice, and is sent a message before it reads a file in the same turn.
fn written_to_while_it_reads(stage: &Arc<Stage>) -> Model {
    let (mail, readme) = (Arc::clone(stage), stage.project.join("README.md"));
    Model::start(
        Script::new()
            .call("Join the mesh", REGISTER, json!({"name": "alice"}))
            .answer_with("alice", move |_| {
                mail.relay_ok(&["send", "alice", "Mind the gap."]);
                ModelAnswer::Call { tool: "Read".to_owned(), input: json!({"file_path": readme}) }
            })
            .say("# A project", "I read it."),
    )
}

#[test]
fn mail_that_comes_mid_turn_is_shown_after_the_next_tool() {
    isolated(|| {
        let stage = installed();
        let model = written_to_while_it_reads(&stage);
        let run = ClaudeCode::new(&stage, &model).ask("Join the mesh as alice, then read the readme.", &[]);
        assert_eq!(run.result, "I read it.", "{:?}", run.outcome);
        let told = model.wait_for_news("# A project");
        assert!(told.news().contains("Mind the gap."), "the mail came with the tool's result: {}", told.news());
        seen_as(&stage, Ability::MidTurn, &told, "Mind the gap.");
    });
}

#[test]
fn a_user_sees_who_wrote_what_their_agent_is_told_mid_turn() {
    isolated(|| {
        let stage = installed();
        let model = written_to_while_it_reads(&stage);
        let terminal = ClaudeCode::new(&stage, &model).open();
        terminal.type_line("Join the mesh as alice, then read the readme.");
        says(&terminal, "I read it.");
        terminal.wait_for("mail from shell: \u{201c}Mind the gap.\u{201d}");
        assert!(model.heard().iter().all(|heard| heard.place_of("mail from shell").is_none()), "for the user alone");
    });
}

#[test]
fn an_agent_keeps_its_name_and_its_mail_after_clear() {
    isolated(|| {
        keeps_its_name(|stage, terminal| {
            let before = session_of(stage, "alice");
            terminal.type_line("/clear");
            // Mail may arrive as soon as the new session is visible, even if the client does not watch its wake file
            // yet.
            let moved = || session_of(stage, "alice").filter(|session| Some(session) != before.as_ref());
            wait_for("the agent has moved to the new session", moved);
        });
    });
}

#[test]
fn an_agent_keeps_its_name_and_its_mail_after_compact() {
    isolated(|| {
        let (stage, woken) = keeps_its_name(|stage, terminal| {
            let before = session_of(stage, "alice");
            terminal.type_line("/compact");
            terminal.wait_for("Compacted");
            assert_eq!(session_of(stage, "alice"), before, "compaction keeps the session");
        });
        let protocol = woken.place_of("Register once with register_agent");
        observed(&stage, Client::ClaudeCode, Ability::Compaction, protocol.as_deref());
    });
}

/// A session that was just cleared does not watch its wake file yet.
#[test]
fn mail_that_comes_just_after_clear_wakes_the_session() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice"));
        let terminal = ClaudeCode::new(&stage, &model).open();
        terminal.type_line("Join the mesh as alice.");
        says(&terminal, "I am alice.");
        for milliseconds in [0, 50, 100, 200, 300, 500] {
            terminal.type_line("/clear");
            std::thread::sleep(std::time::Duration::from_millis(milliseconds));
            let text = format!("{milliseconds} ms after it was cleared.");
            let id = send(&stage, &text);
            model.wait_for_news(&text);
            DeliveryHistory::up_to(&stage, &id, "shown");
            terminal.wait_until_gone("esc to interrupt");
        }
    });
}

#[test]
fn a_wake_is_no_person_and_a_person_frees_what_was_held() {
    isolated(|| {
        let stage = installed();
        stage.configure("[loops]\nhops = 2\n");
        let host = Host::start(&stage);
        let answer = |news: &str| json!({"to": "bob", "body": "And to you.", "reply_to": id_in(news)});
        let model = Model::start(
            joining("alice")
                .call_with("Greeting 1", SEND, answer)
                .call_with("Greeting 2", SEND, answer)
                .say("Greeting 3", "Enough of that."),
        );
        let terminal = ClaudeCode::new(&stage, &model).open();
        terminal.type_line("Join the mesh as alice.");
        says(&terminal, "I am alice.");
        let mut bob = host.client("a-plain-client");
        bob.call("register_agent", json!({"name": "bob"}));
        for greeting in ["Greeting 1", "Greeting 2"] {
            bob.call("send_message", json!({"to": "alice", "body": greeting}));
            model.wait_for_news(greeting);
            let reply = bob.call("fetch_messages", json!({"wait_seconds": 20, "acknowledge": true}));
            assert!(reply.text.contains("And to you."), "{reply:?}");
        }
        // Two messages and two answers are four hops without the user: if the wakes in between did not count, this
        // message would wake again.
        let third = bob.call("send_message", json!({"to": "alice", "body": "Greeting 3"}));
        let id = third.structured["id"].as_str().expect("a message has an id");
        let status = status(&stage, id);
        assert!(status["recipients"][0]["held"].is_string(), "{status}");
        terminal.type_line("Has anything come?");
        model.wait_for_news("Greeting 3");
        says(&terminal, "Enough of that.");
        assert!(terminal.screen().contains("relay-mesh: mail from bob was held: "), "{}", terminal.screen());
    });
}

#[test]
fn the_screen_says_why_two_agents_have_stopped_answering_each_other() {
    isolated(|| {
        let stage = installed();
        stage.configure("[loops]\nhops = 1\n");
        let answer = |to: &'static str, body: &'static str| move |news: &str| json!({"to": to, "body": body, "reply_to": id_in(news)});
        let of_bob = Model::start(joining("bob").call_with("First", SEND, answer("alice", "Second")));
        let of_alice =
            Model::start(joining("alice").call("Ask bob", SEND, json!({"to": "bob", "body": "First"})).call_with(
                "Second",
                SEND,
                answer("bob", "Third"),
            ));
        let [bob, alice] = [&of_bob, &of_alice].map(|model| ClaudeCode::new(&stage, model).open());
        for (terminal, name) in [(&bob, "bob"), (&alice, "alice")] {
            terminal.type_line(&format!("Join the mesh as {name}."));
            says(terminal, &format!("I am {name}."));
        }
        alice.type_line("Ask bob.");
        of_bob.wait_for_news("First");
        of_alice.wait_for_news("Second");
        alice.wait_for("relay-mesh: mail to bob waits: 2 messages since the user's last prompt, and the limit is 1.");
        alice.wait_for("relay-mesh asks");
        assert_eq!(of_bob.times_told("Third"), 0, "{}", bob.screen());
    });
}

#[test]
fn a_session_that_a_program_drives_is_woken_too() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice").say("Are you there?", "I am."));
        let mut session = ClaudeCode::new(&stage, &model).converse();
        session.say("Join the mesh as alice.");
        assert_eq!(session.wait_for_result()["result"], "I am alice.");
        stage.relay_ok(&["send", "alice", "Are you there?"]);
        assert_eq!(session.wait_for_result()["result"], "I am.");
        model.wait_until_spoken();
    });
}

#[test]
fn a_session_that_goes_into_another_folder_still_watches_its_wake_file() {
    isolated(|| {
        let stage = installed();
        std::fs::create_dir(stage.project.join("below")).expect("the project is writable");
        let model = Model::start(
            joining("alice")
                .call("Go below", "Bash", json!({"command": "cd below && pwd", "description": "Goes below"}))
                .say("/below", "I am below.")
                .say("Are you there?", "I am."),
        );
        let mut session = ClaudeCode::new(&stage, &model).converse();
        session.say("Join the mesh as alice.");
        assert_eq!(session.wait_for_result()["result"], "I am alice.");
        session.say("Go below.");
        assert_eq!(session.wait_for_result()["result"], "I am below.");
        let id = send(&stage, "Are you there?");
        assert_eq!(session.wait_for_result()["result"], "I am.");
        let history = DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(history.route("shown").as_deref(), Some("hook:FileChanged"));
        model.wait_until_spoken();
    });
}

#[test]
fn the_model_reads_the_protocol_once() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice"));
        let run = ClaudeCode::new(&stage, &model).ask("Join the mesh as alice.", &[]);
        assert_eq!(run.result, "I am alice.", "{:?}", run.outcome);
        model.reads_the_protocol_once("Join the mesh as alice.");
    });
}

#[test]
fn an_installation_over_http_reaches_the_host() {
    isolated(|| {
        let stage = stage();
        let host = Host::start(&stage);
        let url = format!("http://127.0.0.1:{}/mcp", host.port);
        let project = project(&stage);
        stage.relay_ok(&[
            "install",
            "claude-code",
            "--project",
            &project,
            "--yes",
            "--transport",
            "http",
            "--http-url",
            &url,
        ]);
        let committed = std::fs::read_to_string(stage.project.join(".mcp.json")).expect("the server is configured");
        assert!(!committed.contains(&host.token), "what a team commits holds no secret");
        let model = Model::start(joining("alice"));
        let client = ClaudeCode::new(&stage, &model).with("RELAY_MESH_TOKEN", &host.token);
        let run = client.ask("Join the mesh as alice.", &[]);
        assert_eq!(run.result, "I am alice.", "{:?}", run.outcome);
        assert_eq!(agents(&stage), ["alice"]);
    });
}

#[test]
fn an_agent_keeps_its_name_and_its_mail_when_its_session_is_resumed() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice").say("While you were away", "I read it."));
        let client = ClaudeCode::new(&stage, &model);
        let first = client.ask("Join the mesh as alice.", &[]);
        assert_eq!(first.result, "I am alice.", "{:?}", first.outcome);
        wait_for("the session has ended", || {
            (presence_of(&stage, "alice").as_deref() == Some("offline")).then_some(())
        });
        let id = send(&stage, "While you were away, the build broke.");
        assert_eq!(statuses(&stage, &id), ["stored"], "nobody was there to be notified");
        let again = client.ask("Go on.", &["--resume", &first.session]);
        assert_eq!((again.result.as_str(), &again.session), ("I read it.", &first.session), "{:?}", again.outcome);
        assert_eq!(texts_way(&stage, &id), ["stored", "accepted", "shown"]);
        assert_eq!(agents(&stage), ["alice"]);
        assert_eq!(session_of(&stage, "alice").as_ref(), Some(&first.session));
    });
}

#[test]
fn a_fork_takes_over_neither_name_nor_mail() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(
            joining("alice")
                .call("Join too", REGISTER, json!({"name": "alice"}))
                .say("alice-2", "I am another.")
                .say("For the first one", "That is me."),
        );
        let client = ClaudeCode::new(&stage, &model);
        let first = client.ask("Join the mesh as alice.", &[]);
        assert_eq!(first.result, "I am alice.", "{:?}", first.outcome);
        let id = send(&stage, "For the first one only.");
        let fork = client.ask("Join too.", &["--resume", &first.session, "--fork-session"]);
        assert_ne!(fork.session, first.session, "{:?}", fork.outcome);
        assert_eq!(fork.result, "I am another.", "{:?}", fork.outcome);
        assert_eq!(agents(&stage), ["alice", "alice-2"]);
        assert_eq!(statuses(&stage, &id), ["stored"], "the fork was not shown it");
        assert_eq!(session_of(&stage, "alice").as_ref(), Some(&first.session));
        assert_eq!(session_of(&stage, "alice-2").as_ref(), Some(&fork.session));
        let again = client.ask("Go on.", &["--resume", &first.session]);
        assert_eq!(again.result, "That is me.", "{:?}", again.outcome);
        assert_eq!(texts_way(&stage, &id), ["stored", "accepted", "shown"]);
    });
}

#[test]
fn a_session_that_was_killed_is_gone_and_finds_its_mail_when_it_is_resumed() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining("alice").say("Before the crash", "I remember."));
        let client = ClaudeCode::new(&stage, &model);
        let mut session = client.converse();
        session.say("Join the mesh as alice.");
        let joined = session.wait_for_result();
        assert_eq!(joined["result"], "I am alice.");
        let first = joined["session_id"].as_str().expect("a session has an id").to_owned();
        session.process.kill();
        wait_for("its process is missed", || {
            (presence_of(&stage, "alice").as_deref() == Some("offline")).then_some(())
        });
        let id = send(&stage, "Before the crash you were asked to test.");
        assert_eq!(statuses(&stage, &id), ["stored"], "a dead session is not notified");
        let again = client.ask("Go on.", &["--resume", &first]);
        assert_eq!(
            (again.result.as_str(), again.session.as_str()),
            ("I remember.", first.as_str()),
            "{:?}",
            again.outcome
        );
        assert_eq!(texts_way(&stage, &id), ["stored", "accepted", "shown"]);
        assert_eq!(agents(&stage), ["alice"]);
    });
}

#[test]
fn a_subagent_that_registers_is_an_agent_of_its_own_and_takes_nobody_elses_mail() {
    isolated(|| {
        let stage = installed();
        let mail = Arc::clone(&stage);
        let model = Model::start(
            Script::new()
                .call("Join the mesh", REGISTER, json!({"name": "alice"}))
                .call("alice", "Agent", task("Join as helper."))
                .answer_with("Join as helper", move |_| {
                    send(&mail, "For alice alone");
                    ModelAnswer::Call { tool: REGISTER.to_owned(), input: json!({"name": "helper"}) }
                })
                .say("helper", "The helper is done.")
                // Timing decides whether the mail comes with the helper's result or at the end of the turn.
                .say("For alice alone", "All done.")
                .say("The helper is done.", "All done."),
        );
        let run = ClaudeCode::new(&stage, &model).ask("Join the mesh as alice, then have somebody help.", &[]);
        assert_eq!(run.result, "All done.", "{:?}", run.outcome);
        let (alice, helper) = (session_of(&stage, "alice"), session_of(&stage, "helper"));
        assert!(alice.as_ref() == Some(&run.session) && helper.is_some() && helper != alice, "{alice:?} {helper:?}");
        the_root_alone_is_told(&stage, &model, &run.session);
    });
}

#[test]
fn a_subagent_that_does_not_register_speaks_as_its_root() {
    isolated(|| {
        let stage = installed();
        stage.relay_ok(&["register", "bob"]);
        let mail = Arc::clone(&stage);
        let model = Model::start(
            Script::new()
                .call("Join the mesh", REGISTER, json!({"name": "alice"}))
                .call("alice", "Agent", task("Write to bob."))
                .answer_with("Write to bob", move |_| {
                    send(&mail, "For alice alone");
                    ModelAnswer::Call {
                        tool: SEND.to_owned(),
                        input: json!({"to": "bob", "body": "Written by a helper"}),
                    }
                })
                .say("stored", "The helper is done.")
                // As above, and after the helper's result too.
                .say("For alice alone", "All done.")
                .say("The helper is done.", "All done."),
        );
        let run = ClaudeCode::new(&stage, &model).ask("Join the mesh as alice, then have somebody write.", &[]);
        assert_eq!(run.result, "All done.", "{:?}", run.outcome);
        let read: Value = serde_json::from_str(&stage.relay_ok(&["read", "--agent", "bob", "--json"])).expect("JSON");
        assert_eq!(
            (&read["messages"][0]["from"], &read["messages"][0]["body"]),
            (&json!("alice"), &json!("Written by a helper"))
        );
        assert_eq!(agents(&stage), ["alice", "bob"], "nobody else has joined");
        the_root_alone_is_told(&stage, &model, &run.session);
    });
}

#[test]
fn a_session_that_has_not_joined_is_discovered_and_invited() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(
            Script::new().call("invites you to join", REGISTER, json!({"name": "alice"})).say("alice", "I am alice."),
        );
        let client = ClaudeCode::new(&stage, &model);
        let terminal = client.open();
        let session = wait_for("the session is seen and watches its wake file", || {
            let found = discovered(&stage);
            let found = found.iter().find(|one| one["wakes_by"] == json!(["wake-file"]))?;
            assert_eq!((&found["agent"], &found["folder"]), (&Value::Null, &json!(project(&stage))));
            found["session"].as_str().map(str::to_owned)
        });
        let told = stage.relay_ok(&["invite", &session, "Help me with the tests.", "--json"]);
        let told: Value = serde_json::from_str(&told).expect("--json writes JSON");
        assert_eq!((&told["route"], &told["from"]), (&json!("wake-file"), &json!("shell")), "{told}");
        let news = model.wait_for_news("Help me with the tests.").news();
        assert!(news.contains("Somebody at a shell of this machine invites you"), "{news}");
        says(&terminal, "I am alice.");
        assert_eq!(session_of(&stage, "alice").as_ref(), Some(&session));
        let refused = stage.run(&["invite", &session]);
        assert!(refused.stderr.contains("has joined already, as `alice`"), "{refused:?}");
        let heard = model.heard().iter().filter(|heard| heard.news().contains("Help me with the tests.")).count();
        assert_eq!(heard, 1, "the invitation was shown once");
    });
}

#[test]
fn a_session_without_hooks_is_discovered_and_cannot_be_woken() {
    isolated(|| {
        let stage = stage();
        let model = Model::start(Script::new());
        let _terminal = ClaudeCode::new(&stage, &model).open();
        let found = wait_for("the client lists its session", || discovered(&stage).into_iter().next());
        assert_eq!((&found["harness"], &found["folder"]), (&json!("claude-code"), &json!(project(&stage))), "{found}");
        assert_eq!(found["wakes_by"], json!([]), "{found}");
        let session = found["session"].as_str().expect("a session has an id");
        let refused = stage.run(&["invite", session]);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains("Claude Code has no way to wake session"), "{refused:?}");
        assert!(refused.stderr.contains("hint: "), "{refused:?}");
    });
}

/// An agent joins, its session gets a new context, and it still has its name and gets its mail. Returns the request in
/// which its model was told so.
fn keeps_its_name(renew: impl Fn(&Stage, &Terminal)) -> (Arc<Stage>, Heard) {
    let stage = installed();
    let model = Model::start(joining("alice").say("Do you still hear me?", "I hear you."));
    let terminal = ClaudeCode::new(&stage, &model).open();
    terminal.type_line("Join the mesh as alice.");
    says(&terminal, "I am alice.");
    renew(&stage, &terminal);
    let sent = stage.relay_ok(&["send", "alice", "Do you still hear me?", "--json"]);
    let woken = model.wait_for_news("Do you still hear me?");
    says(&terminal, "I hear you.");
    assert_eq!(agents(&stage), ["alice"], "nobody else has joined");
    let sent: Value = serde_json::from_str(&sent).expect("--json writes JSON");
    let id = sent["id"].as_str().expect("a message has an id");
    wait_for("the mail was shown", || statuses(&stage, id).contains(&"shown".to_owned()).then_some(()));
    (stage, woken)
}

/// Records the route by which a mail was shown to the model.
fn seen_as(stage: &Stage, ability: Ability, told: &Heard, text: &str) {
    let history = DeliveryHistory::up_to(stage, &id_of(&told.news(), text), "shown");
    observed(stage, Client::ClaudeCode, ability, history.route("shown").as_deref());
}

/// Mail for alice that arrived while her subagent worked was shown only to her: in that run, or in the next one of her
/// session if the run ended while a hook handed it over.
fn the_root_alone_is_told(stage: &Stage, model: &Model, session: &str) {
    if model.times_told("For alice alone") == 0 {
        ClaudeCode::new(stage, model).ask("Go on.", &["--resume", session]);
    }
    let told = model.wait_for_news("For alice alone");
    assert!(told.everything().contains("Join the mesh as alice"), "the root is told: {}", told.everything());
    assert_eq!(model.times_told("For alice alone"), 1, "once");
}

/// The task that the model gives a subagent.
fn task(prompt: &str) -> Value {
    json!({"description": "Help", "prompt": prompt, "subagent_type": "general-purpose"})
}

/// A script that joins as `name` when asked to.
fn joining(name: &str) -> Script {
    Script::joining(REGISTER, name)
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// A stage with the mesh installed in its project.
fn installed() -> Arc<Stage> {
    let stage = stage();
    stage.relay_ok(&["install", "claude-code", "--project", &project(&stage), "--yes"]);
    Arc::new(stage)
}

fn project(stage: &Stage) -> String {
    stage.project.display().to_string()
}

/// The id in the first envelope of a text.
fn id_in(news: &str) -> String {
    let (_, after) = news.split_once("<relay-mesh-message id=\"").expect("mail comes in an envelope");
    after.split('"').next().unwrap_or_default().to_owned()
}

/// Sends to alice from the command line and returns the message's id.
fn send(stage: &Stage, body: &str) -> String {
    let sent = stage.relay_ok(&["send", "alice", body, "--json"]);
    let sent: Value = serde_json::from_str(&sent).expect("--json writes JSON");
    sent["id"].as_str().expect("a message has an id").to_owned()
}

/// The live sessions, as the user sees them.
fn discovered(stage: &Stage) -> Vec<Value> {
    let list: Value = serde_json::from_str(&stage.relay_ok(&["discover", "--json"])).expect("--json writes JSON");
    list["sessions"].as_array().cloned().unwrap_or_default()
}

/// The statuses of a message with one recipient.
fn statuses(stage: &Stage, id: &str) -> Vec<String> {
    let steps = status(stage, id)["recipients"][0]["history"].as_array().cloned().unwrap_or_default();
    steps.iter().filter_map(|step| step["status"].as_str().map(str::to_owned)).collect()
}

/// The statuses but for "notified": the wake file may be written before the hook of a prompt brings the text.
fn texts_way(stage: &Stage, id: &str) -> Vec<String> {
    statuses(stage, id).into_iter().filter(|status| status != "notified").collect()
}

/// The delivery of a message, as the user sees it.
fn status(stage: &Stage, id: &str) -> Value {
    serde_json::from_str(&stage.relay_ok(&["message", id, "--json"])).expect("--json writes JSON")
}

/// Waits until the session has said this, its hooks have ended and it is idle again.
fn says(terminal: &Terminal, words: &str) {
    terminal.wait_for(&format!("● {words}"));
    terminal.wait_until_gone("esc to interrupt");
}

/// The files that a diff is about.
fn files_in(diff: &str) -> String {
    let heads = diff.lines().filter(|line| line.starts_with("--- ") || line.starts_with("+++ "));
    heads.filter(|line| !line.ends_with("/dev/null")).collect::<Vec<_>>().join("\n")
}

/// A screen without its empty lines.
fn visible(screen: &str) -> String {
    screen.lines().filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n")
}
