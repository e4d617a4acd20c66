//! The plugin bundle that `make dist` packs: the real clients accept it from a local marketplace, it does there what
//! `relay-mesh install` does, and the two beside each other lose nothing and show nothing twice. Only the models are
//! scripted.

#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use test_support::{
    Answer, ClaudeCode, Codex, DeliveryHistory, Model, Program, Script, Stage, Terminal, agents, isolated, search_path,
    send, session_of,
};

/// The target for which a binary is packed that is none of a release.
const TARGET: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-musl" } else { "x86_64-unknown-linux-musl" };
/// How Claude Code names a tool of the plugin's server, and the permission to run all of them.
const PLUGIN_TOOLS: &str = "mcp__plugin_relay-mesh_relay-mesh";
const ID: &str = "relay-mesh@relay-mesh";

#[test]
fn the_bundle_is_what_an_install_writes_and_the_same_twice() {
    isolated(|| {
        let stage = stage();
        let sums: Vec<String> = [("one", "022", "UTC"), ("two", "077", "Asia/Tokyo")]
            .map(|(name, mask, zone)| {
                let out = stage.folder.join(name);
                pack(&stage, &out, &[("TZ", zone)], mask);
                read(&out.join("SHA256SUMS"))
            })
            .to_vec();
        assert_eq!(sums[0].lines().count(), 2, "the bundle and server.json\n{}", sums[0]);
        assert_eq!(sums[0], sums[1]);

        let bundle = unpacked(&stage);
        for (path, content) in stage.tree(&bundle) {
            let text = String::from_utf8(content).expect("text");
            for word in [stage.folder.to_str(), stage.binary().to_str(), Some("relay-mesh wrote this file")] {
                assert!(!text.contains(word.expect("a path")), "{}: {text}", path.display());
            }
        }
        stage.relay_ok(&["install", "claude-code", "--project", ".", "--yes"]);
        stage.relay_ok(&["install", "codex", "--project", ".", "--yes"]);
        let own = |path: &str| read(&stage.project.join(path));
        let of_bundle = |path: &str| read(&bundle.join(path));
        assert_eq!(of_bundle("claude-code/.mcp.json"), own(".mcp.json"));
        assert_eq!(of_bundle("codex/hooks/hooks.json"), own(".codex/hooks.json"));
        for (skill, installed) in [
            ("claude-code/skills/relay-mesh/SKILL.md", ".claude/skills/relay-mesh/SKILL.md"),
            ("codex/skills/relay-mesh/SKILL.md", ".codex/skills/relay-mesh/SKILL.md"),
            ("agent-plugin/skills/relay-mesh/SKILL.md", ".claude/skills/relay-mesh/SKILL.md"),
            ("claude-code/commands/relay-status.md", ".claude/commands/relay-status.md"),
        ] {
            assert!(own(installed).starts_with(&of_bundle(skill)), "{skill}");
        }
        let settings: Value = serde_json::from_str(&own(".claude/settings.local.json")).expect("JSON");
        let hooks: Value = serde_json::from_str(&of_bundle("claude-code/hooks/hooks.json")).expect("JSON");
        assert_eq!(lines_of(&hooks), lines_of(&settings), "each hook, with its matcher and its arguments");
        assert_eq!(lines_of(&hooks).len(), 13);

        let entry: Value = serde_json::from_str(&read(&stage.folder.join("one/server.json"))).expect("JSON");
        let packages: Vec<_> = entry["packages"].as_array().expect("a list").iter().collect();
        let of = |key: &str| packages.iter().map(|package| package[key].as_str().expect("text")).collect::<Vec<_>>();
        assert_eq!((of("registryType"), of("runtimeHint")), (vec!["npm", "pypi"], vec!["npx", "uvx"]));
        assert_eq!(entry["version"], env!("CARGO_PKG_VERSION"));
    });
}

#[test]
fn claude_code_takes_the_bundle_and_its_agent_is_woken() {
    isolated(|| {
        let stage = Arc::new(stage());
        let bundle = unpacked(&stage);
        let model = Model::start(joining("alice", PLUGIN_TOOLS).say("Are you there?", "I am here."));
        let client = ClaudeCode::new(&stage, &model);
        let plugin = bundle.join("claude-code").display().to_string();
        claude(&client, &stage, &["plugin", "validate", &bundle.display().to_string(), "--strict"]);
        claude(&client, &stage, &["plugin", "validate", &plugin, "--profile", "directory"]);
        add_to_claude_code(&client, &stage, &bundle);
        let servers = claude(&client, &stage, &["mcp", "list"]);
        assert!(servers.contains("plugin:relay-mesh:relay-mesh: relay-mesh mcp - ✔ Connected"), "{servers}");

        let terminal = client.open();
        terminal.type_line("Join the mesh as alice.");
        says(&terminal, "I am alice.");
        let id = send(&stage, "alice", "Are you there?");
        says(&terminal, "I am here.");
        let history = DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(history.carried_by().as_deref(), Some("hook:FileChanged"), "it was woken");
        model.has_message_once(&id);
        drop(terminal);

        claude(&client, &stage, &["plugin", "uninstall", ID]);
        let doctor = client.run(&["doctor", "claude-code"]).stdout;
        assert!(!doctor.contains("plugin"), "it is gone: {doctor}");
    });
}

#[test]
fn a_plugin_and_an_install_for_the_project_show_claude_code_everything_once() {
    // It starts the same command once, under the name in the project's own list.
    isolated(|| beside_an_install(&["--project", "."], ["mcp__relay-mesh"; 2]));
}

#[test]
fn a_plugin_and_an_install_with_another_server_show_claude_code_everything_once() {
    let tools = ["--project", ".", "--tools", "core,reservations"];
    isolated(|| beside_an_install(&tools, [PLUGIN_TOOLS, "mcp__relay-mesh"]));
}

#[test]
fn a_plugin_and_an_install_for_the_user_show_claude_code_everything_once() {
    // Both are a plugin of this name.
    isolated(|| beside_an_install(&["--user"], [PLUGIN_TOOLS; 2]));
}

/// Sets it up in both ways, and registers by the tools of each. Mail comes while a tool
/// runs, at the end of a turn, and while the session is idle.
fn beside_an_install(scope: &[&str], tools: [&str; 2]) {
    let stage = Arc::new(stage());
    stage.relay_ok(&[&["install", "claude-code", "--yes"], scope].concat());
    let (busy, ending) = (Arc::clone(&stage), Arc::clone(&stage));
    let readme = stage.project.join("README.md");
    let model = Model::start(
        Script::new()
            .call("Join the mesh", &format!("{}__register_agent", tools[0]), json!({"name": "alice"}))
            .call("\"name\":\"alice\"", &format!("{}__register_agent", tools[1]), json!({"name": "alice"}))
            .answer_with("\"name\":\"alice\"", move |_| {
                send(&busy, "alice", "Sent while she works.");
                Answer::Call { tool: "Read".to_owned(), input: json!({"file_path": readme}) }
            })
            .answer_with("Sent while she works.", move |_| {
                send(&ending, "alice", "Sent at the end.");
                Answer::Say("I am alice.".to_owned())
            })
            .say("Sent at the end.", "Now I am done.")
            .say("Sent while she sleeps.", "I am awake."),
    );
    let client = ClaudeCode::new(&stage, &model);
    add_to_claude_code(&client, &stage, &unpacked(&stage));
    let terminal = client.open();
    terminal.type_line("Join the mesh as alice.");
    says(&terminal, "Now I am done.");
    send(&stage, "alice", "Sent while she sleeps.");
    says(&terminal, "I am awake.");
    model.wait_until_spoken();
    for body in ["Sent while she works.", "Sent at the end.", "Sent while she sleeps."] {
        assert_eq!(model.times_told(body), 1, "{body}");
    }
    assert_eq!(agents(&stage), ["alice"], "registered once");
    assert!(session_of(&stage, "alice").is_some(), "and bound to the session");

    let doctor = client.run(&["doctor", "claude-code"]).stdout;
    let both = format!("relay-mesh is also the plugin `{ID}`, which settings.json switches on");
    let fix = format!("fix: run `claude plugin uninstall {ID}`, or `relay-mesh uninstall claude-code");
    assert!(doctor.contains(&both) && doctor.contains(&fix), "{doctor}");
    let again = client.run(&[&["install", "claude-code", "--yes"], scope].concat()).stderr;
    assert!(again.contains(&format!("the plugin `{ID}` too")), "an install says it: {again}");
}

#[test]
fn an_install_for_the_user_leaves_it_to_the_plugin() {
    isolated(|| {
        let stage = stage();
        let bundle = unpacked(&stage);
        let model = Model::start(Script::new());
        let (claude_code, codex) = (ClaudeCode::new(&stage, &model), Codex::new(&stage, &model));
        add_to_claude_code(&claude_code, &stage, &bundle);
        add_to_codex(&codex, &bundle);
        for (harness, removes) in [("claude-code", "claude plugin uninstall"), ("codex", "codex plugin remove")] {
            let told = |arguments: &[&str]| {
                let outcome = claude_code.run(arguments);
                assert_eq!(outcome.code, Some(0), "{outcome:?}");
                outcome.stdout + &outcome.stderr
            };
            let before = stage.tree(&stage.home);
            let install = told(&["install", harness, "--user", "--yes"]);
            assert!(install.contains(&format!("first run: {removes} {ID}")), "{install}");
            let uninstall = told(&["uninstall", harness, "--user", "--yes"]);
            assert!(uninstall.contains(&format!("removes itself: {removes} {ID}")), "{uninstall}");
            let after = stage.tree(&stage.home);
            let settings = |tree: &std::collections::BTreeMap<PathBuf, Vec<u8>>| {
                let ours = |path: &Path| {
                    path.strip_prefix(&stage.home)
                        .is_ok_and(|path| path.starts_with(".claude") || path.starts_with(".codex"))
                };
                tree.iter().filter(|(path, _)| ours(path)).map(|(path, _)| path.clone()).collect::<Vec<_>>()
            };
            assert_eq!(settings(&after), settings(&before), "nothing was written");
            let doctor = told(&["doctor", harness]);
            assert!(doctor.contains(&format!("`{removes} {ID}` removes it")), "{doctor}");
            assert!(doctor.contains("hook: "), "the hook is tried: {doctor}");
        }
    });
}

#[test]
fn codex_takes_the_bundle_and_its_agent_is_woken() {
    isolated(|| {
        let stage = Arc::new(stage());
        let model = Model::start(Codex::joining("alice").say("Are you there?", "I am here."));
        let codex = Codex::new(&stage, &model);
        add_to_codex(&codex, &unpacked(&stage));
        let doctor = stage.run(&["doctor", "codex"]).stdout;
        assert!(doctor.contains(&format!("the hooks of the plugin `{ID}`: you have not trusted them yet")), "{doctor}");
        let terminal = codex.joined("alice");
        let doctor = stage.run(&["doctor", "codex"]).stdout;
        assert!(!doctor.contains("not trusted"), "{doctor}");
        let id = send(&stage, "alice", "Are you there?");
        Codex::says(&terminal, "I am here.");
        let history = DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(history.route("shown").as_deref(), Some("app-server"), "it was woken");
        model.has_message_once(&id);
        assert_eq!(agents(&stage), ["alice"]);
    });
}

#[test]
fn a_plugin_and_an_install_for_the_project_show_codex_everything_once() {
    isolated(|| codex_beside_an_install(&["--project", "."]));
}

#[test]
fn a_plugin_and_an_install_for_the_user_show_codex_everything_once() {
    isolated(|| codex_beside_an_install(&["--user"]));
}

/// As for Claude Code. Codex has one server of a name, and runs the hooks of both.
fn codex_beside_an_install(scope: &[&str]) {
    let stage = Arc::new(stage());
    stage.relay_ok(&[&["install", "codex", "--yes"], scope].concat());
    let (busy, ending) = (Arc::clone(&stage), Arc::clone(&stage));
    let model = Model::start(
        Script::new()
            .call("Join the mesh", &Codex::tool("register_agent"), json!({"name": "alice"}))
            .answer_with("\"name\":\"alice\"", move |_| {
                send(&busy, "alice", "Sent while she works.");
                Answer::Call { tool: Codex::tool("list_agents"), input: json!({}) }
            })
            .answer_with("Sent while she works.", move |_| {
                send(&ending, "alice", "Sent at the end.");
                Answer::Say("I am alice.".to_owned())
            })
            .say("Sent at the end.", "Now I am done.")
            .say("Sent while she sleeps.", "I am awake."),
    );
    let codex = Codex::new(&stage, &model);
    add_to_codex(&codex, &unpacked(&stage));
    let terminal = codex.open();
    terminal.type_line("Join the mesh as alice.");
    Codex::says(&terminal, "Now I am done.");
    codex.is_idle("alice");
    send(&stage, "alice", "Sent while she sleeps.");
    Codex::says(&terminal, "I am awake.");
    model.wait_until_spoken();
    for body in ["Sent while she works.", "Sent at the end.", "Sent while she sleeps."] {
        assert_eq!(model.times_told(body), 1, "{body}");
    }
    assert_eq!(agents(&stage), ["alice"], "registered once");
    assert!(session_of(&stage, "alice").is_some(), "and bound to the thread");

    let doctor = stage.run(&["doctor", "codex"]).stdout;
    let both = format!("relay-mesh is also the plugin `{ID}`, so hooks run twice here");
    let fix = format!("fix: run `codex plugin remove {ID}`, or `relay-mesh uninstall codex");
    assert!(doctor.contains(&both) && doctor.contains(&fix), "{doctor}");
    let again = stage.run(&[&["install", "codex", "--yes"], scope].concat()).stderr;
    assert!(again.contains(&format!("the plugin `{ID}` too")), "an install says it: {again}");
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

/// Packs the bundle.
fn pack(stage: &Stage, out: &Path, variables: &[(&str, &str)], mask: &str) {
    let packer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/pack.py");
    let cache = stage.home.join(".cache").display().to_string();
    Program::new("sh")
        .args(["-c", &format!("umask {mask}; exec \"$@\""), "packed", "python3"])
        .arg(packer)
        .args(["--only", "bundles", "--target", TARGET, "--binary"])
        .arg(stage.binary())
        .arg("--out")
        .arg(out)
        .envs([("SOURCE_DATE_EPOCH", "1795699023"), ("XDG_CACHE_HOME", cache.as_str())])
        .envs(variables.iter().copied())
        .env("PATH", search_path())
        .succeed();
}

/// The marketplace, as a user has it after unpacking.
fn unpacked(stage: &Stage) -> PathBuf {
    let (out, folder) = (stage.folder.join("packed"), stage.folder.join("relay-mesh-plugins"));
    pack(stage, &out, &[], "022");
    let bundle = out.join(format!("relay-mesh-plugins-{}.zip", env!("CARGO_PKG_VERSION")));
    Program::new("python3").args(["-m", "zipfile", "-e"]).arg(bundle).arg(&folder).succeed();
    folder
}

/// Each hook of a settings file: its event, matcher, arguments, and what else is said of it.
fn lines_of(settings: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (event, groups) in settings["hooks"].as_object().expect("hooks") {
        for group in groups.as_array().expect("groups") {
            let mut hook = group["hooks"][0].clone();
            let line = hook["command"].as_str().expect("a command").to_owned();
            let arguments = match hook["args"].as_array() {
                Some(words) => words.iter().map(|word| word.as_str().expect("text")).collect::<Vec<_>>().join(" "),
                None => {
                    let program = "\"${RELAY_MESH_BIN:-relay-mesh}\" ";
                    line.strip_prefix(program).expect("it runs the program by its name").to_owned()
                }
            };
            let further = hook.as_object_mut().expect("a hook");
            further.retain(|key, _| key != "command" && key != "args");
            lines.push(format!("{event} {} {arguments} {}", group["matcher"], json!(further)));
        }
    }
    lines
}

fn joining(name: &str, tools: &str) -> Script {
    Script::joining(&format!("{tools}__register_agent"), name)
}

/// Adds the plugin as docs/plugins-of-harnesses.md says it, and allows its tools.
fn add_to_claude_code(client: &ClaudeCode<'_>, stage: &Stage, bundle: &Path) {
    let settings = stage.home.join(".claude/settings.json");
    let mut allowed: Value = match std::fs::read_to_string(&settings) {
        Ok(text) => serde_json::from_str(&text).expect("JSON"),
        Err(_) => json!({}),
    };
    allowed["permissions"]["allow"] = json!([PLUGIN_TOOLS]);
    std::fs::write(&settings, allowed.to_string()).expect("the home is writable");
    claude(client, stage, &["plugin", "marketplace", "add", &bundle.display().to_string()]);
    claude(client, stage, &["plugin", "install", ID]);
}

fn claude(client: &ClaudeCode<'_>, stage: &Stage, arguments: &[&str]) -> String {
    let environment = client.environment().iter().map(|(name, value)| (name, value));
    Program::new(ClaudeCode::program_path()).args(arguments).envs(environment).within(&stage.project).succeed()
}

fn add_to_codex(codex: &Codex<'_>, bundle: &Path) {
    for arguments in [&["plugin", "marketplace", "add", &bundle.display().to_string()][..], &["plugin", "add", ID]] {
        let outcome = codex.run(arguments);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
}

/// Waits until the session has said this and is idle again.
fn says(terminal: &Terminal, words: &str) {
    terminal.wait_for(&format!("● {words}"));
    terminal.wait_until_gone("esc to interrupt");
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
