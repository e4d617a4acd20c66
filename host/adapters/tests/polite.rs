//! Everything that a well-behaved component returns crosses the interface unchanged, in both directions.

mod common;

use common::{Stage, TestHookHost};
use mesh::commands::Command;
use mesh::messages::Priority;
use mesh::messages::receipt::DeliveryStatus;
use mesh::ports::harness::*;
use mesh::ports::machine::Instant;
use mesh::sessions::{Activity, Caller, Certainty, Session, Transport};

fn session(id: &str) -> Session {
    Session { id: id.to_owned(), parent: None, workdir: "/".to_owned(), process: None, route_hint: None }
}

fn caller(client: Option<&str>, variables: &[&str]) -> Caller {
    Caller {
        transport: Transport::Stdio,
        client_name: client.map(str::to_owned),
        client_version: None,
        meta: Some("s1".to_owned()),
        headers: Vec::new(),
        tool: None,
        arguments: None,
        environment: variables.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect(),
        workdir: None,
    }
}

#[tokio::test]
async fn a_component_answers_every_question() {
    let stage = Stage::with(&["polite"]);
    let adapters = stage.adapters();
    let polite = adapters.get("polite").await.expect("loaded").expect("known");
    assert_eq!(polite.about().title, "A polite adapter");
    let detected = polite.detect(&caller(None, &[])).await.expect("an answer").expect("a session");
    assert_eq!((detected.session, detected.certainty), (session("s1"), Certainty::Certain));
    assert_eq!(polite.discover().await, Ok(vec![session("one"), session("two")]));
    assert_eq!(polite.activity_of("asks").await, Ok(Activity::NeedsInput));
    assert_eq!(polite.activity_of("none").await, Err(HarnessError::NotFound("none".to_owned())));
    let protocol = polite.protocol("base", Occasion::Resume, Some("alice")).await.expect("an answer");
    assert_eq!(protocol.as_deref(), Some("base Occasion::Resume Some(\"alice\")"));
    let routes = polite.routes(&session("one")).await.expect("an answer");
    let expected = Route {
        name: "wake-file".to_owned(),
        carries: Carries::Notification,
        proves: DeliveryStatus::Notified,
        when: vec![Activity::Idle],
        max_bytes: 0,
        least: Priority::High,
        timeout: 5,
    };
    assert_eq!(routes, [expected]);
    let mail = Mail { ids: Vec::new(), text: String::new(), priority: Priority::Urgent };
    let sent = polite.deliver(&session("one"), "wake-file", &mail).await.expect("an answer");
    assert_eq!(sent.evidence.as_deref(), Some("\"one wake-file [] Priority::Urgent\""));
    let seen = polite.confirm(&session("one"), "wake-file", &sent).await.expect("an answer");
    assert_eq!((seen.status, seen.evidence), (DeliveryStatus::Shown, sent.evidence));
    assert_eq!(polite.present().await, Ok(Some("1.0".to_owned())));
    let setup = Setup {
        action: Action::Remove,
        scope: Scope::User,
        server: Server::Stdio(vec!["relay-mesh".to_owned()]),
        server_name: "relay".to_owned(),
        program: vec!["relay-mesh".to_owned()],
        environment: Vec::new(),
    };
    let plan = polite.propose(&setup).await.expect("an answer");
    assert_eq!(plan.edits[0].after.as_deref(), Some("Action::Remove Scope::User"));
    assert_eq!(plan.next_steps, ["relay-mesh"]);
    assert_eq!(polite.check(&setup).await.expect("an answer")[0].severity, Severity::Warning);
}

fn command(name: &str, arguments: &[&str]) -> Command {
    Command {
        id: "01JD0000000000000000000000".parse().expect("an id"),
        from: "bob".parse().expect("a name"),
        to: "alice".parse().expect("a name"),
        command: name.parse().expect("a command"),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        trace: None,
        created: Instant(0),
        expires: Instant(1),
        stage: mesh::commands::CommandStage::Pending { waits: None },
    }
}

#[tokio::test]
async fn a_component_that_runs_commands_is_asked_for_them() {
    let stage = Stage::with(&["polite"]);
    let adapters = stage.adapters();
    let polite = adapters.get("polite").await.expect("loaded").expect("known");
    let commands = polite.commands().expect("it exports them");
    let review = command("/review", &["src", "\"é\""]);
    let means = commands.plan(&session("one"), &review).await.expect("a plan");
    let expected = Means { name: "review in one".to_owned(), when: vec![Activity::Idle, Activity::Busy] };
    assert_eq!(means, expected);
    let begun = commands.run(&session("one"), &review).await.expect("begun");
    let evidence = Some("01JD0000000000000000000000 [\"src\", \"\\\"é\\\"\"]".to_owned());
    assert_eq!(begun, Progress { stage: ProgressStage::Begun, said: None, evidence: evidence.clone() });
    let ended = commands.watch(&session("one"), &review, &begun).await.expect("looked at");
    assert_eq!(ended, Progress { stage: ProgressStage::Succeeded, said: evidence.clone(), evidence });
    let bare = commands.watch(&session("one"), &command("/review", &[]), &begun).await.expect("looked at");
    assert_eq!(bare.stage, ProgressStage::Failed);
    let no = commands.plan(&session("one"), &command("/no", &[])).await;
    assert_eq!(no, Err(HarnessError::Unsupported("it says no".to_owned())));
}

#[tokio::test]
async fn a_component_without_that_interface_loads_and_runs_none() {
    let stage = Stage::with(&["hostile"]);
    let adapters = stage.adapters();
    let hostile = adapters.get("hostile").await.expect("loaded").expect("known");
    assert!(hostile.optional().commands.is_none());
    let none = hostile.commands().err();
    assert_eq!(none, Some(HarnessError::Unsupported("the adapter `hostile` runs no commands".to_owned())));
}

#[tokio::test]
async fn a_hook_is_read_and_answered() {
    let stage = Stage::with(&["polite"]);
    let adapters = stage.adapters();
    let polite = adapters.get("polite").await.expect("loaded").expect("known");
    let call = HookCall { name: "Stop".to_owned(), payload: "s1".to_owned(), environment: Vec::new(), process: None };
    let mut host = TestHookHost::default();
    let reply = polite.hook(&call, &mut host).await.expect("an answer");
    let expected = Reply {
        stdout: Some("Stop ticket you have mail".to_owned()),
        stderr: Some("no".to_owned()),
        exit_code: 2,
        shows_mail: true,
    };
    assert_eq!(reply, expected);
    let read = host.read.expect("read");
    assert_eq!(read.speaker, Some(session("s1")));
    assert_eq!(read.events.len(), 4);
    assert_eq!(read.events[2], HookEvent::Rebound { from: "before".to_owned(), to: "s1".to_owned() });
    assert_eq!((read.occasion, read.max_bytes, read.attended), (Some(Occasion::Compaction), 1000, true));
}

#[tokio::test]
async fn only_what_can_be_meant_is_loaded() {
    let stage = Stage::with(&["polite", "hostile"]);
    for (client, variables, expected) in [
        (Some("polite-client"), &[][..], vec!["polite"]),
        (None, &["HOSTILE_SESSION"][..], vec!["hostile"]),
        // A client whose name belongs to one adapter is no other's, whatever shell it was started from.
        (Some("polite-client"), &["HOSTILE_SESSION"][..], vec!["polite"]),
        (Some("another"), &["ANOTHER"][..], vec![]),
    ] {
        let adapters = stage.adapters();
        let found = adapters.candidates(&caller(client, variables)).await;
        let mut names: Vec<_> = found.iter().map(|found| found.harness.about().harness.clone()).collect();
        // Built-in adapters that take any client come last.
        names.retain(|name| ["polite", "hostile"].contains(&name.as_str()));
        assert_eq!(names, expected, "{client:?} {variables:?}");
        let (states, _) = adapters.states().await;
        for state in states.iter().filter(|state| !expected.contains(&state.name.as_str())) {
            if ["polite", "hostile"].contains(&state.name.as_str()) {
                assert_eq!(state.condition, adapters::Condition::Unloaded, "{}", state.name);
            }
        }
    }
    assert!(stage.adapters().get("unheard-of").await.expect("no failure").is_none());
}
