//! Recorded runs, and the command lines of tasks.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::{Choice, Extensions, Launch, Login, Reach, Runner, Start, Task};
use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::testing::{Fakes, ended, recorded_runs, run, task};

use crate::Codex;

#[test]
fn recorded_runs_are_read_and_concluded() {
    assert!(recorded_runs::<Codex>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")) >= 12);
}

fn machine() -> Fakes {
    Fakes::default().root("config").root("project")
}

/// The launch as words: its options with their values, then what it is without.
fn words(launch: &Launch) -> String {
    let option = |choice: &Choice| match choice.values.is_empty() {
        true => choice.name.clone(),
        false => format!("{}={}", choice.name, choice.values.join(" ")),
    };
    let options = launch.choices.iter().map(option).collect::<Vec<_>>().join("; ");
    if launch.without.is_empty() { options } else { format!("{options}; but {}", launch.without.join(", ")) }
}

#[track_caller]
fn check(task: &Task, expected: &str) {
    let told = match Codex::prepare(task) {
        Ok(launch) => words(&launch),
        Err(Error::Unsupported(why)) => format!("unsupported: {why}"),
        Err(error) => format!("{error:?}"),
    };
    assert_eq!(told, expected);
}

fn alone(reach: Reach) -> Task {
    Task { reach, extensions: Extensions::None, ..task() }
}

#[test]
fn a_reach_is_a_sandbox_and_never_widened() {
    let _host = machine().start();
    check(&alone(Reach::Look), "without-hooks; without-instructions; looking; fresh");
    check(&alone(Reach::Edit), "without-hooks; without-instructions; editing; fresh");
    check(&alone(Reach::Work), "without-hooks; without-instructions; working; fresh");
    check(&alone(Reach::Unguarded), "without-hooks; without-instructions; unguarded; fresh");
    check(&Task { extensions: Extensions::All, ..alone(Reach::Work) }, "working; fresh");
    for reach in [Reach::Look, Reach::Edit] {
        let why = "Codex runs the user's own hooks, plugins and MCP servers outside of its sandbox";
        check(&Task { extensions: Extensions::All, ..alone(reach) }, &format!("unsupported: {why}"));
    }
}

#[test]
fn what_a_task_asks_for_is_worded() {
    let _host = machine().start();
    let asked = Task {
        start: Start::Resume("t1".into()),
        model: Some("m".into()),
        schema: Some("{}".into()),
        guidance: Some("- Say \"hi\".\n".into()),
        ..alone(Reach::Look)
    };
    let expected =
        "model=m; schema; guidance=\"- Say \\\"hi\\\".\\n\"; without-hooks; without-instructions; looking; resume=t1";
    check(&asked, expected);
    check(
        &Task { start: Start::Fork("t1".into()), ..alone(Reach::Look) },
        "without-hooks; without-instructions; looking; fork=t1",
    );
    for (task, expected) in [
        (
            Task { turns: Some(1), ..task() },
            "Codex does not tell how often its model has answered, so no limit of turns can be kept",
        ),
        (Task { cost: Some(1), ..task() }, "Codex does not tell what it costs, so no limit of cost can be kept"),
    ] {
        check(&task, &format!("unsupported: {expected}"));
    }
}

#[test]
fn servers_of_the_settings_are_left_out_by_name() {
    let settings = "[mcp_servers.one]\ncommand = \"one\"\n[mcp_servers.relay-mesh]\ncommand = \"old\"\n";
    let _host =
        machine().file("config", "config.toml", settings).file("project", ".codex/config.toml", settings).start();
    let expected = "without-hooks; without-server=one; without-server=relay-mesh; without-instructions; looking; fresh";
    check(&alone(Reach::Look), expected);
    let ours = "without-hooks; without-server=one; own-server=\"/opt/bin/relay-mesh\" [\"mcp\"] \
                {\"RELAY_DIR\"=\"/srv/relay\"}; looking; fresh; but no hooks, so mail is shown only when it is fetched";
    check(&task(), ours);
}

#[test]
fn a_server_that_cannot_be_left_out_is_named() {
    let _host = machine().file("config", "config.toml", "[mcp_servers.\"a.b\"]\ncommand = \"x\"\n").start();
    let why = "Codex cannot leave out the MCP server `a.b` of config.toml: its name is not a plain one";
    check(&alone(Reach::Look), &format!("unsupported: {why}"));
    let _host =
        machine().file("config", "config.toml", "[mcp_servers.relay-mesh]\nurl = \"http://127.0.0.1:1/mcp\"\n").start();
    check(&task(), "without-hooks; looking; fresh; but no hooks, so mail is shown only when it is fetched");
}

#[test]
fn a_provider_that_is_asked_again_is_told() {
    let line = r#"{"type":"error","message":"Reconnecting... 2/5 (unexpected status 401 Unauthorized: no)"}"#;
    let (events, outcome) = run::<Codex>(&task(), line, 1, &ended(0)).expect("it is read");
    assert_eq!(events.len(), 1);
    assert_eq!(outcome.why.as_deref(), Some("Codex's key or login was refused (HTTP 401)"));
}

#[test]
fn a_login_is_what_codex_says() {
    let ready = |code, stderr: &'static str, settings: &'static str| {
        let version = ProgramOutput { exit_code: 0, stdout: b"codex-cli 0.169.0\n".to_vec(), stderr: Vec::new() };
        let status = ProgramOutput { exit_code: code, stdout: Vec::new(), stderr: stderr.into() };
        let _host = machine()
            .file("config", "config.toml", settings)
            .program("codex-version", move |_, _| version.clone())
            .program("codex-login", move |_, _| status.clone())
            .start();
        let ready = Codex::ready().expect("it says");
        (ready.login, ready.why.unwrap_or_default())
    };
    assert_eq!(ready(0, "Logged in using ChatGPT\n", ""), (Login::LoggedIn, "Logged in using ChatGPT".into()));
    assert_eq!(ready(1, "Not logged in\n", ""), (Login::LoggedOut, "run `codex login`".into()));
    assert_eq!(ready(1, "Not logged in\n", "model_provider = \"mine\"\n").0, Login::Unknown);
}
