//! Install plans, applied to folders in memory as the host would apply them.

use relay_mesh_sdk::http::Response;
use relay_mesh_sdk::install::{Action, Scope, Server, Setup};
use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::testing::{self, FakeHost, Fakes, carry_out, complaints, setup};
use relay_mesh_sdk::{Install, dated_state};

use crate::OpenCode;

/// A machine with OpenCode on which no server listens at any port.
fn folders() -> Fakes {
    serving(Response { status: 200, headers: Vec::new(), body: br#"{"healthy":true}"#.to_vec() })
}

/// A machine with OpenCode on which every port gives this answer.
fn serving(answer: Response) -> Fakes {
    let version = ProgramOutput { exit_code: 0, stdout: b"1.18.33\n".to_vec(), stderr: Vec::new() };
    Fakes::default()
        .root("project")
        .root("config")
        .program("opencode-version", move |_, _| version.clone())
        .origin("opencode", move |_| answer.clone())
}

#[track_caller]
fn run(host: &FakeHost, setup: &Setup) -> String {
    carry_out::<OpenCode>(host, setup)
}

/// What an install writes, without the connector's text.
#[track_caller]
fn shown(host: &FakeHost, setup: &Setup) -> String {
    let place = super::ScopeFiles::of(setup.scope);
    let whole = run(host, setup);
    let text = host.text(place.root, place.connector).expect("the connector is written");
    whole.replace(&text, "(the connector)\n")
}

#[test]
fn an_install_into_an_empty_project() {
    let host = folders().start();
    insta::assert_snapshot!(shown(&host, &setup(Action::Install, Scope::Project)));
}

#[test]
fn an_install_for_a_user() {
    let host = folders().start();
    insta::assert_snapshot!(shown(&host, &setup(Action::Install, Scope::User)));
}

#[test]
fn an_install_over_http() {
    let host = folders().start();
    let server = Server::Http("http://127.0.0.1:7423/mcp".into());
    insta::assert_snapshot!(shown(&host, &Setup { server, ..setup(Action::Install, Scope::Project) }));
}

/// Typical settings for OpenCode, including comments and trailing commas.
const THEIRS: &[&str] = &[
    "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  // the small one is enough\n  \"model\": \"a/b\",\n}\n",
    "{\n\t\"mcp\": {\n\t\t\"other\": { \"type\": \"local\", \"command\": [\"other\"] }, // theirs\n\t},\n\t\"permission\": { \"*\": \"ask\", \"read\": \"allow\" }\n}\n",
    "{ \"mcp\": {}, \"permission\": \"ask\" }",
    "",
];

#[test]
fn installed_twice_changes_nothing_and_removed_leaves_every_byte() {
    for (scope, root) in [(Scope::Project, "project"), (Scope::User, "config")] {
        for file in ["opencode.json", "opencode.jsonc"] {
            for theirs in THEIRS.iter().chain(testing::SETTINGS) {
                let machine = || folders().file(root, file, *theirs).file(root, "plugins/other.ts", "// theirs\n");
                testing::leaves_every_byte::<OpenCode>(machine(), scope);
                let host = machine().start();
                run(&host, &setup(Action::Install, scope));
                let found = OpenCode::check(&setup(Action::Install, scope)).expect("checked");
                let allowed = if theirs.contains("\"ask\" }") && !theirs.contains('*') { 1 } else { 0 };
                assert_eq!(complaints(&found).lines().count(), allowed, "{theirs:?}: {}", complaints(&found));
            }
        }
        let host = folders().start();
        run(&host, &setup(Action::Install, scope));
        run(&host, &setup(Action::Remove, scope));
        assert_eq!(host.files(), [], "nothing was there, and nothing is left");
    }
}

/// Which file an install edits if these files exist.
#[track_caller]
fn edits(files: &[(&str, &str)], expected: &str) {
    let _host = files.iter().fold(folders(), |fakes, (path, text)| fakes.file("project", path, *text)).start();
    let plan = OpenCode::propose(&setup(Action::Install, Scope::Project)).expect("planned");
    assert_eq!(plan.edits[0].path, expected);
}

#[test]
fn the_file_that_has_the_last_word_is_edited() {
    const OURS: &str = r#"{"mcp": {"relay-mesh": {"type": "local", "command": ["relay-mesh", "mcp"]}}}"#;
    edits(&[], "opencode.json");
    edits(&[("opencode.jsonc", "{}")], "opencode.jsonc");
    edits(&[("opencode.json", "{}"), ("opencode.jsonc", "{}")], "opencode.jsonc");
    edits(&[(".opencode/opencode.json", "{}")], ".opencode/opencode.json");
    edits(&[("opencode.json", "{}"), (".opencode/opencode.json", "{}")], "opencode.json");
    edits(&[("opencode.json", OURS), ("opencode.jsonc", "{}")], "opencode.json");
}

#[test]
fn a_rule_of_ours_comes_after_theirs_and_goes_again() {
    let theirs = "{ \"permission\": { \"*\": \"ask\" } }\n";
    let host = folders().file("project", "opencode.json", theirs).start();
    run(&host, &setup(Action::Install, Scope::Project));
    let text = host.text("project", "opencode.json").expect("text");
    assert!(text.contains(r#""*": "ask", "relay-mesh_*": "allow""#), "{text}");
    let of_others = folders().file("config", "opencode.json", theirs).start();
    run(&of_others, &setup(Action::Install, Scope::Project));
    let text = of_others.text("project", "opencode.json").expect("text");
    assert!(text.contains(r#""relay-mesh_*": "allow""#), "the person's own rules count in a project too: {text}");
}

#[test]
fn what_stands_in_the_way_is_told_with_its_place() {
    let refused = |text: &str| {
        let _host = folders().file("project", "opencode.json", text).start();
        OpenCode::propose(&setup(Action::Install, Scope::Project)).expect_err("refused").to_string()
    };
    assert!(
        refused("{\n  \"mcp\": [}\n").contains("opencode.json, line 2, column 11"),
        "{}",
        refused("{\n  \"mcp\": [}\n")
    );
    assert!(
        refused("{\"mcp\": {\"relay-mesh\": {\"type\": \"local\", \"command\": [\"theirs\"]}}}")
            .contains("rename it first")
    );
    assert!(refused("{\n\"mcp\": 7}").contains("line 2: `mcp` is not an object"));
}

/// The complaints of a check after something happened to an install.
#[track_caller]
fn check(fakes: Fakes, happens: impl FnOnce(&FakeHost), expected: &str) {
    let host = fakes.start();
    run(&host, &setup(Action::Install, Scope::Project));
    happens(&host);
    let found = OpenCode::check(&setup(Action::Install, Scope::Project)).expect("checked");
    let told = complaints(&found);
    assert!(if expected.is_empty() { told.is_empty() } else { told.contains(expected) }, "{told}");
}

#[test]
fn the_check_names_what_keeps_a_session_from_the_mesh() {
    let write = |path: &'static str, text: &'static str| move |host: &FakeHost| host.write("project", path, text);
    check(folders(), |_| {}, "");
    check(folders(), write("opencode.json", "{\n  \"mcp\" 7 }"), "broken: opencode.json, line 2");
    check(
        folders(),
        write("opencode.json", "{}"),
        "broken: no settings file of OpenCode has a server named `relay-mesh`",
    );
    check(
        folders(),
        write("opencode.jsonc", r#"{"mcp": {"relay-mesh": {"type": "remote", "url": "http://127.0.0.1:1"}}}"#),
        "broken: the server named `relay-mesh` in opencode.jsonc is not relay-mesh's",
    );
    check(
        folders(),
        write(
            "opencode.jsonc",
            r#"{"mcp": {"relay-mesh": {"type": "local", "command": ["relay-mesh", "mcp"], "enabled": false}}}"#,
        ),
        "broken: opencode.jsonc turns the server `relay-mesh` off",
    );
    check(
        folders(),
        write("opencode.jsonc", r#"{"mcp": {"mesh": {"type": "local", "command": ["relay-mesh", "mcp"]}}}"#),
        "warning: opencode.jsonc names relay-mesh a second time, as `mesh`",
    );
    check(
        folders(),
        write(".opencode/plugins/relay-mesh.ts", "// mine\n"),
        "warning: .opencode/plugins/relay-mesh.ts is not as",
    );
    check(folders(), write(".opencode/relay-mesh.local.json", "{\"program\": []}"), "is of another install");
    let elsewhere = |host: &FakeHost| {
        run(host, &setup(Action::Install, Scope::User));
    };
    check(folders(), elsewhere, "warning: `relay-mesh` is also installed for every project");
    check(folders(), |_| dated_state::write("without-plugins", &()).expect("written"), "started without plugins");
}

#[test]
fn the_check_asks_the_servers_that_connectors_told_of() {
    let answer = |status: u16, body: &str| Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() };
    let told = |_: &FakeHost| dated_state::write("server/5555", &serde_json::json!({"port": 5555})).expect("written");
    check(serving(answer(401, "")), told, "broken: the OpenCode on port 5555 refuses the password");
    check(serving(answer(401, "")), |_| {}, "");
    check(serving(answer(200, "<html>")), |_| {}, "warning: port 4096 is taken by another program");
    check(serving(answer(404, "")), |_| {}, "warning: port 4096 is taken by another program");
    check(serving(answer(200, "{}")), told, "warning: the program on port 5555 is no longer OpenCode");
}

#[test]
fn versions_that_were_not_tried_are_told_apart() {
    let version = |text: &'static str| {
        let outcome = ProgramOutput { exit_code: 0, stdout: text.as_bytes().to_vec(), stderr: Vec::new() };
        folders().program("opencode-version", move |_, _| outcome.clone())
    };
    check(version("0.15.2\n"), |_| {}, "broken: OpenCode 0.15.2 is too old");
    check(version("2.0.0\n"), |_| {}, "warning: OpenCode 2.0.0 may load plugins differently");
    check(version("1.99.0\n"), |_| {}, "");
}
