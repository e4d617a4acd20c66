//! The plugin bundle that `make dist` packs: the real clients accept it from a local marketplace, it does there what
//! `relay-mesh install` does, and the two beside each other lose nothing and show nothing twice. Only the models are
//! scripted.

#![cfg(target_os = "linux")]

#[path = "bundles/scene.rs"]
mod scene;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use scene::{
    ID, PLUGIN_TOOLS, add_to_claude_code, add_to_codex, claude, is_idle, joining, lines_of, pack, project_of_alice,
    read, says, stage, turns, unpacked,
};
use serde_json::{Value, json};
use test_support::{
    ClaudeCode, Codex, DeliveryHistory, Model, ModelAnswer, PageCommand, Program, Script, agents, environment_to_start,
    isolated, page_commands, send, session_of,
};

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
        for (skill, installed) in [
            ("claude-code/skills/relay-mesh/SKILL.md", ".claude/skills/relay-mesh/SKILL.md"),
            ("codex/skills/relay-mesh/SKILL.md", ".codex/skills/relay-mesh/SKILL.md"),
            ("agent-plugin/skills/relay-mesh/SKILL.md", ".claude/skills/relay-mesh/SKILL.md"),
            ("claude-code/commands/relay-status.md", ".claude/commands/relay-status.md"),
        ] {
            assert!(own(installed).starts_with(&of_bundle(skill)), "{skill}");
        }
        for (hooks, installed, number) in [
            ("claude-code/hooks/hooks.json", ".claude/settings.local.json", 13),
            ("codex/hooks/hooks.json", ".codex/hooks.json", 11),
        ] {
            let (hooks, installed) = (lines_of(&of_bundle(hooks)), lines_of(&own(installed)));
            assert_eq!(hooks.len(), number);
            let of_plugin = |line: &String| line.replace(" | ", " --plugin | ");
            assert_eq!(hooks, installed.iter().map(of_plugin).collect::<Vec<_>>(), "with matchers and arguments");
        }

        let portable: Value = serde_json::from_str(&of_bundle("agent-plugin/mcp.json")).expect("JSON");
        let server = json!({"type": "stdio", "command": "relay-mesh", "args": ["mcp"]});
        assert_eq!(portable["mcpServers"], json!({"relay-mesh": server}), "a bare name, and no variables");

        let entry: Value = serde_json::from_str(&read(&stage.folder.join("one/server.json"))).expect("JSON");
        let packages: Vec<_> = entry["packages"].as_array().expect("a list").iter().collect();
        let of = |key: &str| packages.iter().map(|package| package[key].as_str().expect("text")).collect::<Vec<_>>();
        assert_eq!((of("registryType"), of("runtimeHint")), (vec!["npm", "pypi"], vec!["npx", "uvx"]));
        assert_eq!(entry["version"], env!("CARGO_PKG_VERSION"));
        // The registry's schema of 2025-12-11 wants this much of it, beyond the kinds of its fields.
        let length = entry["description"].as_str().expect("text").chars().count();
        assert!((1..=100).contains(&length), "a description of {length} characters");
        let name = entry["name"].as_str().and_then(|name| name.split_once('/')).expect("a namespace and a name");
        assert!(!name.0.is_empty() && !name.1.is_empty() && !name.1.contains('/'), "{name:?}");
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
        assert_eq!(project_of_alice(&stage), stage.project_path());
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
                ModelAnswer::Call { tool: "Read".to_owned(), input: json!({"file_path": readme}) }
            })
            .answer_with("Sent while she works.", move |_| {
                send(&ending, "alice", "Sent at the end.");
                ModelAnswer::Say("I am alice.".to_owned())
            })
            .say("Sent at the end.", "Now I am done.")
            .say("Sent while she sleeps.", "I am awake."),
    );
    let client = ClaudeCode::new(&stage, &model);
    add_to_claude_code(&client, &stage, &unpacked(&stage));
    let terminal = client.open();
    terminal.type_line("Join the mesh as alice.");
    says(&terminal, "Now I am done.");
    is_idle(&stage);
    send(&stage, "alice", "Sent while she sleeps.");
    says(&terminal, "I am awake.");
    is_idle(&stage);
    model.wait_until_spoken();
    for body in ["Sent while she works.", "Sent at the end.", "Sent while she sleeps."] {
        assert_eq!(model.times_told(body), 1, "{body}");
    }
    assert_eq!(agents(&stage), ["alice"], "registered once");
    assert!(session_of(&stage, "alice").is_some(), "and bound to the session");
    // A turn that a wake begins has no prompt.
    assert_eq!(turns(&stage), ["turn-started", "turn-completed", "turn-completed"], "each turn ends once");

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
            for how in ["--dry-run", "--yes"] {
                let all = told(&["uninstall", "--all", how]);
                assert!(all.contains(&format!("which it removes itself: {removes} {ID}")), "{how}: {all}");
            }
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
        assert_eq!(project_of_alice(&stage), stage.project_path());
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
                ModelAnswer::Call { tool: Codex::tool("list_agents"), input: json!({}) }
            })
            .answer_with("Sent while she works.", move |_| {
                send(&ending, "alice", "Sent at the end.");
                ModelAnswer::Say("I am alice.".to_owned())
            })
            .say("Sent at the end.", "Now I am done.")
            .say("Sent while she sleeps.", "I am awake."),
    );
    let codex = Codex::new(&stage, &model);
    add_to_codex(&codex, &unpacked(&stage));
    let terminal = codex.open();
    terminal.type_line("Join the mesh as alice.");
    Codex::says(&terminal, "Now I am done.");
    is_idle(&stage);
    send(&stage, "alice", "Sent while she sleeps.");
    Codex::says(&terminal, "I am awake.");
    is_idle(&stage);
    model.wait_until_spoken();
    for body in ["Sent while she works.", "Sent at the end.", "Sent while she sleeps."] {
        assert_eq!(model.times_told(body), 1, "{body}");
    }
    assert_eq!(agents(&stage), ["alice"], "registered once");
    assert!(session_of(&stage, "alice").is_some(), "and bound to the thread");
    assert_eq!(turns(&stage), ["turn-started", "turn-completed", "turn-started", "turn-completed"], "each once");

    let doctor = stage.run(&["doctor", "codex"]).stdout;
    let both = format!("relay-mesh is also the plugin `{ID}`, so each hook starts twice here");
    let fix = format!("fix: run `codex plugin remove {ID}`, or `relay-mesh uninstall codex");
    assert!(doctor.contains(&both) && doctor.contains(&fix), "{doctor}");
    let again = stage.run(&[&["install", "codex", "--yes"], scope].concat()).stderr;
    assert!(again.contains(&format!("the plugin `{ID}` too")), "an install says it: {again}");
}

/// A client of Agent Plugins, which starts a server in the plugin's folder, as the format says.
const CLIENT: &str = r#"
import os, subprocess, sys
plugin, relay = sys.argv[1:]
server = subprocess.Popen([relay, "mcp"], cwd=plugin, env={**os.environ, "PLUGIN_ROOT": plugin}, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for line in sys.stdin:
    server.stdin.write(line)
    server.stdin.flush()
    if '"id"' in line:
        print(server.stdout.readline(), end="")
"#;

#[test]
fn the_server_of_an_agent_plugin_knows_in_which_folder_its_user_works() {
    isolated(|| {
        let stage = stage();
        let plugin = unpacked(&stage).join("agent-plugin");
        let about = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a-client", "version": "1"}});
        let call = json!({"name": "register_agent", "arguments": {"name": "alice"}});
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
        ];
        let typed: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let client = Program::new("python3").args(["-c", CLIENT]).arg(plugin).arg(stage.binary());
        let told = client.envs(stage.environment()).within(&stage.project).input(typed).succeed();
        assert!(told.contains("you are `alice`"), "{told}");
        assert_eq!(project_of_alice(&stage), stage.project_path());
    });
}

#[test]
fn copilot_takes_the_bundle_and_its_agent_joins() {
    isolated(|| {
        let stage = stage();
        let bundle = unpacked(&stage).display().to_string();
        let model = Model::start(Script::joining("relay-mesh-register_agent", "alice"));
        let environment = environment_to_start("copilot", &stage, &model);
        let copilot = |words: &[&str]| {
            let program = Program::new(stage.programs().join("copilot")).args(words).envs(environment.iter().cloned());
            program.within(&stage.project).succeed()
        };
        copilot(&["plugin", "marketplace", "add", &bundle]);
        copilot(&["plugin", "install", ID]);
        let said = copilot(&["-p", "Join the mesh as alice.", "--allow-all-tools"]);
        assert!(said.contains("I am alice."), "{said}");
        assert_eq!(project_of_alice(&stage), stage.project_path());
        let names_it = || {
            let told = stage.run(&["uninstall", "--all", "--dry-run"]);
            assert_eq!(told.code, Some(0), "{told:?}");
            told.stderr.contains(&format!("which it removes itself: copilot plugin uninstall {ID}"))
        };
        assert!(names_it());
        copilot(&["plugin", "uninstall", ID]);
        assert!(!names_it(), "Copilot says `disabled` of it");
    });
}

#[test]
fn each_command_of_the_page_says_what_the_page_says() {
    isolated(|| {
        let stage = stage();
        let bundle = unpacked(&stage);
        std::fs::rename(bundle, stage.home.join("relay-mesh-plugins")).expect("the home is writable");
        let model = Model::start(Script::new());
        let (claude_code, codex) = (ClaudeCode::new(&stage, &model), Codex::new(&stage, &model));
        let copilot = environment_to_start("copilot", &stage, &model);
        std::os::unix::fs::symlink(ClaudeCode::program_path(), stage.programs().join("claude")).expect("a link");
        let commands = page_commands("docs/plugins-of-harnesses.md");
        assert_eq!(commands.len(), 16, "{commands:?}");
        for PageCommand { typed, prints, .. } in commands {
            let environment = claude_code.environment().iter().chain(codex.environment()).chain(&copilot);
            let shell = Program::new("sh").arg("-c").arg(format!("exec 2>&1\n{typed}"));
            let outcome = shell.envs(environment.map(|(name, value)| (name, value))).within(&stage.project).run();
            assert_eq!(outcome.code, Some(0), "{typed}: {outcome:?}");
            for line in prints {
                assert!(outcome.stdout.contains(line.trim_start_matches("… ")), "{typed}: {line}\n{}", outcome.stdout);
            }
        }
    });
}
