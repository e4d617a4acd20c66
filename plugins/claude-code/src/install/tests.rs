//! Install plans, applied to folders in memory as the host would apply them.

use relay_mesh_sdk::install::{Action, Scope, Setup};
use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::testing::{self, FakeHost, Fakes, carry_out, setup};
use relay_mesh_sdk::{Error, Install};

use crate::ClaudeCode;

const SETTINGS: &str = ".claude/settings.local.json";

fn folders() -> Fakes {
    let version = ProgramOutput { exit_code: 0, stdout: b"2.1.329 (Claude Code)\n".to_vec(), stderr: Vec::new() };
    Fakes::default()
        .root("project")
        .root("config")
        .root("managed")
        .program("claude-version", move |_, _| version.clone())
}

#[track_caller]
fn run(host: &FakeHost, setup: &Setup) -> String {
    carry_out::<ClaudeCode>(host, setup)
}

#[test]
fn an_install_writes_what_people_were_shown() {
    for (name, plan) in testing::install_plans::<ClaudeCode>(folders) {
        insta::assert_snapshot!(name, plan);
    }
}

/// Another program's hooks, in a file with the line breaks of another system.
const HOOKED: &str = "{\r\n  \"hooks\": {\r\n    \"Stop\": [\r\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"say done\" }] }\r\n    ]\r\n  }\r\n}\r\n";

#[test]
fn installed_twice_changes_nothing_and_removed_leaves_every_byte() {
    for scope in [Scope::Project, Scope::User] {
        for theirs in testing::SETTINGS.iter().chain([&HOOKED]) {
            let machine = folders()
                .file("project", SETTINGS, *theirs)
                .file(
                    "project",
                    ".mcp.json",
                    "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"other\" }\n  }\n}\n",
                )
                .file("config", "settings.json", *theirs);
            testing::leaves_every_byte::<ClaudeCode>(machine, scope);
        }
    }
}

#[test]
fn a_newer_install_takes_the_place_of_an_older_one() {
    let host = folders().start();
    let older = Setup { program: vec!["/old/relay-mesh".into()], ..setup(Action::Install, Scope::Project) };
    run(&host, &older);
    run(&host, &setup(Action::Install, Scope::Project));
    let settings = host.text("project", SETTINGS).expect("settings");
    assert!(!settings.contains("/old/"), "{settings}");
    assert_eq!(settings.matches("SessionStart").count(), 2, "one key and one argument");
}

/// The settings file of a scope, in which Claude Code's variables are.
fn settings_of(scope: Scope) -> (&'static str, &'static str) {
    match scope {
        Scope::Project => ("project", SETTINGS),
        Scope::User => ("config", "settings.json"),
    }
}

#[test]
fn an_older_data_folder_is_found_and_goes_with_the_next_install() {
    for scope in [Scope::Project, Scope::User] {
        let host = folders().start();
        let usual = |action| Setup { environment: Vec::new(), ..setup(action, scope) };
        run(&host, &setup(Action::Install, scope));
        let found = testing::complaints(&ClaudeCode::check(&usual(Action::Install)).expect("it is checked"));
        let (root, path) = settings_of(scope);
        let words = format!(
            "agents are in another mesh than this command line: their data folder is `/srv/relay`, by {path}, "
        );
        assert!(found.contains(&words), "{scope:?}: {found}");

        run(&host, &usual(Action::Install));
        let settings = host.text(root, path).expect("settings");
        assert!(!settings.contains("RELAY_DIR"), "{scope:?}: {settings}");
        assert_eq!(run(&host, &usual(Action::Install)), "", "{scope:?}: a second install changes nothing");
        let found = testing::complaints(&ClaudeCode::check(&usual(Action::Install)).expect("it is checked"));
        assert_eq!(found, "", "{scope:?}");
        let found = complaints(scope);
        assert!(found.contains("their data folder is the usual one, "), "{scope:?}: {found}");

        // A removal finds one that it does not name.
        run(&host, &setup(Action::Install, scope));
        run(&host, &usual(Action::Remove));
        assert_eq!(host.text(root, path), None, "{scope:?}");
    }
}

#[test]
fn a_data_folder_of_the_users_own_is_not_ours_to_remove() {
    for scope in [Scope::Project, Scope::User] {
        let (root, path) = settings_of(scope);
        for own in ["/mine", "/srv/relay"] {
            let text = format!("{{\n  \"env\": {{ \"RELAY_DIR\": \"{own}\" }}\n}}\n");
            let host = folders().file(root, path, text.as_str()).start();
            assert_eq!(run(&host, &setup(Action::Remove, scope)), "", "{scope:?}: nothing of ours is there");
            assert!(!complaints(scope).contains("another mesh"), "{scope:?}");
            assert_eq!(host.text(root, path).as_deref(), Some(text.as_str()), "{scope:?}");
        }
    }
}

#[test]
fn what_others_wrote_in_between_stays() {
    let host = folders().start();
    run(&host, &setup(Action::Install, Scope::Project));
    let settings = host.text("project", SETTINGS).expect("settings");
    let edited = settings.replace("\"mcp__relay-mesh\"", "\"mcp__relay-mesh\", \"WebFetch\"").replacen(
        "\"hooks\": [\n",
        "\"hooks\": [\n          { \"type\": \"command\", \"command\": \"mine\" },\n",
        1,
    );
    assert_ne!(settings, edited);
    host.write("project", SETTINGS, edited);
    let skill = ".claude/skills/relay-mesh/SKILL.md";
    let changed = host.text("project", skill).expect("a skill").replace("Weigh it", "Weigh it well");
    host.write("project", skill, changed);
    insta::assert_snapshot!(run(&host, &setup(Action::Remove, Scope::Project)));
    assert!(host.text("project", skill).is_some(), "a changed skill is the person's");
}

#[test]
fn a_broken_file_is_named_and_nothing_is_planned() {
    let refused = |path: &str, text: &str| {
        let _host = folders().file("project", path, text).start();
        match ClaudeCode::propose(&setup(Action::Install, Scope::Project)) {
            Err(Error::Failed(what)) => what,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refused(SETTINGS, "{\n  \"model\": opus\n}"),
        ".claude/settings.local.json, line 2, column 12: Unexpected word"
    );
    assert_eq!(refused(SETTINGS, "{\"hooks\": []}"), ".claude/settings.local.json, line 1: `hooks` is not an object");
    assert_eq!(
        refused(".mcp.json", "{\"mcpServers\": {\"relay-mesh\": {\"command\": \"theirs\"}}}"),
        ".mcp.json, `mcpServers.relay-mesh`: another server already has this name; rename it first"
    );
}

#[test]
fn a_name_that_cannot_stand_in_a_tools_name_is_refused() {
    let _host = folders().start();
    let setup = Setup { server_name: "relay mesh.*".into(), ..setup(Action::Install, Scope::Project) };
    assert!(matches!(ClaudeCode::propose(&setup), Err(Error::Failed(what)) if what.contains("`relay mesh.*`")));
}

#[test]
fn the_version_is_the_clients_own() {
    let _host = folders().start();
    assert_eq!(ClaudeCode::present(), Ok(Some("2.1.329".into())));
    let _host = Fakes::default().start();
    assert_eq!(ClaudeCode::present(), Ok(None));
}

fn complaints(scope: Scope) -> String {
    testing::complaints(&ClaudeCode::check(&setup(Action::Install, scope)).expect("it is checked"))
}

#[test]
fn a_fresh_install_has_nothing_to_complain_of() {
    for scope in [Scope::Project, Scope::User] {
        let host = folders().start();
        run(&host, &setup(Action::Install, scope));
        assert_eq!(complaints(scope), "", "{scope:?}");
    }
}

#[test]
fn a_check_says_what_is_wrong() {
    let installed = || {
        let host = folders().start();
        run(&host, &setup(Action::Install, Scope::Project));
        host
    };
    let check = |what: &str, change: &dyn Fn(&FakeHost), expected: &str| {
        let host = installed();
        change(&host);
        assert_eq!(complaints(Scope::Project), expected, "{what}");
    };
    let edit = |from: &'static str, to: &'static str| {
        move |host: &FakeHost| {
            let settings = host.text("project", SETTINGS).expect("settings");
            assert!(settings.contains(from), "{settings}");
            host.write("project", SETTINGS, settings.replace(from, to));
        }
    };
    check(
        "no server",
        &|host| host.write("project", ".mcp.json", "{}"),
        "broken: .mcp.json has no server named `relay-mesh`",
    );
    check(
        "an older server",
        &|host| {
            let servers = host.text("project", ".mcp.json").expect("servers");
            host.write("project", ".mcp.json", servers.replace("\"mcp\"", "\"mcp\", \"--old\""));
        },
        "warning: the server `relay-mesh` in .mcp.json is of another install",
    );
    check(
        "an older program",
        &edit("/opt/bin/relay-mesh", "/old/relay-mesh"),
        "warning: the hooks in .claude/settings.local.json for SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, \
         PermissionRequest, Elicitation, ElicitationResult, Notification, Stop, SubagentStop, CwdChanged, FileChanged, SessionEnd \
         are of another install",
    );
    check(
        "a hook missing",
        &edit("\"FileChanged\": [", "\"Other\": ["),
        "broken: .claude/settings.local.json lacks our hooks for FileChanged",
    );
    check(
        "hooks turned off",
        &|host| host.write("config", "settings.json", "{\"disableAllHooks\": true}"),
        "broken: settings.json turns all hooks off",
    );
    check(
        "an administrator",
        &|host| host.write("managed", "managed-settings.json", "{\"allowManagedHooksOnly\": true}"),
        "broken: managed-settings.json of this machine allows only hooks that an administrator installed",
    );
    check(
        "the server refused",
        &|host| host.write("project", ".claude/settings.json", "{\"disabledMcpjsonServers\": [\"relay-mesh\"]}"),
        "broken: .claude/settings.json disables the server `relay-mesh`",
    );
    check(
        "not approved",
        &edit("enabledMcpjsonServers", "someServers"),
        "warning: Claude Code asks whether to use the server `relay-mesh` when a session starts",
    );
    check(
        "both scopes",
        &|host| {
            run(host, &setup(Action::Install, Scope::User));
        },
        "warning: relay-mesh is also installed for every project of this user, so hooks run twice here",
    );
    check(
        "set up by hand",
        &|host| host.write("config", ".claude.json", "{\"mcpServers\": {\"mesh\": {\"command\": \"relay-mesh\"}}}"),
        "warning: relay-mesh is also set up by hand for this user, as the server `mesh`",
    );
    check(
        "a comment",
        &edit("{\n  \"hooks\"", "{\n  // mine\n  \"hooks\""),
        "broken: .claude/settings.local.json is not plain JSON, so Claude Code ignores it: key must be a string at line 2 column 3",
    );
}

/// What Claude Code writes when a plugin is installed.
fn with_plugin(machine: Fakes) -> Fakes {
    machine
        .file("config", "plugins/installed_plugins.json", "{\"version\":2,\"plugins\":{\"relay-mesh@here\":[{}]}}")
        .file("config", "settings.json", "{\"enabledPlugins\":{\"relay-mesh@here\":true}}")
}

#[test]
fn a_plugin_of_a_marketplace_takes_the_place_of_an_install_for_the_user() {
    let host = with_plugin(folders()).start();
    let before = host.text("config", "settings.json");
    let said = run(&host, &setup(Action::Install, Scope::User));
    assert!(said.contains("first run: claude plugin uninstall relay-mesh@here"), "{said}");
    let removed = run(&host, &setup(Action::Remove, Scope::User));
    assert!(removed.contains("removes itself: claude plugin uninstall relay-mesh@here"), "{removed}");
    assert_eq!(host.text("config", "settings.json"), before);
    assert!(host.text("config", super::user::MANIFEST).is_none());
    // This machine has no `relay-mesh` on its PATH.
    let path = "warning: `relay-mesh` is not on your PATH, and the plugin runs it by its name";
    let permission =
        "warning: Claude Code asks before each tool of the mesh: no settings allow `mcp__plugin_relay-mesh_relay-mesh`";
    assert_eq!(complaints(Scope::User), format!("{path}\n{permission}"));
    let allowed = "{\"permissions\":{\"allow\":[\"mcp__plugin_relay-mesh_relay-mesh\"]},\"enabledPlugins\":{\"relay-mesh@here\":true}}";
    host.write("config", "settings.json", allowed);
    assert_eq!(complaints(Scope::User), path);
}

#[test]
fn a_plugin_beside_an_install_is_told() {
    for (scope, name) in [(Scope::Project, "in this project"), (Scope::User, "--user")] {
        let host = folders().start();
        run(&host, &setup(Action::Install, scope));
        let settings = host.text("config", "settings.json").unwrap_or_else(|| "{}".to_owned());
        let mut value: serde_json::Value = serde_json::from_str(&settings).expect("JSON");
        value["enabledPlugins"]["relay-mesh@here"] = true.into();
        host.write("config", "settings.json", value.to_string());
        assert_eq!(complaints(scope), "", "{name}: it is switched on, and not installed");
        host.write("config", "plugins/installed_plugins.json", "{\"plugins\":{\"relay-mesh@here\":[{}]}}".to_owned());
        let both = "warning: relay-mesh is also the plugin `relay-mesh@here`, which settings.json switches on, so each hook starts twice here";
        assert_eq!(complaints(scope), both, "{name}");
        let said = run(&host, &setup(Action::Install, scope));
        assert!(said.contains("`claude plugin uninstall relay-mesh@here` removes the plugin"), "{said}");
        // The project's own settings decide before the user's.
        host.write("project", ".claude/settings.json", "{\"enabledPlugins\":{\"relay-mesh@here\":false}}".to_owned());
        assert_eq!(complaints(scope), "", "{name}: it is switched off here");
    }
}
