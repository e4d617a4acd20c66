//! Recorded runs, and the command lines of tasks.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::{Extensions, Launch, Login, Reach, Runner, Start, Task};
use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::testing::{Fakes, recorded_runs, task};
use serde_json::Value;

use crate::ClaudeCode;

#[test]
fn recorded_runs_are_read_and_concluded() {
    let _host = Fakes::default().start();
    assert!(recorded_runs::<ClaudeCode>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")) >= 13);
}

fn machine() -> Fakes {
    Fakes::default().root("config").root("project")
}

/// The launch as words: its options with their values, and what it sets.
fn words(launch: &Launch) -> String {
    let option = |choice: &relay_mesh_sdk::optional::runner::Choice| match choice.values.is_empty() {
        true => choice.name.clone(),
        false => format!("{}={}", choice.name, choice.values.join(",")),
    };
    launch.choices.iter().map(option).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(task: &Task, expected: &str) {
    let told = match ClaudeCode::prepare(task) {
        Ok(launch) => words(&launch),
        Err(Error::Unsupported(why)) => format!("unsupported: {why}"),
        Err(error) => format!("{error:?}"),
    };
    assert_eq!(told, expected);
}

fn file(task: &Task, name: &str) -> Value {
    let launch = ClaudeCode::prepare(task).expect("a launch");
    let file = launch.files.iter().find(|file| file.name == name).expect("the file is given");
    serde_json::from_str(&file.text).expect("JSON")
}

const ID: &str = "session=5d20a1b2-0000-4000-8000-000000000001";

#[test]
fn a_reach_is_kept_by_the_harness_and_never_widened() {
    let _host = machine().start();
    let of = |reach, extensions| Task { reach, extensions, ..task() };
    let mesh = "own-settings own-servers";
    check(&of(Reach::Look, Extensions::Mesh), &format!("{ID} mesh-tools {mesh} restricted looking"));
    check(&of(Reach::Look, Extensions::None), &format!("{ID} {mesh} restricted looking"));
    check(&of(Reach::Edit, Extensions::None), &format!("{ID} {mesh} restricted editing accept-edits"));
    check(&of(Reach::Work, Extensions::None), &format!("{ID} {mesh} accept-edits"));
    check(&of(Reach::Unguarded, Extensions::None), &format!("{ID} {mesh} unguarded"));
    check(&of(Reach::Work, Extensions::All), &format!("{ID} accept-edits"));
    for reach in [Reach::Look, Reach::Edit] {
        let why = "Claude Code cannot hold back what the user's own hooks, plugins and MCP servers change";
        check(&of(reach, Extensions::All), &format!("unsupported: {why}"));
    }
}

#[test]
fn what_a_task_asks_for_is_worded() {
    let _host = machine().start();
    let asked = Task {
        start: Start::Fork("s1".into()),
        extensions: Extensions::None,
        model: Some("--haiku".into()),
        schema: Some("{}".into()),
        turns: Some(3),
        cost: Some(1_500_000),
        guidance: Some("- Be brief.".into()),
        ..task()
    };
    let expected = "resume=s1 fork model=--haiku schema={} turns=3 cost=1.500000 own-settings own-servers restricted \
                    looking guidance";
    check(&asked, expected);
}

#[test]
fn the_users_settings_come_along_without_what_they_load() {
    let mine = r#"{
        // mine
        "env": {"ANTHROPIC_BASE_URL": "http://gateway"},
        "hooks": {"Stop": []},
        "enabledPlugins": {"x": true},
        "permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(.env)"], "defaultMode": "bypassPermissions"}
    }"#;
    let theirs = r#"{"apiKeyHelper": "evil", "permissions": {"allow": ["Bash(make:*)"], "deny": ["Read(keys)"]}}"#;
    let _host =
        machine().file("config", "settings.json", mine).file("project", ".claude/settings.json", theirs).start();
    let of = |reach| file(&Task { reach, extensions: Extensions::None, ..task() }, "settings.json");
    let expected =
        r#"{"env":{"ANTHROPIC_BASE_URL":"http://gateway"},"permissions":{"deny":["Read(.env)","Read(keys)"]}}"#;
    assert_eq!(of(Reach::Look).to_string(), expected);
    let rules = of(Reach::Work)["permissions"].to_string();
    assert_eq!(rules, r#"{"allow":["Bash(ls:*)","Bash(make:*)"],"deny":["Read(.env)","Read(keys)"]}"#);
}

#[test]
fn a_run_of_the_mesh_has_our_server_and_our_hooks() {
    let _host = machine().start();
    let settings = file(&task(), "settings.json");
    let hook = &settings["hooks"]["PostToolUse"][0]["hooks"][0];
    assert_eq!(hook["command"], "/opt/bin/relay-mesh", "{settings}");
    assert!(settings["hooks"]["FileChanged"].is_null(), "a run is not woken");
    let server = &file(&task(), "servers.json")["mcpServers"]["relay-mesh"];
    assert_eq!(
        (&server["command"], &server["env"]["RELAY_DIR"]),
        (&"/opt/bin/relay-mesh".into(), &"/srv/relay".into())
    );
    let alone = Task { extensions: Extensions::None, ..task() };
    assert!(file(&alone, "settings.json")["hooks"].is_null());
    assert_eq!(file(&alone, "servers.json")["mcpServers"].to_string(), "{}");
}

#[test]
fn only_a_run_that_may_write_follows_the_projects_instructions() {
    let _host = machine().file("project", "CLAUDE.md", "Use tabs.").start();
    let guidance = |reach| {
        let launch = ClaudeCode::prepare(&Task { reach, ..task() }).expect("a launch");
        launch.files.into_iter().find(|file| file.name == "guidance.md").map(|file| file.text)
    };
    assert_eq!(guidance(Reach::Look), None);
    assert_eq!(guidance(Reach::Edit).as_deref(), Some("Use tabs."));
}

#[test]
fn broken_settings_are_named_and_nothing_is_guessed() {
    let _host = machine().file("config", "settings.json", "{").start();
    check(&task(), "Error::Failed(\"settings.json, line 1, column 1: Unterminated object\")");
}

#[test]
fn a_login_is_what_claude_code_says() {
    let output = |text: &str| ProgramOutput { exit_code: 1, stdout: text.into(), stderr: Vec::new() };
    let ready = |status: &'static str| {
        let _host = Fakes::default()
            .program("claude-version", move |_, _| ProgramOutput { exit_code: 0, ..output("2.1.329 (Claude Code)") })
            .program("claude-login", move |_, _| output(status))
            .start();
        let ready = ClaudeCode::ready().expect("it says");
        (ready.login, ready.why.unwrap_or_default())
    };
    assert_eq!(ready(r#"{"loggedIn": false}"#).0, Login::LoggedOut);
    let (login, why) = ready(r#"{"loggedIn": true, "apiKeySource": "ANTHROPIC_API_KEY"}"#);
    assert_eq!((login, why.as_str()), (Login::LoggedIn, "signed in by ANTHROPIC_API_KEY"));
    assert_eq!(ready("no JSON").0, Login::Unknown);
    let _host = Fakes::default().start();
    assert!(matches!(ClaudeCode::ready(), Err(Error::NotFound(_))));
}
