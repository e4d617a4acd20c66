//! Settings of Claude Code that turn our tools or hooks off, each tried with the real client: the doctor calls something
//! broken exactly where it is.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{ClaudeCode, Model, ModelAnswer, Script, Stage, isolated, own_etc, wait_for};

/// The file that has a setting.
#[derive(Clone, Copy, Debug)]
enum File {
    /// An administrator's, for this machine.
    Managed(&'static str),
    /// The user's own.
    User,
    /// The project's, which is committed.
    Shared,
    /// The project's, of this machine alone.
    Local,
}

const MANAGED: File = File::Managed("managed-settings.json");

/// What the doctor says of it, and what of us works in a session.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Works,
    /// Tools wait for their user, whom a headless session does not have.
    Asks(&'static str),
    NoTools(&'static str),
    NoHooks(&'static str),
    Nothing(&'static str),
}
use Verdict::{Asks, NoHooks, NoTools, Nothing, Works};

/// Where relay-mesh is set up.
#[derive(Clone, Copy)]
struct InstallScope {
    scope: &'static str,
    /// What its tools are called.
    tools: &'static str,
}

const PROJECT: InstallScope = InstallScope { scope: "--project", tools: "mcp__relay-mesh" };
const USER: InstallScope = InstallScope { scope: "--user", tools: "mcp__plugin_relay-mesh_relay-mesh" };

#[test]
fn what_is_denied_is_called_broken() {
    isolated(|| {
        let deny = |rule: &str| json!({"permissions": {"deny": [rule]}});
        let ask = |rule: &str| json!({"permissions": {"ask": [rule]}});
        tried(
            PROJECT,
            &[
                (File::User, json!({}), Works),
                (File::Local, deny("mcp__relay-mesh"), NoTools("settings.local.json denies our tools")),
                (File::User, deny("mcp__relay-mesh__*"), NoTools("settings.json denies our tools")),
                (File::Shared, deny("mcp__*"), NoTools("denies our tools")),
                (File::Shared, deny("mcp__relay-mesh__reg*"), NoTools("denies our tools")),
                (File::Shared, deny("mcp__relay-mesh__send_message"), Works),
                (File::User, deny("mcp__relay-mesh(*)"), Works),
                (File::User, ask("mcp__relay-mesh"), Asks("asks before our tools")),
                (MANAGED, deny("mcp__relay-mesh"), NoTools("ask your administrator")),
                (
                    File::Managed("managed-settings.d/10.json"),
                    deny("mcp__relay-mesh"),
                    NoTools("managed-settings.d/10.json"),
                ),
                (MANAGED, json!({"allowManagedPermissionRulesOnly": true}), Asks("lets only an administrator allow")),
                (File::Shared, json!({"permissions": {"defaultMode": "plan"}}), Asks("plan mode")),
            ],
        );
    });
}

#[test]
fn hooks_that_are_off_are_called_broken() {
    isolated(|| {
        tried(
            PROJECT,
            &[
                (File::User, json!({"disableAllHooks": true}), NoHooks("turns all hooks off")),
                (File::Shared, json!({"disableAllHooks": true}), NoHooks("turns all hooks off")),
                (
                    File::Managed("managed-settings.d/1.json"),
                    json!({"disableAllHooks": true}),
                    NoHooks("managed-settings.d/1.json"),
                ),
                (
                    MANAGED,
                    json!({"allowManagedHooksOnly": true}),
                    NoHooks("only hooks that an administrator installed"),
                ),
                (File::User, json!({"allowManagedHooksOnly": true}), Works),
                (MANAGED, json!({"strictPluginOnlyCustomization": true}), Nothing("only hooks of plugins")),
                (MANAGED, json!({"strictPluginOnlyCustomization": ["hooks"]}), NoHooks("only hooks of plugins")),
                (MANAGED, json!({"strictPluginOnlyCustomization": ["mcp"]}), NoTools("only MCP servers of plugins")),
                (File::User, json!({"strictPluginOnlyCustomization": true}), Works),
            ],
        );
    });
}

#[test]
fn a_server_that_is_not_allowed_is_called_broken() {
    isolated(|| {
        let named = |name: &str| json!({"serverName": name});
        let denied = |entry: Value| json!({"deniedMcpServers": [entry]});
        let allowed = |entries: &[Value]| json!({"allowedMcpServers": entries});
        let command = json!({"serverCommand": ["relay-mesh", "mcp"]});
        let other = json!({"serverCommand": ["other"]});
        tried(
            PROJECT,
            &[
                (MANAGED, denied(named("relay-mesh")), NoTools("denies the server `relay-mesh`")),
                (File::User, denied(named("relay-mesh")), NoTools("denies the server `relay-mesh`")),
                (File::Shared, denied(command.clone()), NoTools("denies the server `relay-mesh`")),
                (MANAGED, denied(named("other")), Works),
                (MANAGED, allowed(&[]), NoTools("does not allow the server `relay-mesh`")),
                (File::Local, allowed(&[named("other")]), NoTools("does not allow the server `relay-mesh`")),
                (MANAGED, allowed(&[named("relay-mesh")]), Works),
                (MANAGED, allowed(&[command]), Works),
                (MANAGED, allowed(&[named("relay-mesh"), other]), NoTools("`serverCommand`")),
                (File::Managed("managed-mcp.json"), json!({"mcpServers": {}}), NoTools("ours is not in it")),
                (File::User, json!({"disabledMcpjsonServers": ["relay-mesh"]}), NoTools("disables the server")),
            ],
        );
    });
}

/// `/mcp` notes it in a file that no adapter may read: the doctor looks at what the session runs.
#[test]
fn a_server_that_a_user_has_switched_off_is_noticed_at_its_session() {
    isolated(|| {
        for is_off in [true, false] {
            let stage = Arc::new(Stage::new(env!("CARGO_BIN_EXE_relay-mesh")));
            let project = stage.project_path();
            stage.relay_ok(&["install", "claude-code", "--project", &project, "--yes"]);
            let model = Model::start(Script::new().say("Good morning", "Good morning to you."));
            let client = ClaudeCode::new(&stage, &model);
            let own = stage.home.join(".claude/.claude.json");
            let mut settings: Value =
                serde_json::from_str(&std::fs::read_to_string(&own).expect("it is seeded")).expect("JSON");
            let off = if is_off { json!(["relay-mesh"]) } else { json!([]) };
            settings["projects"][&project]["disabledMcpServers"] = off;
            std::fs::write(&own, settings.to_string()).expect("the home is writable");
            let terminal = client.open();
            terminal.type_line("Good morning.");
            terminal.wait_for("● Good morning to you.");
            let doctor = || stage.run(&["doctor", "claude-code", "--project", &project]).stdout;
            let says = || doctor().contains("calls our hooks and runs no server of ours");
            if is_off {
                wait_for("the doctor says it", || says().then_some(()));
            } else {
                wait_for("our server runs", || our_server_runs().then_some(()));
                assert!(!says(), "{}", doctor());
            }
        }
    });
}

/// Whether the server that a client starts runs.
fn our_server_runs() -> bool {
    let entries = std::fs::read_dir("/proc").expect("there is a /proc").flatten();
    let mut lines = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.any(|line| line.contains("relay-mesh\0mcp"))
}

#[test]
fn of_a_users_own_install_the_same_is_said() {
    isolated(|| {
        let plugin = "plugin:relay-mesh:relay-mesh";
        let binary = Stage::new(env!("CARGO_BIN_EXE_relay-mesh")).binary().display().to_string();
        let command = json!({"serverCommand": [binary, "mcp"]});
        tried(
            USER,
            &[
                (File::User, json!({}), Works),
                (File::User, json!({"permissions": {"deny": [USER.tools]}}), NoTools("denies our tools")),
                (
                    MANAGED,
                    json!({"strictPluginOnlyCustomization": ["agents"]}),
                    Nothing("only plugins of a marketplace"),
                ),
                (MANAGED, json!({"strictKnownMarketplaces": []}), Nothing("some marketplaces")),
                (File::User, json!({"enabledPlugins": {"relay-mesh@skills-dir": false}}), Nothing("turns the plugin")),
                (MANAGED, json!({"deniedMcpServers": [{"serverName": plugin}]}), NoTools("denies the server")),
                (MANAGED, json!({"deniedMcpServers": [{"serverName": "relay-mesh"}]}), Works),
                (MANAGED, json!({"allowedMcpServers": [{"serverName": plugin}]}), NoTools("`serverCommand`")),
                (MANAGED, json!({"allowedMcpServers": [command]}), Works),
                (File::User, json!({"disabledMcpjsonServers": ["relay-mesh"]}), Works),
            ],
        );
    });
}

/// Tries each setting by itself, in a session of the real client.
#[track_caller]
fn tried(place: InstallScope, settings: &[(File, Value, Verdict)]) {
    own_etc();
    for (file, setting, verdict) in settings {
        let what = format!("{file:?} {setting}");
        let stage = Arc::new(Stage::new(env!("CARGO_BIN_EXE_relay-mesh")));
        let project = stage.project_path();
        let at: &[&str] = if place.scope == "--user" { &["--user"] } else { &["--project", &project] };
        stage.relay_ok(&[&["install", "claude-code", "--yes"], at].concat());
        drop(std::fs::remove_dir_all("/etc/claude-code"));
        file.set(&stage, setting);
        let works = session(&stage, place);
        let examined = stage.run(&["doctor", "claude-code"]);
        let told = &examined.stdout;
        let (expected, code, says) = match verdict {
            Works => ((true, true), 0, ""),
            Asks(says) => ((false, true), 0, *says),
            NoTools(says) => ((false, true), 1, *says),
            NoHooks(says) => ((true, false), 1, *says),
            Nothing(says) => ((false, false), 1, *says),
        };
        assert_eq!(works, expected, "{what}: tools and hooks in the real client");
        assert_eq!(examined.code, Some(code), "{what}: {told}");
        assert!(told.contains(says), "{what}: {told}");
    }
}

impl File {
    /// Sets something beside whatever the file has.
    fn set(self, stage: &Stage, setting: &Value) {
        let path = match self {
            File::Managed(name) => PathBuf::from("/etc/claude-code").join(name),
            File::User => stage.home.join(".claude/settings.json"),
            File::Shared => stage.project.join(".claude/settings.json"),
            File::Local => stage.project.join(".claude/settings.local.json"),
        };
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("the room is writable");
        let before = std::fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
        let mut settings: Value = serde_json::from_str(&before).expect("settings are JSON");
        for (key, value) in setting.as_object().expect("settings are an object") {
            match (settings.get_mut(key).and_then(Value::as_object_mut), value.as_object()) {
                (Some(there), Some(more)) => there.extend(more.clone()),
                _ => settings[key] = value.clone(),
            }
        }
        std::fs::write(&path, settings.to_string()).expect("the room is writable");
    }
}

/// Whether our tools and our hooks work in a session: its agent registers, and gets its mail at the turn's end.
fn session(stage: &Arc<Stage>, place: InstallScope) -> (bool, bool) {
    let mail = Arc::clone(stage);
    let model = Model::start(
        Script::new()
            .call("Join the mesh", &format!("{}__register_agent", place.tools), json!({"name": "alice"}))
            .answer_with("alice", move |_| {
                mail.relay_ok(&["send", "alice", "One more thing."]);
                ModelAnswer::Say("I am done.".to_owned())
            })
            .say("One more thing", "Now I am done."),
    );
    let run = ClaudeCode::new(stage, &model).ask("Join the mesh.", &[]);
    if stage.relay_ok(&["agents", "--json"]).contains("\"alice\"") {
        return (true, run.result == "Now I am done.");
    }
    // Without an agent, a hook leaves the record of its session.
    let records = ["sessions", "ended"].map(|kind| stage.data.join(kind).join("claude-code"));
    (false, records.iter().any(|folder| std::fs::read_dir(folder).is_ok_and(|mut found| found.next().is_some())))
}
