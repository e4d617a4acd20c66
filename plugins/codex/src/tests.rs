//! Routes, deliveries and requests, against an app server of a few lines.

use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::push::{Carries, Receipt};
use relay_mesh_sdk::sessions::{Caller, Certainty, Detection, Transport};
use relay_mesh_sdk::testing::{Fakes, mail};
use relay_mesh_sdk::{Activity, Error, Mail, Priority, Push, Session, Sessions, dated_state};
use serde_json::{Value, json};

use crate::Codex;
use crate::app_server::NUDGE;

/// An app server with one thread `t1` with this status, and this answer to `turn/start`.
fn serving(thread: Value, turn: Value) -> Fakes {
    Fakes::default().desktop().endpoint("app-server", move |frame| {
        let asked: Value = serde_json::from_str(frame).expect("a frame is JSON");
        let answer = |result: Value| {
            let mut answer = json!({"id": asked["id"]});
            let (name, value) = match result.get("code") {
                Some(_) => ("error", result),
                None => ("result", result),
            };
            answer[name] = value;
            vec![json!({"method": "thread/status/changed", "params": {}}).to_string(), answer.to_string()]
        };
        match asked["method"].as_str() {
            Some("initialize") => answer(json!({"userAgent": "relay-mesh"})),
            Some("thread/loaded/list") => match asked["params"]["cursor"].as_str() {
                None => answer(json!({"data": ["t1"], "nextCursor": "2"})),
                Some(_) => answer(json!({"data": ["title"], "nextCursor": null})),
            },
            Some("thread/read") if asked["params"]["threadId"] == "t1" => answer(json!({"thread": thread})),
            Some("thread/read") => {
                let title = json!({"id": "title", "threadSource": "thread_title", "status": {"type": "idle"}});
                answer(json!({"thread": title}))
            }
            Some("thread/turns/list") => answer(json!({"data": [{"id": "turn-1", "status": "inProgress"}]})),
            Some("turn/steer") if turn.is_null() => Vec::new(),
            Some("turn/steer") => {
                let message = &asked["params"]["additionalContext"]["relay_mesh"];
                assert_eq!((&message["kind"], &message["value"]), (&json!("untrusted"), &json!("<mail>")));
                assert_eq!(asked["params"]["input"][0]["text"], NUDGE, "nothing of a peer's is said as the person");
                assert_eq!(asked["params"]["expectedTurnId"], "turn-1");
                answer(turn.clone())
            }
            Some("turn/start") if turn.is_null() => Vec::new(),
            Some("turn/start") => {
                assert_eq!(asked["params"]["input"], json!([]), "nothing is said as the person");
                assert_eq!(asked["params"]["toolOutput"]["output"], "<mail>");
                answer(turn.clone())
            }
            Some("thread/items/list") => {
                let text = "<relay-mesh-message id=\"01JD0000000000000000000000\">";
                let item = json!({"type": "functionCallOutput", "namespace": "relay_mesh", "output": text});
                answer(json!({"data": [{"item": item}], "nextCursor": null}))
            }
            _ => Vec::new(),
        }
    })
}

fn thread(status: Value) -> Value {
    json!({"id": "t1", "sessionId": "t1", "cwd": "/home/u/app", "status": status, "threadSource": "user"})
}

fn turn() -> Value {
    json!({"turn": {"id": "turn-1", "status": "inProgress"}})
}

fn session() -> Session {
    Session::new("t1", "/home/u/app")
}

fn told(outcome: Result<Receipt, Error>) -> String {
    match outcome {
        Ok(Receipt { status, evidence }) => {
            let status = format!("{status:?}").rsplit("::").next().unwrap_or_default().to_owned();
            format!("{status} {}", evidence.unwrap_or_default())
        }
        Err(Error::Busy(wait)) => format!("busy for {wait}"),
        Err(Error::NotFound(what)) => format!("not found: {what}"),
        Err(other) => format!("{other:?}"),
    }
}

#[track_caller]
fn gives(thread: Value, turn: Value, expected: &str) {
    let _host = serving(thread, turn).start();
    assert_eq!(told(Codex::deliver(&session(), "app-server", &mail("<mail>"))), expected);
}

const ACCEPTED: &str = r#"Accepted {"turn":"turn-1","message":"01JD0000000000000000000000"}"#;

#[test]
fn a_message_is_given_to_a_thread_that_can_take_it() {
    let active = |flags: Value| thread(json!({"type": "active", "activeFlags": flags}));
    gives(thread(json!({"type": "idle"})), turn(), ACCEPTED);
    gives(thread(json!({"type": "systemError"})), turn(), ACCEPTED);
    gives(active(json!([])), turn(), ACCEPTED);
    gives(active(json!(["waitingOnApproval"])), turn(), "busy for 2000");
    gives(thread(json!({"type": "notLoaded"})), turn(), "not found: the app server has not loaded this thread");
    let mut closed = thread(json!({"type": "idle"}));
    closed["canAcceptDirectInput"] = json!(false);
    gives(closed, turn(), "not found: this thread takes no turns from other programs");
}

#[test]
fn the_app_servers_refusals_are_told_apart() {
    let idle = || thread(json!({"type": "idle"}));
    gives(idle(), json!({"code": -32001, "message": "Server overloaded; retry later."}), "busy for 1000");
    gives(idle(), json!({"code": -32600, "message": "thread not found: t1"}), "not found: thread not found: t1");
    gives(
        idle(),
        json!({"code": -32600, "message": "input must not be empty"}),
        r#"Error::Failed("Codex's app server refused: input must not be empty")"#,
    );
    gives(idle(), Value::Null, r#"Notified {"unanswered":true}"#);
}

#[test]
fn a_busy_thread_whose_hooks_speak_is_left_to_them() {
    let _host = serving(thread(json!({"type": "active", "activeFlags": []})), turn()).start();
    dated_state::write("hooked/t1", &()).expect("it is kept");
    assert_eq!(told(Codex::deliver(&session(), "app-server", &mail("<mail>"))), "busy for 2000");
}

#[test]
fn urgent_mail_breaks_into_the_turn_that_runs() {
    let steers = |status: Value, answer: Value, expected: &str| {
        let host = serving(thread(status), answer).start();
        dated_state::write("hooked/t1", &()).expect("it is kept");
        let urgent = Mail { priority: Priority::Urgent, ..mail("<mail>") };
        assert_eq!(told(Codex::deliver(&session(), "steer", &urgent)), expected);
        host.notices().len()
    };
    let active = |flags: Value| json!({"type": "active", "activeFlags": flags});
    assert_eq!(steers(active(json!([])), turn(), ACCEPTED), 0, "the terminal shows it");
    assert_eq!(steers(json!({"type": "idle"}), turn(), ACCEPTED), 1, "the turn has ended meanwhile");
    steers(active(json!(["waitingOnApproval"])), turn(), "busy for 2000");
    steers(active(json!([])), json!({"code": -32600, "message": "no active turn to steer"}), "busy for 1000");
    steers(active(json!([])), Value::Null, r#"Notified {"unanswered":true}"#);
}

#[test]
fn a_message_is_shown_once_it_stands_in_its_turn() {
    let host = serving(thread(json!({"type": "idle"})), turn()).start();
    let sent = Codex::deliver(&session(), "app-server", &mail("<mail>")).expect("it is given");
    assert_eq!(host.notices(), [("Codex".to_owned(), "A message waits for the agent in app".to_owned())]);
    let confirmed = told(Codex::confirm(&session(), "app-server", sent));
    assert_eq!(confirmed, ACCEPTED.replace("Accepted", "Shown"));
    let other = Receipt {
        evidence: Some(r#"{"turn":"turn-1","message":"01JE"}"#.into()),
        ..Receipt::at(relay_mesh_sdk::push::DeliveryStatus::Accepted)
    };
    assert!(told(Codex::confirm(&session(), "app-server", other)).starts_with("Accepted"), "another message");
}

#[test]
fn the_queue_takes_the_news_and_proves_little() {
    let queue = |code, stdout: &str, stderr: &str| {
        let outcome = ProgramOutput { exit_code: code, stdout: stdout.into(), stderr: stderr.into() };
        let _host = Fakes::default()
            .program("codex-queue", move |values, _| {
                assert_eq!(values, ["t1", "<mail>"]);
                outcome.clone()
            })
            .start();
        told(Codex::deliver(&session(), "queue", &mail("<mail>")))
    };
    assert_eq!(
        queue(0, "Queued message 1 for thread t1.\n", "WARNING: x"),
        r#"Notified {"queue":"Queued message 1 for thread t1."}"#
    );
    assert_eq!(
        queue(1, "", "WARNING: x\nError: No active session found matching t1\n"),
        r#"Error::Failed("codex queue ended with 1: Error: No active session found matching t1")"#
    );
}

#[test]
fn the_queue_is_for_threads_that_a_person_opens() {
    let routes = |session: Session| {
        let routes = Codex::routes(&session).expect("there are routes");
        assert!(routes.iter().all(|route| (route.carries == Carries::Notification) == (route.max_bytes == 0)));
        routes.into_iter().map(|route| route.name).collect::<Vec<_>>().join(", ")
    };
    let hinted = |hint: &str| Session { route_hint: Some(hint.to_owned()), ..session() };
    assert_eq!(routes(session()), "app-server, steer, queue, notification");
    assert_eq!(routes(hinted(r#"{"headless":false}"#)), "app-server, steer, queue, notification");
    assert_eq!(routes(hinted(r#"{"headless":true}"#)), "app-server, steer, notification");
    assert_eq!(routes(Session { parent: Some("t0".into()), ..session() }), "app-server, steer, notification");
}

#[test]
fn the_live_threads_are_those_of_people() {
    let mut child = thread(json!({"type": "idle"}));
    child["sessionId"] = json!("t0");
    let _host = serving(child, turn()).start();
    let found = Codex::discover().expect("it is listed");
    assert_eq!(found, [Session { parent: Some("t0".into()), ..session() }]);
    assert_eq!(Codex::activity_of("t1"), Ok(Activity::Idle));
    let _host = Fakes::default().deserted("app-server").start();
    assert_eq!(Codex::discover(), Ok(Vec::new()));
}

fn caller(transport: Transport, meta: Value, environment: &[(&str, &str)]) -> Caller {
    Caller {
        transport,
        client_name: Some("codex-mcp-client".into()),
        client_version: Some("0.169.0".into()),
        meta: Some(meta.to_string()),
        headers: Vec::new(),
        tool: Some("register_agent".into()),
        arguments: Some("{}".into()),
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        workdir: Some("/home/u/app".into()),
    }
}

/// Compares `certainty id parent hint`.
#[track_caller]
fn detects(seen: &Caller, expected: &str) {
    let detected = Codex::detect(seen).expect("it is detected");
    let told = detected.map_or("nobody".to_owned(), |Detection { session, certainty }| {
        let certainty = if certainty == Certainty::Certain { "certain" } else { "inherited" };
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        format!("{certainty} {} {} {}", session.id, or_none(session.parent), or_none(session.route_hint))
    });
    assert_eq!(told, expected);
}

#[test]
fn a_call_names_its_thread_and_a_shell_inherits_it() {
    let call = |meta: Value| caller(Transport::Stdio, meta, &[("CODEX_THREAD_ID", "outer")]);
    let turn = |trigger: &str| json!({"turn_trigger": trigger});
    detects(&call(json!({"threadId": "t1", "sessionId": "t1"})), "certain t1 - -");
    detects(
        &call(json!({"threadId": "t1", "sessionId": "t0", "x-codex-turn-metadata": turn("user")})),
        r#"certain t1 t0 {"headless":false}"#,
    );
    detects(
        &call(json!({"threadId": "t1", "sessionId": "t1", "x-codex-turn-metadata": turn("exec")})),
        r#"certain t1 - {"headless":true}"#,
    );
    detects(&call(json!({"progressToken": 1})), "nobody");
    let shell = |pairs: &[(&str, &str)]| caller(Transport::CommandLine, json!({}), pairs);
    detects(&shell(&[("CODEX_THREAD_ID", "t1"), ("CODEX_SESSION_ID", "t1")]), "inherited t1 - -");
    detects(&shell(&[("CODEX_THREAD_ID", "t1"), ("CODEX_SESSION_ID", "t0")]), "inherited t1 t0 -");
    detects(&shell(&[]), "nobody");
}
