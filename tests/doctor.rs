//! What the doctor checks, against the real Claude Code, and what the user is asked before settings are changed.

use serde_json::{Value, json};
use test_support::{ClaudeCode, Model, Outcome, Program, Script, Stage, Terminal, isolated, wait_for};

#[test]
fn a_message_of_the_doctor_wakes_an_idle_session_and_each_status_is_told() {
    isolated(|| {
        let stage = stage();
        let project = stage.project.display().to_string();
        stage.relay_ok(&["install", "claude-code", "--project", &project, "--yes"]);
        let model = Model::start(
            Script::new()
                .call("Join the mesh", "mcp__relay-mesh__register_agent", json!({"name": "alice"}))
                .say("alice", "I am alice.")
                .say("relay-mesh doctor", "I was woken."),
        );
        let terminal = ClaudeCode::new(&stage, &model).open();
        terminal.type_line("Join the mesh as alice.");
        terminal.wait_for("● I am alice.");

        let examined = stage.run(&["doctor", "claude-code", "--project", &project]);
        assert_eq!(examined.code, Some(0), "{examined:?}");
        for proven in ["the SessionStart hook was run and answered in", "written, synced and read back", "all 13 hooks"]
        {
            assert!(examined.stdout.contains(proven), "{proven}: {examined:?}");
        }
        let agents = stage.relay_ok(&["agents", "--json"]);
        assert!(!agents.contains("00000000"), "the rehearsal left no session behind: {agents}");

        // The screen shows the answer before the turn has ended.
        wait_for("the session is idle", || stage.relay_ok(&["agents", "--json"]).contains("\"idle\"").then_some(()));
        let woken = stage.run(&["doctor", "--wake", "alice", "--timeout", "20", "--json"]);
        assert_eq!(woken.code, Some(0), "{woken:?}");
        assert!(woken.stderr.contains("notified after"), "{woken:?}");
        assert!(woken.stderr.contains("shown after"), "{woken:?}");
        assert!(woken.stderr.contains("by hook:"), "by a hook of the session itself: {woken:?}");
        let verdict: Value = serde_json::from_str(&woken.stdout).expect("--json writes JSON");
        assert_eq!(verdict["severity"], "ok", "{verdict}");
        terminal.wait_for("● I was woken.");
    });
}

#[test]
fn nobody_is_woken_where_nobody_is() {
    isolated(|| {
        let stage = stage();
        check(&stage, &["doctor", "--wake", "alice"], 3, "no session and no agent is called `alice`");
        stage.relay_ok(&["register", "alice"]);
        // Nothing is sent to one that only the command line speaks for, and nothing is waited for.
        check(
            &stage,
            &["doctor", "--wake", "alice", "--timeout", "600"],
            1,
            "alice has no session that could be woken",
        );
        let unread = stage.relay_ok(&["read", "--agent", "alice", "--unread", "--peek"]);
        assert!(!unread.contains("relay-mesh doctor"), "{unread}");
        let unknown = stage.run(&["doctor", "nope"]);
        assert!(unknown.code == Some(3) && unknown.stdout.is_empty(), "nothing is checked first: {unknown:?}");
    });
}

#[test]
fn a_machine_whose_loopback_interface_is_down_is_not_told_that_its_ports_are_taken() {
    isolated(|| {
        let stage = stage();
        let project = stage.project_path();
        stage.relay_ok(&["install", "opencode", "--project", &project, "--yes"]);
        let binary = stage.binary().display().to_string();
        let examined = Program::new("unshare")
            .args(["--net", &binary, "doctor", "opencode", "--project", &project])
            .envs(stage.environment())
            .within(&stage.project)
            .run();
        let told = &examined.stdout;
        assert!(told.contains("this machine does not reach 127.0.0.1:7423"), "{examined:?}");
        assert!(told.contains("could not connect to 127.0.0.1 port 4096"), "{examined:?}");
        assert!(told.matches("is the loopback interface up").count() == 2 && !told.contains("taken"), "{examined:?}");
    });
}

#[test]
fn the_doctor_finds_what_is_broken_and_says_what_to_do() {
    isolated(|| {
        let stage = stage();
        let project = stage.project.display().to_string();
        check(&stage, &["doctor"], 0, "not set up for the project");
        stage.relay_ok(&["install", "claude-code", "--project", &project, "--yes"]);
        std::fs::remove_file(stage.project.join(".mcp.json")).expect("it was made by the install");
        check(&stage, &["doctor", "claude-code"], 1, "fix: run `relay-mesh install claude-code --project .` again");
        check(&stage, &["doctor", "claude-code", "--user"], 0, "not set up for the user");
        stage.relay_ok(&["install", "claude-code", "--project", &project, "--yes"]);
        check(&stage, &["doctor", "claude-code"], 0, "names the server");
        check(&stage, &["doctor", "notepad"], 3, "no adapter is named `notepad`");
    });
}

#[test]
fn what_is_to_be_installed_again_keeps_its_tools_and_its_folder() {
    isolated(|| {
        let stage = stage();
        let project = stage.project_path();
        let tools = "core,reservations";
        stage.relay_ok(&["install", "claude-code", "--project", &project, "--tools", tools, "--yes"]);
        std::fs::remove_dir_all(stage.project.join(".claude")).expect("it was made by the install");
        let line = format!("relay-mesh install claude-code --project {project} --tools {tools}");
        let fix = format!("fix: run `{line}` again");
        check(&stage, &["doctor", "claude-code", "--project", &project], 1, &fix);
        let words: Vec<&str> = line.split(' ').skip(1).chain(["--yes"]).collect();
        stage.relay_ok(&words);
        check(&stage, &["doctor", "claude-code", "--project", &project], 0, "names the server");
    });
}

#[test]
fn a_person_is_asked_and_only_a_yes_changes_their_settings() {
    isolated(|| {
        let stage = stage();
        let before = stage.tree(&stage.project);
        let terminal = ask(&stage, "first", &["install", "claude-code"]);
        terminal.wait_for("would be created. Go on? [y]es [d]iff [N]o");
        let screen = terminal.screen();
        assert!(screen.contains("CHANGE") && screen.contains(".mcp.json"), "a line for each file: {screen}");
        assert!(!screen.contains("+++"), "and no diff: {screen}");
        terminal.type_line("d");
        terminal.wait_for("+++");
        terminal.wait_for("would be created. Go on? [y]es [d]iff [N]o");
        terminal.type_line("n");
        terminal.wait_for("Nothing was changed.");
        drop(terminal);
        assert_eq!(stage.tree(&stage.project), before);

        let terminal = ask(&stage, "second", &["install", "claude-code"]);
        terminal.wait_for("[y]es [d]iff [N]o");
        terminal.type_line("y");
        terminal.wait_for("Claude Code is set up for the project");
        drop(terminal);
        check(&stage, &["harnesses"], 0, "installed");

        let terminal = ask(&stage, "third", &["uninstall", "claude-code"]);
        terminal.wait_for("would be removed. Go on? [y]es [d]iff [N]o");
        terminal.type_line("yes");
        terminal.wait_for("no longer set up");
        drop(terminal);
        assert_eq!(stage.tree(&stage.project), before, "byte for byte");
    });
}

/// Runs a command and checks its exit code and its output on both streams.
fn check(stage: &Stage, arguments: &[&str], code: i32, says: &str) {
    let outcome: Outcome = stage.run(arguments);
    assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
    assert!(outcome.stdout.contains(says) || outcome.stderr.contains(says), "{arguments:?}: {outcome:?}");
}

/// Runs a command in a new terminal, which stays open after the command has ended.
fn ask(stage: &Stage, name: &str, arguments: &[&str]) -> Terminal {
    let folder = stage.folder.join(name);
    std::fs::create_dir(&folder).expect("the stage is writable");
    let line = format!("{} {}; exec cat", stage.binary().display(), arguments.join(" "));
    let program = ["sh".to_owned(), "-c".to_owned(), line];
    Terminal::start(&folder, &stage.project, &stage.environment(), &program)
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
