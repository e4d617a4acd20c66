//! Install plans, applied to folders in memory as the host would apply them.

use relay_mesh_sdk::install::{Action, Scope, Server, Setup};
use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::testing::{self, FakeHost, Fakes, carry_out, setup};
use relay_mesh_sdk::{Error, Install};

use crate::GeminiCli;

const SETTINGS: &str = ".gemini/settings.json";
const RECORDED: [&str; 2] = [
    include_str!("../../fixtures/settings/with-comments/project/.gemini/settings.json"),
    include_str!("../../fixtures/settings/plain/config/settings.json"),
];

fn folders() -> Fakes {
    let version = ProgramOutput { exit_code: 0, stdout: b"0.61.0\n".to_vec(), stderr: Vec::new() };
    Fakes::default().root("project").root("config").program("gemini-version", move |_, _| version.clone())
}

fn run(host: &FakeHost, setup: &Setup) -> String {
    carry_out::<GeminiCli>(host, setup)
}

#[test]
fn a_project_names_nothing_of_this_machine() {
    let host = folders().start();
    let shown = run(&host, &setup(Action::Install, Scope::Project));
    let settings = host.text("project", SETTINGS).expect("settings");
    assert!(!settings.contains("/opt/") && !settings.contains("/srv/"), "{settings}");
    for expected in [
        r#""command": "${RELAY_MESH_BIN:-relay-mesh}""#,
        r#""command": "\"${RELAY_MESH_BIN:-relay-mesh}\" hook gemini-cli BeforeAgent""#,
        r#""matcher": "^(mcp_relay-mesh_.*|write_file|replace)$""#,
    ] {
        assert!(settings.contains(expected), "{expected} is not in {settings}");
    }
    for expected in [r#"export RELAY_MESH_BIN="/opt/bin/relay-mesh""#, r#"export RELAY_DIR="/srv/relay""#] {
        assert!(shown.contains(expected), "{shown}");
    }
}

#[test]
fn a_persons_own_settings_name_this_machine() {
    let host = folders().start();
    run(&host, &setup(Action::Install, Scope::User));
    let settings = host.text("config", "settings.json").expect("settings");
    for expected in
        [r#""command": "/opt/bin/relay-mesh""#, "RELAY_DIR=/srv/relay /opt/bin/relay-mesh hook gemini-cli AfterAgent"]
    {
        assert!(settings.contains(expected), "{expected} is not in {settings}");
    }
}

#[test]
fn over_http_the_token_stays_in_the_environment() {
    let host = folders().start();
    let server = Server::Http("http://127.0.0.1:7423/mcp".into());
    let shown = run(&host, &Setup { server, ..setup(Action::Install, Scope::Project) });
    assert!(shown.contains(r#""httpUrl": "http://127.0.0.1:7423/mcp""#), "{shown}");
    assert!(shown.contains("Bearer ${RELAY_MESH_TOKEN}") && shown.contains("relay-mesh token)"), "{shown}");
}

#[test]
fn installed_twice_changes_nothing_and_removed_leaves_every_byte() {
    for scope in [Scope::Project, Scope::User] {
        for theirs in testing::SETTINGS.iter().chain(&RECORDED) {
            let host = folders().file("project", SETTINGS, *theirs).file("config", "settings.json", *theirs).start();
            let before = host.files();
            assert_ne!(run(&host, &setup(Action::Install, scope)), "");
            assert_eq!(run(&host, &setup(Action::Install, scope)), "", "the second time, on {theirs}");
            let complaints = GeminiCli::check(&setup(Action::Install, scope)).expect("it is checked");
            assert_eq!(testing::complaints(&complaints), "", "{theirs}");
            run(&host, &setup(Action::Remove, scope));
            assert_eq!(host.files(), before, "{scope:?} on {theirs}");
            assert_eq!(run(&host, &setup(Action::Remove, scope)), "", "nothing is left to take out");
        }
    }
}

#[test]
fn a_newer_install_takes_the_place_of_an_older_one() {
    let host = folders().start();
    run(&host, &Setup { program: vec!["/old/relay-mesh".into()], ..setup(Action::Install, Scope::User) });
    run(&host, &setup(Action::Install, Scope::User));
    let settings = host.text("config", "settings.json").expect("settings");
    assert!(!settings.contains("/old/"), "{settings}");
    assert_eq!(settings.matches("hook gemini-cli AfterAgent").count(), 1, "{settings}");
}

#[test]
fn a_broken_file_is_named_with_the_place_and_left() {
    let host = folders().file("project", SETTINGS, "{\n  \"hooks\": [\n").start();
    let Err(Error::Failed(what)) = GeminiCli::propose(&setup(Action::Install, Scope::Project)) else {
        panic!("a broken file is no place for a plan");
    };
    assert!(what.starts_with(".gemini/settings.json, line 2, column 12"), "{what}");
    assert_eq!(host.text("project", SETTINGS).as_deref(), Some("{\n  \"hooks\": [\n"));
}

#[test]
fn what_settings_say_against_us_is_found() {
    for (settings, complaint) in [
        (r#"{"hooksConfig": {"enabled": false}}"#, "broken: settings.json turns all hooks off"),
        (r#"{"hooksConfig": {"disabled": ["relay-mesh"]}}"#, "broken: settings.json disables our hooks"),
        (r#"{"mcp": {"excluded": ["relay-mesh"]}}"#, "broken: settings.json excludes the server `relay-mesh`"),
        (r#"{"mcp": {"allowed": ["tickets"]}}"#, "broken: settings.json allows other servers alone"),
        (r#"{"mcp": {"allowed": ["tickets", "relay-mesh"]}}"#, ""),
    ] {
        let host = folders().file("config", "settings.json", settings).start();
        run(&host, &setup(Action::Install, Scope::Project));
        let found = GeminiCli::check(&setup(Action::Install, Scope::Project)).expect("it is checked");
        assert_eq!(testing::complaints(&found), complaint, "{settings}");
    }
    let _host = folders().start();
    let found = GeminiCli::check(&setup(Action::Install, Scope::User)).expect("it is checked");
    let complaints = testing::complaints(&found);
    assert!(complaints.contains("settings.json has no server named `relay-mesh`"), "{complaints}");
    assert!(complaints.contains("lacks our hooks for SessionStart, BeforeAgent"), "{complaints}");
}

#[test]
fn the_version_is_the_clients_own() {
    let _host = folders().start();
    assert_eq!(GeminiCli::present(), Ok(Some("0.61.0".to_owned())));
}
