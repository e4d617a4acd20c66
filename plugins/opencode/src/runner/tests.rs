//! Recorded runs, and the command lines of tasks.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::{Extensions, Launch, Reach, Runner, Start, Task};
use relay_mesh_sdk::testing::{Fakes, recorded_runs, task};
use serde_json::Value;

use crate::OpenCode;

#[test]
fn recorded_runs_are_read_and_concluded() {
    assert!(recorded_runs::<OpenCode>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")) >= 8);
}

fn machine() -> Fakes {
    Fakes::default().root("config").root("project")
}

fn words(launch: &Launch) -> String {
    let option = |choice: &relay_mesh_sdk::optional::runner::Choice| match choice.values.is_empty() {
        true => choice.name.clone(),
        false => format!("{}={}", choice.name, choice.values.join(" ")),
    };
    launch.choices.iter().map(option).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(task: &Task, expected: &str) {
    let told = match OpenCode::prepare(task) {
        Ok(launch) => words(&launch),
        Err(Error::Unsupported(why)) => format!("unsupported: {why}"),
        Err(error) => format!("{error:?}"),
    };
    assert_eq!(told, expected);
}

fn settings(task: &Task) -> Value {
    let launch = OpenCode::prepare(task).expect("a launch");
    serde_json::from_str(&launch.environment[0].1).expect("JSON")
}

fn alone(reach: Reach) -> Task {
    Task { reach, extensions: Extensions::None, ..task() }
}

#[test]
fn a_reach_is_an_agent_of_the_runs_own_and_never_widened() {
    let _host = machine().start();
    check(&alone(Reach::Look), "without-plugins; own-agent");
    check(&alone(Reach::Work), "without-plugins");
    check(&alone(Reach::Unguarded), "without-plugins; unguarded");
    check(&Task { extensions: Extensions::All, ..alone(Reach::Work) }, "");
    let why = "unsupported: OpenCode cannot hold back what the user's own plugins change";
    check(&Task { extensions: Extensions::All, ..alone(Reach::Look) }, why);
    let look = settings(&alone(Reach::Look))["agent"]["relay-run"]["permission"].to_string();
    assert_eq!(look, r#"{"*":"deny","read":"allow","grep":"allow","glob":"allow","list":"allow"}"#);
    let edit = &settings(&alone(Reach::Edit))["agent"]["relay-run"]["permission"];
    assert_eq!((&edit["edit"], &edit["external_directory"]), (&"allow".into(), &"deny".into()));
    assert!(settings(&alone(Reach::Work))["agent"].is_null());
}

#[test]
fn what_it_cannot_keep_is_said() {
    let _host = machine().start();
    let asked = Task {
        start: Start::Fork("ses_1".into()),
        schema: Some("{}".into()),
        guidance: Some("x".into()),
        turns: Some(1),
        cost: Some(1),
        model: Some("a/b".into()),
        ..alone(Reach::Look)
    };
    check(&asked, "model=a/b; resume=ses_1; fork; without-plugins; own-agent");
    assert_eq!(OpenCode::prepare(&asked).expect("a launch").without.len(), 3);
}

#[test]
fn servers_of_the_settings_are_switched_off_and_ours_is_there() {
    let theirs = r#"{ /* mine */ "mcp": {"one": {"type": "local", "command": ["one"]}, "relay-mesh": {"type": "local", "command": ["old"]}}}"#;
    let _host = machine().file("config", "opencode.jsonc", theirs).start();
    let alone = settings(&alone(Reach::Look));
    assert_eq!(alone["mcp"]["one"]["enabled"], false);
    assert_eq!(alone["mcp"]["relay-mesh"]["enabled"], false);
    let mesh = settings(&task());
    assert_eq!(mesh["mcp"]["relay-mesh"]["command"].to_string(), r#"["/opt/bin/relay-mesh","mcp"]"#);
    assert_eq!(mesh["mcp"]["relay-mesh"]["environment"]["RELAY_DIR"], "/srv/relay");
    assert_eq!(mesh["agent"]["relay-run"]["permission"]["relay-mesh_*"], "allow");
}
