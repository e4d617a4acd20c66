//! Faults of harnesses and their settings. The doctor names each with a fix, no message is lost, and none is shown
//! twice. The real clients run only in cases that need them.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;
use test_support::{
    ClaudeCode, Client, Codex, DeliveryHistory, Gemini, Model, Program, Running, Script, Stage, Terminal, isolated,
    send, session_of, unread, wait_for, wait_or_show,
};

/// Damages what an install made.
type Harm = fn(&Stage);

/// Each harness, the damage done after its setup, and the doctor's finding.
const HARMS: &[(&str, Harm, &str)] = &[
    ("claude-code", |_| {}, "Claude Code is set up, and no version of it was found on this machine"),
    ("codex", |_| {}, "Codex is set up, and no version of it was found on this machine"),
    ("cursor", |_| {}, "Cursor is set up, and no version of it was found on this machine"),
    ("opencode", |_| {}, "OpenCode is set up, and no version of it was found on this machine"),
    // What older clients report as version; their READMEs say how they worked with the mesh.
    (
        "codex",
        |stage| answers(stage, "codex", "codex-cli 0.100.0"),
        "Codex 0.100.0 is older than 0.154: it may have no hooks, no queue and no app server",
    ),
    (
        "opencode",
        |stage| answers(stage, "opencode", "0.5.29"),
        "OpenCode 0.5.29 is too old for the connector, which was tried with",
    ),
    (
        "claude-code",
        |stage| theirs(stage, ".mcp.json"),
        "the server named `relay-mesh` in .mcp.json is not relay-mesh's",
    ),
    (
        "codex",
        |stage| write(stage, ".codex/config.toml", "[mcp_servers.relay-mesh]\ncommand = \"theirs\"\n"),
        "the server named `relay-mesh` in .codex/config.toml is not relay-mesh's",
    ),
    (
        "cursor",
        |stage| theirs(stage, ".cursor/mcp.json"),
        "the server named `relay-mesh` in .cursor/mcp.json is not relay-mesh's",
    ),
    (
        "opencode",
        |stage| write(stage, "opencode.json", r#"{"mcp": {"relay-mesh": {"type": "local", "command": ["theirs"]}}}"#),
        "the server named `relay-mesh` in opencode.json is not relay-mesh's",
    ),
    (
        "claude-code",
        |stage| write(stage, ".claude/settings.local.json", "{\n  \"hooks\": {,\n}\n"),
        ".claude/settings.local.json, line 2",
    ),
    ("codex", |stage| write(stage, ".codex/config.toml", "model = \"a\"\nb = = 2\n"), ".codex/config.toml, line 2"),
    ("cursor", |stage| write(stage, ".cursor/hooks.json", "{\n  \"hooks\" {}\n}\n"), ".cursor/hooks.json, line 2"),
    ("opencode", |stage| write(stage, "opencode.json", "{\n  \"mcp\" 7\n}\n"), "opencode.json, line 2"),
    (
        "claude-code",
        |stage| write(stage, ".claude/settings.json", "{\"disableAllHooks\": true}\n"),
        ".claude/settings.json turns all hooks off",
    ),
    (
        "codex",
        |stage| {
            std::fs::create_dir_all(stage.home.join(".codex")).expect("the home is writable");
            std::fs::write(stage.home.join(".codex/config.toml"), "[features]\nhooks = false\n")
                .expect("it is writable");
        },
        "Codex's settings switch all hooks off",
    ),
    (
        "opencode",
        |stage| {
            write(
                stage,
                ".opencode/relay-mesh.local.json",
                "{\"program\": [\"/nowhere/relay-mesh\"], \"environment\": {}}\n",
            )
        },
        ".opencode/relay-mesh.local.json is of another install",
    ),
];

#[test]
fn the_doctor_names_what_is_in_the_way_and_what_to_do() {
    isolated(|| {
        let stage = stage();
        let clean = stage.tree(&stage.project);
        for (harness, harm, says) in HARMS {
            install(&stage, harness);
            harm(&stage);
            is_ill(&stage, harness, says);
            // Shared, because a stage for each would recompile its adapter.
            for path in
                stage.tree(&stage.project).into_keys().filter(|path| path.is_file() && !clean.contains_key(path))
            {
                std::fs::remove_file(path).expect("the project is writable");
            }
            for personal in [stage.home.join(".codex"), stage.programs()].into_iter().filter(|path| path.exists()) {
                std::fs::remove_dir_all(personal).expect("the home is writable");
            }
        }
    });
}

#[test]
fn a_plugin_folder_that_cannot_be_written_is_named_and_nothing_is_half_done() {
    isolated(|| {
        let stage = stage();
        let plugins = stage.project.join(".opencode/plugins");
        std::fs::create_dir_all(&plugins).expect("the project is writable");
        Program::new("mount").args(["-t", "tmpfs", "-o", "ro", "plugins"]).arg(&plugins).succeed();
        let before = stage.tree(&stage.project);
        let project = stage.project.display().to_string();
        let refused = stage.run(&["install", "opencode", "--project", &project, "--yes"]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        for word in [".opencode/plugins", "hint: "] {
            assert!(refused.stderr.contains(word), "{word}: {refused:?}");
        }
        assert_eq!(stage.tree(&stage.project), before, "nothing was changed");
        let doctor = stage.run(&["doctor", "opencode", "--project", &project]);
        assert!(doctor.stdout.contains("not set up for the project"), "{doctor:?}");
    });
}

#[test]
fn a_port_that_is_taken_is_named() {
    isolated(|| {
        let stage = stage();
        install(&stage, "opencode");
        // OpenCode's default port.
        let _server = serve(&stage, &stage.data.display().to_string(), "127.0.0.1:4096");
        is_ill(&stage, "opencode", "port 4096 is taken by another program");
        let other = stage.folder.join("other").display().to_string();
        let second = stage.relay(&["serve", "--http", "127.0.0.1:4096"]).env("RELAY_DIR", &other).run();
        assert_ne!(second.code, Some(0), "{second:?}");
        assert!(
            second.stderr.contains("port 4096 of 127.0.0.1 is in use") && second.stderr.contains("hint: "),
            "{second:?}"
        );
    });
}

#[test]
fn a_session_id_of_another_harness_gets_nobodys_mail() {
    isolated(|| {
        let stage = stage();
        let payload = json!({"session_id": "the-one-session", "cwd": stage.project, "hook_event_name": "SessionStart", "source": "startup"});
        let begun = stage.relay(&["hook", "claude-code", "SessionStart"]).input(payload.to_string()).run();
        assert_eq!(begun.code, Some(0), "{begun:?}");
        let environment = [("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "the-one-session")];
        let server = stage.relay(&["mcp"]).envs(environment).start(&stage.folder.join("mcp.log"));
        let mut alice = test_support::StdioClient::connected(server, "claude-code");
        alice.call("register_agent", json!({"name": "alice"}));
        assert_eq!(session_of(&stage, "alice").as_deref(), Some("the-one-session"));
        let id = send(&stage, "alice", "For Claude Code alone");
        let mut listener = stage.relay(&["listen", "--harness", "opencode"]).start(&stage.folder.join("listen.log"));
        let mut pipe = listener.child.stdin.take().expect("its input is a pipe");
        writeln!(pipe, "{}", json!({"watch": "the-one-session"})).expect("it reads its input");
        drop(pipe);
        let mut said = String::new();
        let mut output = listener.child.stdout.take().expect("its output is a pipe");
        std::io::Read::read_to_string(&mut output, &mut said).expect("it ends with its input");
        assert!(!said.contains("For Claude Code alone"), "{said}");
        assert_eq!(unread(&stage, "alice").len(), 1, "it waits for her");
        assert!(!DeliveryHistory::of(&stage, &id).statuses().contains(&"shown".to_owned()));
        let woken = stage.run(&["doctor", "--wake", "the-other-session"]);
        assert!(
            woken.stdout.contains("no session and no agent is called `the-other-session`")
                || woken.stderr.contains("no session and no agent is called `the-other-session`"),
            "{woken:?}"
        );
    });
}

#[test]
fn an_app_server_of_codex_that_died_leaves_a_socket_and_loses_nothing() {
    isolated(|| {
        let stage = stage();
        install(&stage, "codex");
        let model = Model::start(Codex::joining("alice").say("After the crash", "I have read it."));
        let codex = Codex::new(&stage, &model);
        let terminal = codex.joined("alice");
        let session = session_of(&stage, "alice").expect("alice is bound to her thread");
        terminal.close();
        codex.crash_app_server();
        is_ill(&stage, "codex", "Codex's app server has left a socket on which it no longer listens");
        let id = send(&stage, "alice", "After the crash");
        let terminal = codex.open_with(&["resume", &session]);
        terminal.type_line("Good morning");
        model.wait_for_news("After the crash");
        DeliveryHistory::up_to(&stage, &id, "shown");
        model.has_message_once(&id);
        is_well(&stage, "codex", "Codex's app server takes turns for idle threads");
    });
}

#[test]
fn mail_for_an_archived_thread_of_codex_waits_until_it_is_taken_out_again() {
    isolated(|| {
        let stage = stage();
        install(&stage, "codex");
        let model = Model::start(Codex::joining("alice").say("While you were away", "I have read it."));
        let codex = Codex::new(&stage, &model);
        let run = codex.ask("Join the mesh as alice.", &[]);
        let archived = codex.run(&["archive", &run.session]);
        assert_eq!(archived.code, Some(0), "{archived:?}");
        let id = send(&stage, "alice", "While you were away");
        assert_eq!(DeliveryHistory::of(&stage, &id).statuses(), ["stored"], "it waits");
        let taken_out = codex.run(&["unarchive", &run.session]);
        assert_eq!(taken_out.code, Some(0), "{taken_out:?}");
        let again = Client::Codex.ask(&stage, &model, "Go on.", Some(&run.session));
        assert_eq!((again.result.as_str(), &again.session), ("I have read it.", &run.session), "{:?}", again.outcome);
        DeliveryHistory::up_to(&stage, &id, "shown");
        assert_eq!(model.times_told("While you were away"), 1, "shown once");
    });
}

#[test]
fn claude_code_says_that_our_program_was_deleted_and_what_to_do() {
    isolated(|| {
        let stage = deleted("claude-code");
        let model = Model::start(Script::new());
        names_the_cure(&stage, &ClaudeCode::new(&stage, &model).open(), "Claude Code");
    });
}

#[test]
fn codex_says_that_our_program_was_deleted_and_what_to_do() {
    isolated(|| {
        let stage = deleted("codex");
        let model = Model::start(Script::new().say("Hello", "Hello to you."));
        let codex = Codex::new(&stage, &model);
        let terminal = codex.open();
        terminal.type_line("Hello");
        names_the_cure(&stage, &terminal, "Codex");
        Codex::says(&terminal, "Hello to you.");
    });
}

#[test]
fn gemini_cli_says_that_our_program_was_deleted_and_what_to_do() {
    isolated(|| {
        let stage = deleted("gemini-cli");
        let model = Model::start(Script::new());
        let client = Gemini::new(&stage, &model);
        // As a user starts it: without its server it is never as ready as `open` waits for.
        let terminal = Terminal::start(&stage.folder, &stage.project, client.environment(), &["gemini".to_owned()]);
        names_the_cure(&stage, &terminal, "Gemini CLI");
    });
}

/// A stage whose user has set up the harness for every project, with a relay-mesh that they deleted later.
fn deleted(harness: &str) -> Stage {
    let stage = stage();
    let program = own_program(&stage);
    std::fs::create_dir_all(program.parent().expect("a folder")).expect("the stage is writable");
    // A link would be followed: what it leads to is still there.
    std::fs::copy(stage.binary(), &program).expect("the stage is writable");
    let environment = stage.environment();
    let environment = environment.iter().map(|(name, value)| (name, value));
    Program::new(&program)
        .args(["install", harness, "--user", "--yes"])
        .envs(environment)
        .within(&stage.home)
        .succeed();
    std::fs::remove_file(&program).expect("it is the user's");
    stage
}

fn own_program(stage: &Stage) -> PathBuf {
    stage.home.join("tools/relay-mesh")
}

/// Waits until the screen says it, however its lines are broken.
fn names_the_cure(stage: &Stage, terminal: &Terminal, title: &str) {
    let program = own_program(stage);
    let cure = format!(
        "relay-mesh is missing: its hooks run {}, and there is no such program. Install it again, or remove its hooks \
         from {title}.",
        program.display()
    );
    let plain = |text: &str| text.split_whitespace().collect::<String>();
    let look = || plain(&terminal.screen()).contains(&plain(&cure)).then_some(());
    wait_or_show("the screen names the cure", look, || terminal.screen());
}

/// The doctor reports it, with a fix on the next line.
#[track_caller]
fn is_ill(stage: &Stage, harness: &str, says: &str) {
    let examined = stage.run(&["doctor", harness]);
    let told = format!("{}{}", examined.stdout, examined.stderr);
    let (_, after) = told.split_once(says).unwrap_or_else(|| panic!("{harness}: {says} is not in\n{told}"));
    assert!(after.lines().take(3).any(|line| line.contains("fix: ")), "{harness}: {says} has no fix in\n{told}");
}

#[track_caller]
fn is_well(stage: &Stage, harness: &str, says: &str) {
    let examined = stage.run(&["doctor", harness]).stdout;
    assert!(examined.contains(says), "{harness}: {says} is not in\n{examined}");
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}

fn install(stage: &Stage, harness: &str) {
    stage.relay_ok(&["install", harness, "--project", &stage.project_path(), "--yes"]);
}

fn write(stage: &Stage, path: &str, text: &str) {
    std::fs::write(stage.project.join(path), text).expect("the project is writable");
}

/// Puts a program of that name on PATH that reports this version.
fn answers(stage: &Stage, name: &str, version: &str) {
    let program = stage.programs().join(name);
    std::fs::create_dir_all(stage.programs()).expect("the home is writable");
    std::fs::write(&program, format!("#!/bin/sh\necho '{version}'\n")).expect("the home is writable");
    Program::new("chmod").arg("+x").arg(&program).succeed();
}

/// A list of servers in which another program has the mesh's name.
fn theirs(stage: &Stage, path: &str) {
    write(stage, path, r#"{"mcpServers": {"relay-mesh": {"command": "theirs"}}}"#);
}

/// Starts a server at this address and waits until it answers.
fn serve(stage: &Stage, data: &str, at: &str) -> Running {
    let log = stage.folder.join("serve.log");
    let server = stage.relay(&["serve", "--http", at]).env("RELAY_DIR", data).start(&log);
    wait_for("the host answers", || std::net::TcpStream::connect(at).ok());
    server
}
