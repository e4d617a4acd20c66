//! Recorded runs, and the command lines of tasks.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::optional::runner::{Choice, Extensions, Launch, Login, Reach, Runner, Start, Task};
use relay_mesh_sdk::testing::{Fakes, recorded_runs, task};

use serde_json::{Value, json};

use crate::GeminiCli;

#[test]
fn recorded_runs_are_read_and_concluded() {
    assert!(recorded_runs::<GeminiCli>(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures")) >= 9);
}

fn machine() -> Fakes {
    Fakes::default().root("config").root("project").root("managed")
}

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
    let told = match GeminiCli::prepare(task) {
        Ok(launch) => words(&launch),
        Err(Error::Unsupported(why)) => format!("unsupported: {why}"),
        Err(error) => format!("{error:?}"),
    };
    assert_eq!(told, expected);
}

fn alone(reach: Reach) -> Task {
    Task { reach, extensions: Extensions::None, ..task() }
}

const READ: &str = "the project's GEMINI.md is read: there is no way to leave it out";
const ID: &str = "session=5d20a1b2-0000-4000-8000-000000000001";

#[test]
fn a_reach_is_a_policy_and_never_widened() {
    let _host = machine().start();
    let without = format!("{ID}; without-extensions; servers=none");
    check(&alone(Reach::Look), &format!("{without}; looking; policy; but {READ}"));
    check(&alone(Reach::Edit), &format!("{without}; editing; policy; but {READ}"));
    check(&alone(Reach::Work), &format!("{without}; editing; but {READ}"));
    check(&alone(Reach::Unguarded), &format!("{without}; unguarded; but {READ}"));
    check(&Task { extensions: Extensions::All, ..alone(Reach::Work) }, &format!("{ID}; editing"));
    let why = "Gemini CLI cannot hold back what the user's own hooks, extensions and MCP servers change";
    check(&Task { extensions: Extensions::All, ..alone(Reach::Look) }, &format!("unsupported: {why}"));
    let policy = |reach| GeminiCli::prepare(&alone(reach)).expect("a launch").files[0].text.clone();
    assert!(policy(Reach::Look).starts_with("[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\n"));
    assert!(!policy(Reach::Look).contains("write_file") && policy(Reach::Edit).contains("write_file"));
}

#[test]
fn no_instructions_are_added_to_the_administrators_settings() {
    let managed = r#"{"model": {"name": "m"}, "telemetry": {"enabled": false}}"#;
    let _host = machine().file("managed", "settings.json", managed).start();
    let settings = |task: &Task| -> Option<Value> {
        let launch = GeminiCli::prepare(task).expect("a launch");
        let file = launch.files.into_iter().find(|file| file.name == "settings.json")?;
        assert!(launch.environment.iter().any(|(name, _)| name == "GEMINI_CLI_SYSTEM_SETTINGS_PATH"));
        Some(serde_json::from_str(&file.text).expect("JSON"))
    };
    assert_eq!(settings(&Task { reach: Reach::Work, ..task() }), None, "the administrator's stay");
    let alone = settings(&alone(Reach::Look)).expect("settings");
    assert_eq!(alone["context"]["fileName"], format!("{}.md", task().id));
    assert_eq!((&alone["model"]["name"], &alone["telemetry"]["enabled"]), (&json!("m"), &json!(false)));
}

#[test]
fn what_it_cannot_do_is_said() {
    let _host = machine().start();
    check(
        &Task { start: Start::Fork("s".into()), ..task() },
        "unsupported: Gemini CLI cannot continue a copy of a session",
    );
    let asked = Task {
        start: Start::Resume("s1".into()),
        schema: Some("{}".into()),
        guidance: Some("x".into()),
        turns: Some(1),
        model: Some("m".into()),
        ..alone(Reach::Look)
    };
    let expected = "resume=s1; model=m; without-extensions; servers=none; looking; policy; but";
    let lacks = "no schema: only the task's text can ask for it, no place for guidance";
    check(&asked, &format!("{expected} {READ}, {lacks}"));
    let why = "Gemini CLI does not tell what it costs, so no limit of cost can be kept";
    check(&Task { cost: Some(1), ..task() }, &format!("unsupported: {why}"));
}

const OURS: &str = r#"{"mcpServers": {"relay-mesh": {}}, "hooks": {"SessionStart": [{"hooks": [
    {"command": "/opt/bin/relay-mesh hook gemini-cli SessionStart"}]}]}}"#;

#[test]
fn a_run_is_on_the_mesh_if_gemini_cli_is_set_up_for_it() {
    let _host = machine().file("config", "settings.json", OURS).start();
    check(&task(), &format!("{ID}; without-extensions; servers=relay-mesh; looking; policy"));
    let stays = format!("but {READ}, relay-mesh's own hooks stay");
    check(&alone(Reach::Look), &format!("{ID}; without-extensions; servers=none; looking; policy; {stays}"));
    let _host = machine().start();
    let not = "but not on the mesh: `relay-mesh install gemini-cli` sets it up";
    check(&task(), &format!("{ID}; without-extensions; servers=none; looking; policy; {not}"));
}

#[test]
fn what_no_flag_leaves_out_is_refused_by_name() {
    let hooked = r#"{"hooks": {"AfterTool": [{"hooks": [{"command": "sh -c evil"}]}]}}"#;
    let _host = machine().file("project", ".gemini/settings.json", hooked).start();
    check(&alone(Reach::Look), "unsupported: Gemini CLI cannot leave out the hooks in .gemini/settings.json");
    check(&Task { extensions: Extensions::All, ..alone(Reach::Work) }, &format!("{ID}; editing"));
    let finds = r#"{"tools": {"discoveryCommand": "evil"}}"#;
    let _host = machine().file("project", ".gemini/settings.json", finds).start();
    let why = "Gemini CLI cannot leave out the command in .gemini/settings.json that finds tools";
    check(&alone(Reach::Look), &format!("unsupported: {why}"));
}

#[test]
fn a_login_is_what_the_settings_and_a_file_say() {
    let login = |settings: &str, file: Option<&str>| {
        let host = machine().file("config", "settings.json", settings);
        let host = file.into_iter().fold(host, |host, file| host.file("config", file, "{}"));
        let _host = host.start();
        super::login().expect("it is told").0
    };
    let google = r#"{"security": {"auth": {"selectedType": "oauth-personal"}}}"#;
    assert_eq!(login(google, Some("oauth_creds.json")), Login::LoggedIn);
    assert_eq!(login(google, None), Login::LoggedOut);
    assert_eq!(login("{}", None), Login::Unknown);
}
