//! Install plans, applied to folders in memory as the host would apply them.

use relay_mesh_sdk::install::{Action, Scope, Server, Setup};
use relay_mesh_sdk::programs::ProgramOutput;
use relay_mesh_sdk::testing::{self, FakeHost, Fakes, carry_out, complaints, leaves_every_byte, setup};
use relay_mesh_sdk::{Error, Install};

use crate::payload::Source;
use crate::{Codex, terminals};

const CONFIG: &str = ".codex/config.toml";
const HOOKS: &str = ".codex/hooks.json";

fn folders() -> Fakes {
    folders_of("codex-cli 0.169.0")
}

fn folders_of(version: &str) -> Fakes {
    let version = ProgramOutput { exit_code: 0, stdout: version.into(), stderr: Vec::new() };
    Fakes::default()
        .root("project")
        .root("config")
        .deserted("app-server")
        .program("codex-version", move |_, _| version.clone())
}

fn run(host: &FakeHost, setup: &Setup) -> String {
    carry_out::<Codex>(host, setup)
}

#[test]
fn an_install_writes_what_people_were_shown() {
    for (name, plan) in testing::install_plans::<Codex>(folders) {
        insta::assert_snapshot!(name, plan);
    }
}

/// Typical settings files. An install and a removal must leave each of them as it was.
const THEIRS: &[&str] = &[
    "",
    "model = \"gpt-5.5\"\n",
    "# mine\nmodel = \"gpt-5.5\" # the good one\n\n[features]\nweb = true\n\n# about servers\n[mcp_servers.other]\ncommand = \"other\"\nargs = [\"a\"] # why\n\n[mcp_servers.other.env]\nA = \"1\"\n",
    "[projects.\"/home/u/app\"]\r\ntrust_level = \"trusted\"\r\n",
    "notify = [\"say\"]",
    "[hooks.state.\"/x/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n",
];

#[test]
fn installed_twice_changes_nothing_and_removed_leaves_every_byte() {
    for scope in [Scope::Project, Scope::User] {
        for theirs in THEIRS {
            let hooks =
                "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]}}\n";
            let machine = folders()
                .file("project", CONFIG, *theirs)
                .file("project", HOOKS, hooks)
                .file("project", "AGENTS.md", "# Rules\n\nBe kind.")
                .file("config", "config.toml", *theirs);
            leaves_every_byte::<Codex>(machine, scope);
        }
    }
}

#[test]
fn a_newer_install_takes_the_place_of_an_older_one() {
    let host = folders().start();
    let server = Server::Http("http://127.0.0.1:7423/mcp".into());
    let older = Setup { server, program: vec!["/old/relay-mesh".into()], ..setup(Action::Install, Scope::Project) };
    run(&host, &older);
    let config = host.text("project", CONFIG).expect("settings") + "startup_timeout_sec = 20\n";
    host.write("project", CONFIG, config);
    run(&host, &setup(Action::Install, Scope::Project));
    let config = host.text("project", CONFIG).expect("settings");
    assert!(!config.contains("url") && !config.contains("bearer"), "Codex refuses both in one server: {config}");
    assert!(config.contains("startup_timeout_sec = 20\n"), "what the person added stays: {config}");
    let hooks = host.text("project", HOOKS).expect("hooks");
    assert!(!hooks.contains("/old/"), "{hooks}");
    assert_eq!(hooks.matches("hook codex Stop").count(), 1, "{hooks}");
}

#[test]
fn a_file_that_cannot_be_read_or_is_taken_is_named_and_nothing_is_planned() {
    let refused = |path: &str, text: &str| {
        let _host = folders().file("project", path, text).start();
        match Codex::propose(&setup(Action::Install, Scope::Project)) {
            Err(Error::Failed(what)) => what,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        refused(CONFIG, "a = 1\nb = = 2\n"),
        ".codex/config.toml, line 2, column 5: extra `=`, expected nothing"
    );
    assert_eq!(
        refused(CONFIG, "[mcp_servers.relay-mesh]\ncommand = \"theirs\"\n"),
        ".codex/config.toml, `mcp_servers.relay-mesh`: another server already has this name; rename it first"
    );
    assert_eq!(refused(HOOKS, "{\"hooks\": []}"), ".codex/hooks.json, line 1: `hooks` is not an object");
    assert_eq!(
        refused("AGENTS.md", "<!-- relay-mesh codex: begin -->\n"),
        "AGENTS.md, line 1, column 1: a block of relay-mesh begins here and has no line `<!-- relay-mesh codex: end -->`; add that line, or remove the block"
    );
}

#[test]
fn what_a_team_commits_names_nothing_of_this_machine() {
    let host = folders().start();
    run(&host, &setup(Action::Install, Scope::Project));
    for (path, bytes) in host.files() {
        let text = String::from_utf8(bytes).expect("text");
        assert!(!text.contains("/opt/") && !text.contains("/srv/"), "{path}: {text}");
    }
    let config = host.text("project", CONFIG).expect("settings");
    assert!(config.contains("env_vars = [\"RELAY_DIR\", \"CODEX_HOME\""), "by name: {config}");
}

/// The complaints of a check on this host.
fn found(_host: &FakeHost) -> String {
    complaints(&Codex::check(&setup(Action::Install, Scope::Project)).expect("it is checked"))
}

/// Trust for every hook of the project, as Codex writes it.
fn trusting() -> String {
    let events = [
        "session_start",
        "user_prompt_submit",
        "pre_model_request",
        "pre_tool_use",
        "permission_request",
        "post_tool_use",
        "subagent_start",
        "subagent_stop",
        "stop",
        "interrupt",
        "session_end",
    ];
    let trust = |event: &&str| {
        format!("[hooks.state.\"/home/u/app/.codex/hooks.json:{event}:0:0\"]\ntrusted_hash = \"sha256:1\"\n")
    };
    events.iter().map(trust).collect()
}

fn installed() -> FakeHost {
    let host = folders().file("config", "config.toml", trusting()).start();
    run(&host, &setup(Action::Install, Scope::Project));
    host
}

#[test]
fn an_install_whose_hooks_are_trusted_has_nothing_to_complain_of() {
    assert_eq!(found(&installed()), "");
}

#[test]
fn a_check_says_what_is_wrong() {
    let check = |what: &str, change: &dyn Fn(&FakeHost), expected: &str| {
        let host = installed();
        change(&host);
        assert_eq!(found(&host), expected, "{what}");
    };
    let edit = |path: &'static str, from: &'static str, to: &'static str| {
        move |host: &FakeHost| {
            let text = host.text("project", path).expect("settings");
            assert!(text.contains(from), "{text}");
            host.write("project", path, text.replace(from, to));
        }
    };
    check(
        "no server",
        &|host| host.write("project", CONFIG, ""),
        "broken: .codex/config.toml has no server named `relay-mesh`",
    );
    check(
        "an older server",
        &edit(CONFIG, "\"relay-mesh\"", "\"/old/relay-mesh\""),
        "warning: the server `relay-mesh` in .codex/config.toml is of another install",
    );
    check(
        "somebody else's server",
        &|host| host.write("project", CONFIG, "[mcp_servers.relay-mesh]\ncommand = \"theirs\"\n"),
        "broken: the server named `relay-mesh` in .codex/config.toml is not relay-mesh's",
    );
    check(
        "switched off",
        &edit(CONFIG, "args = ", "enabled = false\nargs = "),
        "broken: .codex/config.toml switches the server `relay-mesh` off",
    );
    check(
        "broken settings",
        &|host| host.write("project", CONFIG, "a = = 1\n"),
        "broken: .codex/config.toml, line 1, column 5: extra `=`, expected nothing",
    );
    check(
        "a hook missing",
        &edit(HOOKS, "\"Stop\": [", "\"PreCompact\": ["),
        "broken: .codex/hooks.json lacks our hooks for Stop\n\
         warning: Codex does not run our hooks for PreCompact: you have not trusted them yet",
    );
    check(
        "hooks that nobody trusts",
        &|host| host.write("config", "config.toml", trusting().replace("json:stop", "json:other")),
        "warning: Codex does not run our hooks for Stop: you have not trusted them yet",
    );
    check(
        "hooks switched off",
        &|host| host.write("config", "config.toml", trusting() + "[features]\nhooks = false\n"),
        "broken: Codex's settings switch all hooks off",
    );
    check(
        "an app server for each terminal",
        &|host| host.write("config", "config.toml", trusting() + "[features]\ndaemon_auto_start = false\n"),
        "warning: Codex's settings give each terminal an app server of its own, so an idle one gets mail only \
         from its queue, which it reads every ten seconds",
    );
    check(
        "a terminal with an app server of its own",
        &|_| drop(terminals::enter("t1", "/w", Source::Startup, Some("7.1"))),
        "warning: a Codex session runs an app server of its own, so an idle one gets mail only from its \
         queue, which it reads every ten seconds",
    );
    check(
        "a comment",
        &edit(HOOKS, "{\n  \"hooks\"", "{\n  // mine\n  \"hooks\""),
        "broken: .codex/hooks.json is not plain JSON, so Codex ignores it: key must be a string at line 2 column 3",
    );
    check(
        "both scopes",
        &|host| {
            run(host, &setup(Action::Install, Scope::User));
        },
        "warning: relay-mesh is also installed for every project of this user, so hooks run twice here",
    );
    check(
        "a socket that was left",
        &|host| host.write("config", "app-server-control/app-server-control.sock", ""),
        "warning: Codex's app server has left a socket on which it no longer listens",
    );
}

#[test]
fn an_old_version_is_told_apart() {
    for (version, expected) in [
        ("codex-cli 0.153.9", "is older than 0.154"),
        ("codex-cli 0.154.0", "may give each terminal an app server of its own"),
        ("codex-cli 0.160.0", ""),
        ("codex-cli 0.169.0", "does not run our hooks for PreModelRequest"),
    ] {
        let trusts = trusting().replace("pre_model_request", "another_event");
        let host = folders_of(version).file("config", "config.toml", trusts).start();
        run(&host, &setup(Action::Install, Scope::Project));
        let found = found(&host);
        assert!(found.contains(expected) && found.is_empty() == expected.is_empty(), "{version}: {found}");
    }
    let _host = Fakes::default().start();
    assert_eq!(Codex::present(), Ok(None));
}

/// What Codex writes when a plugin is installed, and when the user trusts its first hook.
const WITH_PLUGIN: &str = "[plugins.\"relay-mesh@here\"]\nenabled = true\n";
const TRUSTED: &str =
    "\n[hooks.state.\"relay-mesh@here:hooks/hooks.json:session_start:0:0\"]\ntrusted_hash = \"sha256:0\"\n";

#[test]
fn a_plugin_of_a_marketplace_takes_the_place_of_an_install_for_the_user() {
    let host = folders().file("config", "config.toml", WITH_PLUGIN).start();
    let said = run(&host, &setup(Action::Install, Scope::User));
    assert!(said.contains("first run: codex plugin remove relay-mesh@here"), "{said}");
    let removed = run(&host, &setup(Action::Remove, Scope::User));
    assert!(removed.contains("removes itself: codex plugin remove relay-mesh@here"), "{removed}");
    assert_eq!(host.text("config", "config.toml").as_deref(), Some(WITH_PLUGIN));
    let untrusted =
        "warning: Codex does not run the hooks of the plugin `relay-mesh@here`: you have not trusted them yet";
    assert!(told(Scope::User).contains(untrusted), "{}", told(Scope::User));
    host.write("config", "config.toml", format!("{WITH_PLUGIN}{TRUSTED}"));
    assert!(!told(Scope::User).contains("trusted"), "{}", told(Scope::User));
}

#[test]
fn a_plugin_beside_an_install_is_told() {
    for scope in [Scope::Project, Scope::User] {
        let host = folders().start();
        run(&host, &setup(Action::Install, scope));
        let config = host.text("config", "config.toml").unwrap_or_default();
        host.write("config", "config.toml", format!("{config}\n{WITH_PLUGIN}"));
        let both = "warning: relay-mesh is also the plugin `relay-mesh@here`, so each hook starts twice here";
        assert!(told(scope).contains(both), "{}", told(scope));
        let said = run(&host, &setup(Action::Install, scope));
        assert!(said.contains("`codex plugin remove relay-mesh@here` removes the plugin"), "{said}");
        host.write("config", "config.toml", format!("{config}\n{}", WITH_PLUGIN.replace("true", "false")));
        assert!(!told(scope).contains("plugin"), "it is switched off: {}", told(scope));
    }
}

fn told(scope: Scope) -> String {
    complaints(&Codex::check(&setup(Action::Install, scope)).expect("it is checked"))
}
