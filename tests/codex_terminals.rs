//! Cases of the real Codex's terminals: a cleared conversation, an embedded app server, a turn interrupted by urgent
//! mail, and settings in another folder. Only the model is scripted.

use serde_json::{Value, json};
use test_support::{
    AppServer, Client, Codex, DeliveryHistory, Model, Script, Stage, isolated, send, send_with, session_of, wait_for,
};

#[test]
fn an_agent_goes_with_its_terminal_through_clear_where_the_app_server_is_shared() {
    isolated(|| goes_on_after_clear(AppServer::Shared));
}

#[test]
fn an_agent_goes_with_its_terminal_through_clear_where_the_app_server_is_its_own() {
    isolated(|| goes_on_after_clear(AppServer::Embedded));
}

/// Twice, because the second time there is one more thread that it could belong to.
fn goes_on_after_clear(app_server: AppServer) {
    let stage = installed();
    let again = |script: Script, number| {
        script
            .say(&format!("Who are you, {number}?"), &format!("Still alice, {number}."))
            .say(&format!("Are you there, {number}?"), &format!("Here I am, {number}."))
    };
    let model = Model::start(again(again(Codex::joining("alice"), 1), 2));
    let codex = Codex::new(&stage, &model).app_server(app_server);
    let terminal = codex.joined("alice");
    let mut session = session_of(&stage, "alice").expect("alice is bound to her thread");
    let mut last_words = "I am alice.".to_owned();
    for number in 1..=2 {
        Codex::clear(&terminal, &last_words);
        terminal.type_line(&format!("Who are you, {number}?"));
        last_words = format!("Still alice, {number}.");
        Codex::says(&terminal, &last_words);
        let now = session_of(&stage, "alice").expect("alice is bound to the thread after it");
        assert_ne!(now, session, "/clear begins another thread");
        session = now;
        let told = model.wait_for_news(&format!("Who are you, {number}?"));
        assert_eq!(told.place_of("You are `alice` on the relay-mesh.").as_deref(), Some("developer"), "she is told");
        codex.is_idle("alice");
        match app_server {
            AppServer::Shared => {}
            // It checks its queue every ten seconds; another test waits for that.
            AppServer::Embedded => continue,
        }
        let id = send(&stage, "alice", &format!("Are you there, {number}?"));
        last_words = format!("Here I am, {number}.");
        Codex::says(&terminal, &last_words);
        DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(model.times_told(&format!("<relay-mesh-message id=\"{id}\"")), 1, "in the thread that is shown");
    }
}

#[test]
fn nobody_moves_where_two_terminals_might_have_been_cleared() {
    isolated(|| {
        let stage = installed();
        let script = ["alice", "carol"].into_iter().fold(Script::new(), |script, name| {
            script
                .call(&format!("Join the mesh as {name}"), &Codex::tool("register_agent"), json!({"name": name}))
                .say(&format!("\"name\":\"{name}\""), &format!("I am {name}."))
        });
        let model = Model::start(script.say("Who are you?", "I do not know."));
        let codex = Codex::new(&stage, &model);
        let alices = codex.joined("alice");
        let _carols = codex.joined("carol");
        let sessions = || ["alice", "carol"].map(|name| session_of(&stage, name));
        let before = sessions();
        Codex::clear(&alices, "I am alice.");
        alices.type_line("Who are you?");
        Codex::says(&alices, "I do not know.");
        assert_eq!(sessions(), before, "it may have been either's screen");
        let told = model.wait_for_news("Who are you?").everything();
        assert!(!told.contains("You are `"), "nor is it told that it is somebody");
    });
}

#[test]
fn a_fork_takes_over_neither_name_nor_mail() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(Codex::joining("alice").say("Who are you?", "I do not know."));
        let codex = Codex::new(&stage, &model);
        let first = codex.joined("alice");
        let session = session_of(&stage, "alice").expect("alice is bound to her thread");
        first.close();
        let fork = codex.open_with(&["fork", &session]);
        fork.type_line("Who are you?");
        Codex::says(&fork, "I do not know.");
        assert_eq!(session_of(&stage, "alice"), Some(session), "she has stayed");
        let told = model.wait_for_news("Who are you?").news();
        assert!(!told.contains("You are `alice`"), "nor is the fork told anew that it is she: {told}");
    });
}

#[test]
fn a_thread_that_has_not_joined_is_discovered_and_invited() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(
            Script::new()
                .say("Good morning.", "Good morning to you.")
                .call("invites you to join", &Codex::tool("register_agent"), json!({"name": "alice"}))
                .say("\"name\":\"alice\"", "I am alice."),
        );
        let codex = Codex::new(&stage, &model);
        let terminal = codex.open();
        terminal.type_line("Good morning.");
        Codex::says(&terminal, "Good morning to you.");
        let found: Value = serde_json::from_str(&stage.relay_ok(&["discover", "--json"])).expect("--json writes JSON");
        let found = &found["sessions"][0];
        assert_eq!((&found["harness"], &found["agent"]), (&json!("codex"), &Value::Null), "{found}");
        let session = found["session"].as_str().expect("a session has an id").to_owned();
        stage.relay_ok(&["invite", &session, "Help me with the tests."]);
        Codex::says(&terminal, "I am alice.");
        assert_eq!(session_of(&stage, "alice"), Some(session));
        assert_eq!(model.times_told("Help me with the tests."), 1, "it was invited once");
    });
}

#[test]
fn urgent_mail_breaks_into_a_turn_and_other_mail_waits() {
    isolated(|| {
        let stage = installed();
        let script =
            Codex::joining("alice").talk("Think about it", "I am thinking").say("The house is on fire", "I run.");
        let model = Model::start(script);
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        terminal.type_line("Think about it.");
        terminal.wait_for("I am thinking");
        let patient = send(&stage, "alice", "Nothing that could not wait.");
        assert_eq!(DeliveryHistory::of(&stage, &patient).route("shown"), None, "it breaks into nothing");
        let urgent = send_with(&stage, "alice", "The house is on fire.", &["--priority", "urgent"]);
        Codex::says(&terminal, "I run.");
        let history = DeliveryHistory::up_to(&stage, &urgent, "shown");
        assert_eq!(history.route("shown").as_deref(), Some("steer"));
        let told = model.wait_for_news("The house is on fire.");
        assert_eq!(told.place_of("The house is on fire.").as_deref(), Some("function_call_output"), "nobody's order");
        assert_eq!(told.place_of("An urgent relay-mesh message").as_deref(), Some("user"), "our own words");
        assert_eq!(model.times_told("The house is on fire."), 1, "shown once");
        // The waiting message comes with the interruption, by the prompt hook, and interrupted nothing itself.
        let history = DeliveryHistory::up_to(&stage, &patient, "shown");
        assert_ne!(history.route("shown").as_deref(), Some("steer"));
        assert_eq!(model.times_told("Nothing that could not wait."), 1, "shown once");
    });
}

#[test]
fn the_doctor_names_a_terminal_that_shares_no_app_server_and_how_it_would() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(Codex::joining("alice").call(
            "Join us as carol",
            &Codex::tool("register_agent"),
            json!({"name": "carol"}),
        ));
        let doctor = || stage.run(&["doctor", "codex", "--project", &stage.project_path()]).stdout;
        let slow = "a Codex session runs an app server of its own";
        let shared = Codex::new(&stage, &model);
        let terminal = shared.joined("alice");
        assert!(!doctor().contains(slow), "{}", doctor());
        let own = Codex::new(&stage, &model).flag("--search").open();
        own.type_line("Join us as carol.");
        wait_for("carol has joined", || session_of(&stage, "carol"));
        let told = doctor();
        assert!(told.contains(slow) && told.contains("fix: ") && told.contains("`--remote unix://`"), "{told}");
        drop(terminal);
    });
}

#[test]
fn a_terminal_does_what_the_doctor_says_and_is_woken_at_once() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(Codex::joining("alice").say("Are you there?", "Here I am."));
        let codex = Codex::new(&stage, &model).flag("--search").flag("--remote").flag("unix://");
        let started = codex.run(&["app-server", "daemon", "start"]);
        assert_eq!(started.code, Some(0), "{started:?}");
        let terminal = codex.joined("alice");
        let id = send(&stage, "alice", "Are you there?");
        Codex::says(&terminal, "Here I am.");
        assert_eq!(DeliveryHistory::up_to(&stage, &id, "shown").route("shown").as_deref(), Some("app-server"));
    });
}

#[test]
fn a_terminal_whose_settings_lie_deep_is_woken_by_its_app_server() {
    isolated(|| {
        let stage = stage();
        let home = stage.home.join("deep".repeat(30)).join("codex");
        let socket = home.join("app-server-control/app-server-control.sock");
        assert!(socket.as_os_str().len() > 107, "it has no address: {}", socket.display());
        let in_home = |arguments: &[&str]| stage.relay(arguments).env("CODEX_HOME", &home).succeed();
        in_home(&["install", "codex", "--project", &stage.project_path(), "--yes"]);
        let model = Model::start(Codex::joining("alice").say("Are you there?", "Here I am."));
        let codex = Codex::at_home_in(home.clone(), &stage, &model);
        let terminal = codex.joined("alice");
        let id = send(&stage, "alice", "Are you there?");
        Codex::says(&terminal, "Here I am.");
        assert_eq!(DeliveryHistory::up_to(&stage, &id, "shown").route("shown").as_deref(), Some("app-server"));
        let told = in_home(&["doctor", "codex", "--project", &stage.project_path()]);
        assert!(told.contains("Codex's app server takes turns for idle threads"), "{told}");
    });
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn installed() -> Stage {
    let stage = stage();
    Client::Codex.install(&stage);
    stage
}
