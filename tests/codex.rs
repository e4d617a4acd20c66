//! The main job with the real Codex: it joins, its idle terminal is woken by the shared app server or by Codex's own
//! queue, subagents are separate agents, and nothing is shown twice. Only the model is scripted.

use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{
    Ability, AppServer, Client, Codex, DeliveryHistory, Host, Model, ModelAnswer, Script, Stage, Trust, id_of,
    isolated, observed, send, send_with, session_of,
};

#[test]
fn an_idle_terminal_is_woken_by_the_shared_app_server() {
    isolated(|| {
        let stage = Arc::new(stage());
        let before = stage.tree(&stage.project);
        Client::Codex.install(&stage);
        let looked_at = Arc::clone(&stage);
        let model = Model::start(Codex::joining("alice").call_with(
            "What is the answer?",
            &Codex::tool("send_message"),
            move |news| {
                // A reply acknowledges. By then the server has seen the message in the turn.
                let id = id_of(news, "What is the answer?");
                DeliveryHistory::up_to(&looked_at, &id, "shown");
                json!({"to": "bob", "body": "The answer is 42.", "reply_to": id})
            },
        ));
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        let session = session_of(&stage, "alice").expect("alice is bound to her thread");

        let host = Host::start(&stage);
        let mut bob = host.client("a-plain-client");
        bob.call("register_agent", json!({"name": "bob"}));
        let sent = bob.call("send_message", json!({"to": "alice", "body": "What is the answer?"}));
        let id = sent.structured["id"].as_str().expect("a message has an id").to_owned();
        let woken = model.wait_for_news("What is the answer?");
        assert!(woken.news().contains(&format!("<relay-mesh-message id=\"{id}\"")), "{}", woken.news());
        assert_eq!(role_of(&woken.body, "What is the answer?"), "function_call_output", "no person's authority");
        let reply = bob.call("fetch_messages", json!({"wait_seconds": 20, "acknowledge": true}));
        assert!(reply.text.contains("The answer is 42."), "{reply:?}");
        let history = DeliveryHistory::up_to(&stage, &id, "acknowledged");
        assert_eq!(history.statuses(), ["stored", "shown", "acknowledged"]);
        assert_eq!(history.route("shown").as_deref(), Some("app-server"));
        observed(&stage, Client::Codex, Ability::IdleWake, history.route("shown").as_deref());
        observed(&stage, Client::Codex, Ability::Acknowledged, history.route("acknowledged").as_deref());
        assert_eq!(model.times_told("What is the answer?"), 1, "shown once");
        assert_eq!(session_of(&stage, "alice"), Some(session), "the wake has not moved her");

        drop(terminal);
        let removed = stage.relay_ok(&["uninstall", "codex", "--project", &stage.project_path(), "--yes"]);
        assert!(removed.contains("AGENTS.md"), "{removed}");
        assert_eq!(stage.git_status(), "", "the project is as it was");
        assert_eq!(stage.tree(&stage.project), before, "byte for byte");
    });
}

#[test]
fn a_terminal_of_its_own_is_woken_by_the_queue() {
    isolated(|| {
        let stage = installed();
        let answer = |news: &str| json!({"to": "bob", "body": "I am.", "reply_to": id_of(news, "Are you there?")});
        let model =
            Model::start(Codex::joining("alice").call_with("Are you there?", &Codex::tool("send_message"), answer));
        let codex = Codex::new(&stage, &model).app_server(AppServer::Embedded);
        let _terminal = codex.joined("alice");
        stage.relay_ok(&["register", "bob"]);
        let id = send_with(&stage, "alice", "Are you there?", &["--from", "bob"]);
        let woken = model.wait_for_news("Are you there?");
        assert_eq!(role_of(&woken.body, "Call fetch_messages to read it."), "user", "the queue carries the news");
        assert_eq!(role_of(&woken.body, "Are you there?"), "developer", "and the prompt's hook adds the message");
        let history = DeliveryHistory::up_to(&stage, &id, "acknowledged");
        let routes = [history.route("notified"), history.carried_by()].map(Option::unwrap_or_default);
        assert_eq!(routes, ["queue", "hook:UserPromptSubmit"]);
        observed(&stage, Client::Codex, Ability::IdleWake, history.route("notified").as_deref());
        assert_eq!(model.times_told(&format!("<relay-mesh-message id=\"{id}\"")), 1, "shown once");
    });
}

#[test]
fn hooks_that_nobody_trusts_leave_the_news_and_a_fetch() {
    isolated(|| {
        let stage = installed();
        let fetch = Codex::tool("fetch_messages");
        let model = Model::start(
            Codex::joining("alice")
                .call("Call fetch_messages to read it.", &fetch, json!({"acknowledge": true}))
                .say("Are you there?", "I read it."),
        );
        let codex = Codex::new(&stage, &model).app_server(AppServer::Embedded).trust(Trust::Nothing);
        let terminal = codex.open();
        terminal.type_line("Join the mesh as alice.");
        Codex::says(&terminal, "I am alice.");
        let id = send(&stage, "alice", "Are you there?");
        let status = model.wait_for_news("Call fetch_messages to read it.");
        assert!(!status.news().contains("Are you there?"), "the queue carries the news alone");
        Codex::says(&terminal, "I read it.");
        let history = DeliveryHistory::up_to(&stage, &id, "acknowledged");
        assert_eq!(history.statuses(), ["stored", "notified", "read", "acknowledged"]);
        let report = stage.run(&["doctor", "codex", "--project", &stage.project_path()]).stdout;
        assert!(report.contains("you have not trusted them yet"), "{report}");
    });
}

#[test]
fn mail_that_waits_when_a_turn_ends_is_shown_before_it_ends() {
    isolated(|| {
        let stage = installed();
        let mail = Arc::clone(&stage);
        let model = Model::start(
            Script::new()
                .call("Join the mesh", &Codex::tool("register_agent"), json!({"name": "alice"}))
                .answer_with("\"name\":\"alice\"", move |_| {
                    send(&mail, "alice", "One more thing before you go.");
                    ModelAnswer::Say("I am done.".to_owned())
                })
                .say("One more thing before you go.", "Now I am done."),
        );
        let run = Codex::new(&stage, &model).ask("Join the mesh as alice.", &[]);
        assert_eq!(run.result, "Now I am done.", "{:?}", run.outcome);
        // Codex wraps a hook's output at a turn's end in its own element and escapes our brackets.
        let told = model.wait_for_news("One more thing").news();
        assert!(told.contains("&lt;relay-mesh-message id="), "it stands in its envelope: {told}");
        assert_eq!(model.times_told("One more thing"), 1, "shown once, and not again");
        saw(&stage, Ability::TurnEnd);
    });
}

#[test]
fn mail_that_comes_mid_turn_is_shown_after_the_next_tool() {
    isolated(|| {
        let stage = installed();
        let mail = Arc::clone(&stage);
        let model = Model::start(
            Script::new()
                .call("Join the mesh", &Codex::tool("register_agent"), json!({"name": "alice"}))
                .answer_with("\"name\":\"alice\"", move |_| {
                    send(&mail, "alice", "Mind the gap.");
                    ModelAnswer::Call { tool: "exec_command".to_owned(), input: json!({"cmd": "cat README.md"}) }
                })
                .say("# A project", "I read it."),
        );
        let run = Codex::new(&stage, &model).flag(UNBOUND).ask("Join the mesh as alice, then read the readme.", &[]);
        assert_eq!(run.result, "I read it.", "{:?}", run.outcome);
        let heard = model.wait_for_news("# A project");
        assert!(heard.news().contains("Mind the gap."), "the mail came with the tool's result: {}", heard.news());
        assert_eq!(role_of(&heard.body, "Mind the gap."), "developer");
        assert_eq!(model.times_told("Mind the gap."), 1, "shown once, and not again");
        saw(&stage, Ability::MidTurn);
    });
}

#[test]
fn a_subagent_is_an_agent_of_its_own() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(
            Codex::joining("alice")
                .call(
                    "Take a helper",
                    "collaboration.spawn_agent",
                    json!({"message": "Enter as kid.", "task_name": "kid"}),
                )
                .call("task_name", "collaboration.wait_agent", json!({"timeout_ms": 20_000}))
                .call("Enter as kid.", &Codex::tool("register_agent"), json!({"name": "kid"}))
                .say("\"name\":\"kid\"", "I am kid.")
                .say("I am kid.", "My helper is kid."),
        );
        let codex = Codex::new(&stage, &model).flag("--enable").flag("multi_agent_v2");
        let run = codex.ask("Join the mesh as alice.", &[]);
        assert_eq!(run.result, "I am alice.", "{:?}", run.outcome);
        let run = codex.ask("Take a helper.", &["resume", &run.session]);
        assert_eq!(run.result, "My helper is kid.", "{:?}", run.outcome);
        let (alice, kid) = (session_of(&stage, "alice"), session_of(&stage, "kid"));
        assert_eq!(alice.as_deref(), Some(run.session.as_str()));
        observed(&stage, Client::Codex, Ability::Bind, Some("the harness's session id"));
        assert!(kid.is_some() && kid != alice, "{kid:?}");
    });
}

#[test]
fn a_shell_of_a_thread_speaks_for_its_agent() {
    isolated(|| {
        let stage = installed();
        let send = format!("{} send bob 'I am alice.'", stage.binary().display());
        stage.relay_ok(&["register", "bob"]);
        let model = Model::start(Codex::joining("alice").call("Write to bob", "exec_command", json!({"cmd": send})));
        let codex = Codex::new(&stage, &model).flag(UNBOUND);
        let run = codex.ask("Join the mesh as alice.", &[]);
        let run = codex.ask("Write to bob.", &["resume", &run.session]);
        assert_eq!(run.outcome.code, Some(0), "{:?}", run.outcome);
        let mail: Value =
            serde_json::from_str(&stage.relay_ok(&["read", "--agent", "bob", "--json"])).expect("--json writes JSON");
        assert_eq!(mail["messages"][0]["from"], "alice", "{mail}");
    });
}

#[test]
fn what_a_team_commits_finds_the_program_and_the_data_folder_of_this_machine() {
    isolated(|| {
        let stage = installed();
        let elsewhere = stage.folder.join("elsewhere").display().to_string();
        let config = std::fs::read_to_string(stage.project.join(".codex/config.toml")).expect("it is installed");
        assert!(config.contains("command = \"relay-mesh\"") && !config.contains("env ="), "{config}");
        let model = Model::start(Codex::joining("alice"));
        let codex = Codex::new(&stage, &model).with("RELAY_DIR", &elsewhere);
        let run = codex.ask("Join the mesh as alice.", &[]);
        assert_eq!(run.result, "I am alice.", "{:?}", run.outcome);
        let there: Value =
            serde_json::from_str(&stage.relay(&["agents", "--json"]).env("RELAY_DIR", &elsewhere).succeed())
                .expect("--json writes JSON");
        assert_eq!(there["agents"][0]["session"], json!(run.session), "server and hooks found it: {there}");
        let protocol = model.heard()[0].place_of("Register once with register_agent");
        assert_eq!(protocol.as_deref(), Some("developer"), "the hook was run");
        model.reads_the_protocol_once("Join the mesh as alice.");
        assert_eq!(session_of(&stage, "alice"), None, "and nothing else");
    });
}

#[test]
fn hooks_that_were_changed_since_somebody_trusted_them_are_named_by_the_doctor() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(Codex::joining("alice").say("Are you there?", "I am."));
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        let doctor = || stage.run(&["doctor", "codex", "--project", &stage.project_path()]).stdout;
        let well = doctor();
        assert!(!well.contains("they were changed"), "{well}");
        let hooks = stage.project.join(".codex/hooks.json");
        let text = std::fs::read_to_string(&hooks).expect("hooks are installed");
        std::fs::write(&hooks, text.replace("\"timeout\": 10", "\"timeout\": 9")).expect("the project is writable");
        let ill = doctor();
        assert!(ill.contains("they were changed since they were trusted") && ill.contains("fix: "), "{ill}");
        let id = send(&stage, "alice", "Are you there?");
        Codex::says(&terminal, "I am.");
        DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(model.times_told("Are you there?"), 1, "nothing is lost, and nothing is shown twice");
    });
}

/// The model's commands run without a sandbox.
const UNBOUND: &str = "--dangerously-bypass-approvals-and-sandbox";

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn installed() -> Arc<Stage> {
    let stage = stage();
    Client::Codex.install(&stage);
    Arc::new(stage)
}

/// Records the route by which alice's only message was shown.
fn saw(stage: &Stage, ability: Ability) {
    let mail: Value =
        serde_json::from_str(&stage.relay_ok(&["read", "--agent", "alice", "--json"])).expect("--json writes JSON");
    let id = mail["messages"][0]["id"].as_str().expect("a message has an id").to_owned();
    let history = DeliveryHistory::up_to(stage, &id, "shown");
    observed(stage, Client::Codex, ability, history.route("shown").as_deref());
}

/// The role, or else the kind, of the last item that contains a text.
fn role_of(body: &Value, text: &str) -> String {
    let items = body["input"].as_array().cloned().unwrap_or_default();
    let item = items.iter().rfind(|item| item.to_string().contains(text)).expect("an item holds it");
    item["role"].as_str().or(item["type"].as_str()).unwrap_or_default().to_owned()
}
