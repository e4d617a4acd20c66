//! Install plans, applied to folders in memory as the host would apply them.

use relay_mesh_sdk::install::{Action, Scope, Setup};
use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::testing::{self, FakeHost, Fakes, carry_out, setup};
use relay_mesh_sdk::{Error, Install};
use serde_json::Value;

use crate::Cursor;

const BOTH: [Scope; 2] = [Scope::Project, Scope::User];

fn folders() -> Fakes {
    Fakes::default().root("project").root("config")
}

fn version(text: &'static str) -> impl Fn(&[String], &[u8]) -> ProgramOutput {
    move |_, _| ProgramOutput { exit_code: 0, stdout: text.into(), stderr: Vec::new() }
}

#[track_caller]
fn run(host: &FakeHost, setup: &Setup) -> String {
    carry_out::<Cursor>(host, setup)
}

/// The root and the path of a scope's hooks.json and mcp.json.
fn files(scope: Scope) -> (&'static str, [&'static str; 2]) {
    match scope {
        Scope::Project => ("project", [".cursor/hooks.json", ".cursor/mcp.json"]),
        Scope::User => ("config", ["hooks.json", "mcp.json"]),
    }
}

fn complaints(scope: Scope) -> String {
    testing::complaints(&Cursor::check(&setup(Action::Install, scope)).expect("it is checked"))
}

#[test]
fn an_install_writes_what_people_were_shown() {
    for (name, plan) in testing::install_plans::<Cursor>(folders) {
        insta::assert_snapshot!(name, plan);
    }
}

#[test]
fn what_a_team_commits_names_nothing_of_this_machine() {
    let host = folders().start();
    run(&host, &setup(Action::Install, Scope::Project));
    for (path, bytes) in host.files() {
        let text = String::from_utf8(bytes).expect("text");
        assert!(!text.contains("/opt/") && !text.contains("/srv/"), "{path}: {text}");
    }
}

/// Typical hooks.json files.
const HOOKED: &[&str] = &[
    "{\"version\": 1}",
    "{\n  \"version\": 1,\n  \"hooks\": {}\n}\n",
    "{\r\n  \"version\": 1,\r\n  \"hooks\": {\r\n    \"stop\": [\r\n      { \"command\": \"./done.sh\", \"loop_limit\": null }\r\n    ]\r\n  }\r\n}\r\n",
    "{\n\t// mine\n\t\"version\": 1,\n\t\"hooks\": {\n\t\t\"afterFileEdit\": [{ \"command\": \"prettier\", }], // tidy\n\t\t\"preToolUse\": [\n\t\t\t{\n\t\t\t\t\"matcher\": \"Shell\",\n\t\t\t\t\"command\": \"node .cursor/hooks/guard.mjs\",\n\t\t\t\t\"failClosed\": true\n\t\t\t}\n\t\t]\n\t}\n}\n",
    "{\n  \"hooks\": {\n    \"stop\": [{ \"command\": \"say done\" }]\n  },\n  \"version\": 1\n}",
    "\u{feff}{\"version\":1,\"hooks\":{\"sessionStart\":[{\"command\":\"./context.sh\"}]}}",
];

#[test]
fn installed_twice_changes_nothing_and_removed_leaves_every_byte() {
    // Without the number of its format, Cursor does not accept a file that lists hooks.
    let others = testing::SETTINGS.iter().filter(|text| !text.contains("hooks"));
    for scope in BOTH {
        let (root, [hooks, servers]) = files(scope);
        for theirs in others.clone().chain(HOOKED) {
            let listed =
                "{\n  // two\n  \"mcpServers\": {\n    \"other\": { \"url\": \"https://example.org/mcp\" }\n  }\n}\n";
            let machine = folders().file(root, hooks, *theirs).file(root, servers, listed);
            testing::leaves_every_byte::<Cursor>(machine, scope);
        }
        let host = folders().start();
        run(&host, &setup(Action::Install, scope));
        run(&host, &setup(Action::Remove, scope));
        assert!(host.files().is_empty(), "what was made is gone: {:?}", host.files());
    }
}

#[test]
fn every_file_stays_one_that_cursor_reads() {
    for scope in BOTH {
        let (root, [hooks, _]) = files(scope);
        for theirs in HOOKED {
            let host = folders().file(root, hooks, *theirs).start();
            run(&host, &setup(Action::Install, scope));
            let text = host.text(root, hooks).expect("hooks");
            // Strips comments as Cursor does: everything after two slashes, wherever they are.
            let stripped: Vec<&str> = text
                .trim_start_matches('\u{feff}')
                .lines()
                .map(|line| line.split("//").next().unwrap_or(line))
                .collect();
            let read =
                relay_mesh_sdk::edit::jsonc::Document::parse(Some(&stripped.join("\n"))).map(|file| file.get(&[]));
            let settings: Value = read.unwrap_or_else(|error| panic!("{error}: {text}")).expect("an object");
            assert_eq!(settings["version"], 1, "{text}");
            assert_eq!(settings["hooks"].as_object().map(|hooks| hooks.len() >= 9), Some(true), "{text}");
        }
    }
}

#[test]
fn a_newer_install_takes_the_place_of_an_older_one() {
    let host = folders().start();
    run(&host, &Setup { program: vec!["/old/relay-mesh".into()], ..setup(Action::Install, Scope::User) });
    run(&host, &setup(Action::Install, Scope::User));
    let hooks = host.text("config", "hooks.json").expect("hooks");
    assert!(!hooks.contains("/old/"), "{hooks}");
    assert_eq!(hooks.matches("hook cursor stop").count(), 1);
}

#[test]
fn what_others_wrote_in_between_stays() {
    let host = folders().start();
    run(&host, &setup(Action::Install, Scope::Project));
    let hooks = host.text("project", ".cursor/hooks.json").expect("hooks");
    host.write(
        "project",
        ".cursor/hooks.json",
        hooks.replacen("\"stop\": [", "\"stop\": [{ \"command\": \"mine\" },", 1),
    );
    let rule = ".cursor/rules/relay-mesh.mdc";
    let changed = host.text("project", rule).expect("a rule").replace("Weigh it", "Weigh it well");
    host.write("project", rule, changed);
    insta::assert_snapshot!(run(&host, &setup(Action::Remove, Scope::Project)));
    assert!(host.text("project", rule).is_some(), "a changed rule is the person's");
}

#[test]
fn a_file_that_cannot_be_used_is_named_and_nothing_is_planned() {
    let refused = |path: &str, text: &str| {
        let _host = folders().file("project", path, text).start();
        match Cursor::propose(&setup(Action::Install, Scope::Project)) {
            Err(Error::Failed(what)) => what,
            other => panic!("{other:?}"),
        }
    };
    let hooks = ".cursor/hooks.json";
    assert_eq!(refused(hooks, "{\n  \"version\": one\n}"), ".cursor/hooks.json, line 2, column 14: Unexpected word");
    assert_eq!(
        refused(hooks, "{\"version\": 1, \"hooks\": []}"),
        ".cursor/hooks.json, line 1: `hooks` is not an object"
    );
    assert_eq!(
        refused(hooks, "{\"hooks\": {\"stop\": []}}"),
        ".cursor/hooks.json, Cursor ignores the whole file, because it has no `version`: write \"version\": 1 into it"
    );
    assert_eq!(
        refused(hooks, "{\"version\": 1, \"hooks\": {\"onSave\": []}}"),
        ".cursor/hooks.json, Cursor ignores the whole file, because it names an event that Cursor does not know, \
         `onSave`: remove that event from it"
    );
    assert_eq!(
        refused(".cursor/mcp.json", "{\"mcpServers\": {\"relay-mesh\": {\"command\": \"theirs\"}}}"),
        ".cursor/mcp.json, `mcpServers.relay-mesh`: another server already has this name; rename it first"
    );
}

#[test]
fn a_command_that_would_void_the_file_is_refused() {
    let _host = folders().start();
    for (program, folder) in [("/opt//relay-mesh", "/srv"), ("/opt/relay-mesh", "nats://host")] {
        let setup = Setup {
            program: vec![program.into()],
            environment: vec![("RELAY_DIR".into(), folder.into())],
            ..setup(Action::Install, Scope::User)
        };
        assert!(
            matches!(Cursor::propose(&setup), Err(Error::Failed(what)) if what.contains("reads `//` as a comment"))
        );
    }
}

#[test]
fn the_version_is_the_command_lines_or_the_editors() {
    let _host = Fakes::default().program("editor-version", version("3.18.25\n0f3e\nx64\n")).start();
    assert_eq!(Cursor::present(), Ok(Some("3.18.25".into())));
    let _host = Fakes::default()
        .program("editor-version", version("3.18.25\n"))
        .program("agent-version", version("2026.09.18-9a7762b\n"))
        .start();
    assert_eq!(Cursor::present(), Ok(Some("2026.09.18-9a7762b".into())));
    let _host = Fakes::default().start();
    assert_eq!(Cursor::present(), Ok(None));
}

#[test]
fn a_fresh_install_has_nothing_to_complain_of() {
    for scope in BOTH {
        let host = folders().start();
        run(&host, &setup(Action::Install, scope));
        assert_eq!(complaints(scope), "", "{scope:?}");
    }
}

#[test]
fn a_check_says_what_is_wrong() {
    let check = |what: &str, fakes: Fakes, change: &dyn Fn(&FakeHost), expected: &str| {
        let host = fakes.start();
        run(&host, &setup(Action::Install, Scope::Project));
        change(&host);
        assert_eq!(complaints(Scope::Project), expected, "{what}");
    };
    let edit = |from: &'static str, to: &'static str| {
        move |host: &FakeHost| {
            let settings = host.text("project", ".cursor/hooks.json").expect("settings");
            assert!(settings.contains(from), "{settings}");
            host.write("project", ".cursor/hooks.json", settings.replacen(from, to, 1));
        }
    };
    check(
        "no server",
        folders(),
        &|host| host.write("project", ".cursor/mcp.json", "{}"),
        "broken: .cursor/mcp.json has no server named `relay-mesh`",
    );
    check(
        "an unknown event",
        folders(),
        &edit("\"stop\": [", "\"Stop\": ["),
        "broken: Cursor ignores all of .cursor/hooks.json: it names an event that Cursor does not know, `Stop`\n\
         broken: .cursor/hooks.json lacks our hooks for stop",
    );
    check(
        "a URL",
        folders(),
        &edit("\"stop\": [", "\"afterFileEdit\": [{\"command\": \"curl https://example.org\"}], \"stop\": ["),
        "broken: Cursor ignores all of .cursor/hooks.json: `curl https://example.org` contains `//`, which Cursor reads \
         as a comment",
    );
    check(
        "no number of the format",
        folders(),
        &edit("\"version\"", "\"revision\""),
        "broken: Cursor ignores all of .cursor/hooks.json: it has no `version`",
    );
    check(
        "a fault of syntax",
        folders(),
        &|host| host.write("project", ".cursor/hooks.json", "{\n  \"version\": 1\n  \"hooks\": {}\n}"),
        "broken: .cursor/hooks.json, line 2, column 15: Expected comma\n\
         broken: .cursor/hooks.json lacks our hooks for sessionStart, beforeSubmitPrompt, preToolUse, beforeMCPExecution, \
         postToolUse, postToolUseFailure, preCompact, stop, sessionEnd",
    );
    check(
        "an older matcher",
        folders(),
        &edit("Write|", ""),
        "warning: the hooks in .cursor/hooks.json for preToolUse are of another install",
    );
    check(
        "no rule",
        folders(),
        &|host| {
            let rule = host.text("project", ".cursor/rules/relay-mesh.mdc").expect("a rule");
            host.write(
                "project",
                ".cursor/rules/relay-mesh.mdc",
                rule.replace("alwaysApply: true", "alwaysApply: false"),
            );
        },
        "warning: .cursor/rules/relay-mesh.mdc is not read in every conversation",
    );
    check(
        "both scopes",
        folders(),
        &|host| {
            run(host, &setup(Action::Install, Scope::User));
        },
        "warning: relay-mesh is also installed for every project of this user, so hooks run twice here",
    );
    check(
        "an old command line that approved nothing",
        folders().program("agent-version", version("2026.04.01-abc\n")),
        &|_| {},
        "warning: Cursor's command line is 2026.04.01-abc, and its hooks are sure to work only since 2026.05.20\n\
         warning: Cursor's command line shows no approval of the server `relay-mesh`, and is silent without it",
    );
    check(
        "a command line that has approved it",
        folders().program("agent-version", version("2026.09.18-9a7762b\n")).file(
            "config",
            "projects/home-u-app/mcp-approvals.json",
            "[\"relay-mesh-0f3e\"]",
        ),
        &|_| {},
        "",
    );
}
