//! OpenCode, killed while its model has not yet read the request that holds a message: beside a prompt, with a tool's
//! result, as a prompt of its connector, idle or between two steps of a turn, and as one that came over HTTP.

use std::sync::Arc;

use serde_json::json;
use test_support::{
    AFTERWARDS, Client, DeliveryHistory, Ears, Host, Killed, Model, ModelAnswer, OpenCode, Script, Stage, Terminal,
    isolated, presence_of, send, send_with, session_of, wait_for,
};

use crate::{QUIETLY, TEXT, is_missed, only, stage};

#[test]
fn killed_with_a_message_beside_a_prompt() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining());
        let client = OpenCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        let id = send_with(&stage, "alice", TEXT, QUIETLY);
        model.ears.close();
        terminal.type_line("Hello.");
        model.ears.wait_for_unheard();
        terminal.kill();
        let killed = killed(&stage, &model, "listen", "its request, beside a prompt, was not read", &id).went_out();
        comes_again(&stage, &model, &client, &session, killed);
    });
}

#[test]
fn killed_with_a_message_in_a_tools_result() {
    isolated(|| {
        let stage = installed();
        let (model, session) = killed_in_a_turn(&stage, reads(&stage), |stage| {
            send_with(stage, "alice", TEXT, QUIETLY);
        });
        let point = "its request, with a tool's result, was not read";
        let killed = killed(&stage, &model, "listen", point, &only(&stage)).went_out();
        comes_again(&stage, &model, &OpenCode::new(&stage, &model), &session, killed);
    });
}

#[test]
fn killed_after_a_fetch() {
    isolated(|| {
        let stage = installed();
        let fetch = ModelAnswer::Call { tool: Client::OpenCode.tool("fetch_messages"), input: json!({}) };
        let (model, session) = killed_in_a_turn(&stage, fetch, |stage| {
            send_with(stage, "alice", TEXT, QUIETLY);
        });
        is_missed(&stage);
        let client_of = ("opencode", Client::OpenCode.version(&stage));
        let point = ("fetch", "its request, with the reply, was not read");
        let killed = Killed::in_history(&stage, &model, client_of, point, (&only(&stage), TEXT)).went_out();
        comes_again(&stage, &model, &OpenCode::new(&stage, &model), &session, killed);
    });
}

#[test]
fn killed_with_a_message_as_its_connectors_prompt() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining());
        let client = OpenCode::new(&stage, &model);
        let (terminal, session) = joined(&stage, &client);
        model.ears.close();
        let id = send(&stage, "alice", TEXT);
        model.ears.wait_for_unheard();
        DeliveryHistory::up_to(&stage, &id, "accepted");
        terminal.kill();
        let killed = killed(&stage, &model, "listen", "idle, its request was not read", &id).kept();
        comes_again(&stage, &model, &client, &session, killed);
    });
}

#[test]
fn killed_with_urgent_mail_between_two_steps() {
    isolated(|| {
        let stage = installed();
        let (model, session) = killed_in_a_turn(&stage, reads(&stage), |stage| {
            let id = send_with(stage, "alice", TEXT, &["--priority", "urgent"]);
            // OpenCode has taken it before the tool runs.
            DeliveryHistory::up_to(stage, &id, "accepted");
        });
        let point = "in a turn, its request with urgent mail was not read";
        let killed = killed(&stage, &model, "listen", point, &only(&stage)).kept();
        comes_again(&stage, &model, &OpenCode::new(&stage, &model), &session, killed);
    });
}

#[test]
fn killed_with_a_prompt_over_http() {
    isolated(|| {
        let stage = installed();
        let model = Model::start(joining());
        let client = OpenCode::new(&stage, &model).with("OPENCODE_SERVER_PASSWORD", "a password");
        let mut server = client.serve();
        let session = server.session();
        server.say(&session, "build", "Join the mesh as alice.");
        let local = stage.project.join(".opencode/relay-mesh.local.json");
        let connected = std::fs::read(&local).expect("it is installed");
        OpenCode::disconnect(&stage);
        let _host = Host::start(&stage);
        model.ears.close();
        let id = send(&stage, "alice", TEXT);
        model.ears.wait_for_unheard();
        DeliveryHistory::up_to(&stage, &id, "accepted");
        server.process.kill();
        let killed = killed(&stage, &model, "prompt_async", "idle, its request was not read", &id).kept();
        std::fs::write(&local, connected).expect("the project is writable");
        model.ears.open();
        let server = client.serve();
        server.begin(&session, "Good morning");
        killed.comes_again(&stage, &model);
    });
}

/// Mail comes while a turn runs, then its model calls a tool, and does not read the request that has the result: there it
/// is killed. Returns its session too.
fn killed_in_a_turn(stage: &Arc<Stage>, call: ModelAnswer, mail: impl Fn(&Stage) + Send + 'static) -> (Model, String) {
    let (writer, ears) = (Arc::clone(stage), Arc::<Ears>::default());
    let closed = Arc::clone(&ears);
    let script = joining().answer_with("Do your work", move |_| {
        mail(&writer);
        closed.close();
        call.clone()
    });
    let model = Model::with_ears(script, ears);
    let (terminal, session) = joined(stage, &OpenCode::new(stage, &model));
    terminal.type_line("Do your work.");
    model.ears.wait_for_unheard();
    terminal.kill();
    (model, session)
}

fn reads(stage: &Stage) -> ModelAnswer {
    ModelAnswer::Call { tool: "read".to_owned(), input: json!({"filePath": stage.project.join("README.md")}) }
}

fn killed(stage: &Stage, model: &Model, route: &str, point: &str, id: &str) -> Killed {
    Killed::at(stage, model, ("opencode", Client::OpenCode.version(stage)), (route, point), (id, TEXT))
}

fn comes_again(stage: &Stage, model: &Model, client: &OpenCode<'_>, session: &str, killed: Killed) {
    is_missed(stage);
    model.ears.open();
    send_with(stage, "alice", AFTERWARDS, QUIETLY);
    let terminal = client.open(&["--session", session]);
    terminal.type_line("Good morning");
    killed.comes_again(stage, model);
    assert_eq!(session_of(stage, "alice").as_deref(), Some(session), "under the same name");
}

fn joined(stage: &Stage, client: &OpenCode<'_>) -> (Terminal, String) {
    let terminal = client.open(&[]);
    terminal.type_line("Join the mesh as alice.");
    terminal.wait_for("I am alice.");
    terminal.wait_until_gone("esc interrupt");
    wait_for("the turn is over", || presence_of(stage, "alice").filter(|presence| presence == "idle"));
    (terminal, session_of(stage, "alice").expect("alice is bound to her session"))
}

fn joining() -> Script {
    Script::new()
        .call("Join the mesh", &Client::OpenCode.tool("register_agent"), json!({"name": "alice"}))
        .say("you are `alice`", "I am alice.")
}

fn installed() -> Arc<Stage> {
    let stage = stage();
    Client::OpenCode.install(&stage);
    stage
}
