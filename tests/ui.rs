//! The terminal view through the real binary, in a terminal: its user finds who waits and answers, finds a conversation
//! by a word, exports it and writes; the terminal is resized, lost, and given back.

#[path = "ui/five.rs"]
mod scene;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use test_support::{Client, Deployment, Model, Program, Script, Stage, Terminal, id_of, isolated, wait_for};

use scene::{five, talk};

fn environment(stage: &Stage) -> Vec<(String, String)> {
    let mut environment = stage.environment();
    environment.retain(|(name, _)| name != "TERM");
    environment.push(("TERM".to_owned(), "xterm-256color".to_owned()));
    environment.push(("NO_COLOR".to_owned(), "1".to_owned()));
    environment
}

/// The view in a terminal of 160 columns and 48 lines.
fn view(stage: &Stage) -> Terminal {
    let line = [stage.binary().display().to_string(), "ui".to_owned()];
    let terminal = Terminal::start(&stage.folder, &stage.project, &environment(stage), &line);
    terminal.wait_for("? keys");
    terminal
}

/// Runs in a terminal and says afterwards what state it left that in.
fn view_in_a_shell(stage: &Stage) -> Terminal {
    let script = format!("'{}' ui; code=$?; stty -a; echo \"ended with $code\"; exec cat", stage.binary().display());
    let line = ["sh".to_owned(), "-c".to_owned(), script];
    let terminal = Terminal::start(&stage.folder, &stage.project, &environment(stage), &line);
    terminal.wait_for("Needs you");
    terminal
}

/// The process of the view below the shell.
fn below(shell: &str) -> String {
    let children = Path::new("/proc").join(shell).join("task").join(shell).join("children");
    wait_for("the view runs", || {
        let children = fs::read_to_string(&children).ok()?;
        children.split_whitespace().next().map(str::to_owned)
    })
}

fn is_sane(terminal: &Terminal) {
    let screen = terminal.screen();
    let flags: Vec<&str> = screen.split_whitespace().collect();
    for flag in ["icanon", "echo", "isig", "opost"] {
        assert!(flags.contains(&flag), "{flag}: {screen}");
    }
    assert_eq!(terminal.told("#{alternate_on} #{mouse_any_flag} #{cursor_flag}"), "0 0 1", "{screen}");
}

#[test]
fn a_person_finds_who_waits_answers_it_finds_a_conversation_by_a_word_exports_it_and_writes() {
    let stage = five();
    let terminal = view(&stage);
    terminal.wait_for("1 needs you · 5 agents");
    terminal.wait_for("▸ alice");
    terminal.wait_for("Which port shall the server use?");
    terminal.press("a");
    terminal.wait_for("Answer (TEXT, refuse):");
    terminal.type_line("port 8080");
    terminal.wait_for("answered alice: port 8080");
    terminal.wait_until_gone("Needs you");
    let mail = stage.relay_ok(&["read", "--agent", "alice", "--peek"]);
    assert!(mail.contains("port 8080"), "{mail}");

    terminal.press("/");
    terminal.type_line("staging");
    terminal.wait_for("Found “staging”");
    terminal.press("Enter");
    terminal.wait_for("Where is it now?");
    terminal.wait_for("bob → carol");
    terminal.press("e");
    terminal.wait_for("Write to (.html, .md, .json): database.html");
    terminal.press("C-u");
    terminal.type_line("kept.md");
    terminal.wait_for("2 messages are in");
    let written = fs::read_to_string(stage.project.join("kept.md")).expect("it is written");
    assert!(written.contains("The staging database has moved") && written.contains("Where is it now?"), "{written}");

    terminal.press("c");
    terminal.wait_for("Reply to bob:");
    terminal.type_line("Thank you, says your user");
    terminal.wait_for("sent to bob");
    terminal.wait_for("shell  ");
    let mail = stage.relay_ok(&["read", "--agent", "bob", "--peek", "--json"]);
    let mail: Value = serde_json::from_str(&mail).expect("JSON");
    let last = mail["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    assert_eq!((last["from"].as_str(), last["thread"].as_str()), (Some("shell"), Some("database")), "{last}");
    let program = terminal.program();
    terminal.press("q");
    wait_for("it has ended", || (!Path::new("/proc").join(&program).join("exe").exists()).then_some(()));
}

/// Five agents, two of them real clients: Claude Code, which asks, and Codex, which is idle.
#[test]
fn a_person_answers_the_real_claude_code_and_wakes_the_real_codex() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let (claude, codex) = (Client::ClaudeCode, Client::Codex);
        for client in [claude, codex] {
            let project = stage.project_path();
            stage.relay_ok(&["install", client.name(), "--project", &project, "--tools", "core,asks", "--yes"]);
        }
        for agent in ["carol", "dave", "erin"] {
            stage.relay_ok(&["register", agent]);
        }
        stage.relay_ok(&["send", "dave", "The staging database moves tonight", "--from", "carol", "--thread", "move"]);
        let joins = |client: Client, name: &str| {
            Script::new().call("Join the mesh", &client.tool("register_agent"), json!({"name": name}))
        };
        let question = "Which port shall the server use?";
        let of_claude = Model::start(
            joins(claude, "alice")
                .call("alice", &claude.tool("ask_user"), json!({"question": question}))
                .say("port 8080", "The server listens at 8080 now."),
        );
        let request = "Please run the tests again";
        let of_codex = Model::start(joins(codex, "bob").say("bob", "I am bob now.").call_with(
            request,
            &codex.tool("send_message"),
            move |news| json!({"to": "carol", "body": "The tests pass", "reply_to": id_of(news, request)}),
        ));
        let (alice, bob) = (claude.open(&stage, &of_claude), codex.open(&stage, &of_codex));
        bob.terminal.type_line("Join the mesh as bob.");
        bob.says("I am bob now.");
        alice.terminal.type_line("Join the mesh as alice, and ask which port.");

        let view = view(&stage);
        view.wait_for("1 needs you · 5 agents");
        // Who was chosen before stays chosen.
        view.press("Home");
        view.wait_for("▸ alice");
        view.wait_for(question);
        view.press("a");
        view.wait_for("Answer (TEXT, refuse):");
        view.type_line("port 8080");
        alice.terminal.wait_for("The server listens at 8080 now.");
        view.wait_until_gone("Needs you");

        // Another agent asks bob, who sleeps; the answer is on screen by itself.
        view.press("/");
        view.type_line("staging");
        view.wait_for("Found “staging”");
        view.press("Enter");
        view.wait_for("carol → dave");
        stage.relay_ok(&["send", "bob", request, "--from", "carol", "--thread", "move"]);
        view.wait_for("The tests pass");
        view.press("e");
        view.wait_for("Write to (.html, .md, .json): move.html");
        view.press("Enter");
        view.wait_for("3 messages are in");
        let written = fs::read_to_string(stage.project.join("move.html")).expect("it is written");
        assert!(written.contains(request) && written.contains("The tests pass"), "{written}");
        let status: Value = serde_json::from_str(&stage.relay_ok(&["thread", "move", "--json"])).expect("JSON");
        let asked = status["messages"].as_array().and_then(|all| all.iter().find(|one| one["body"] == request));
        assert_eq!(asked.map(|one| &one["recipients"][0]["status"]), Some(&json!("acknowledged")), "{status}");
    });
}

test_support::on_every_store! { env!("CARGO_BIN_EXE_relay-mesh"); what_happens_is_on_screen_without_a_key }

fn what_happens_is_on_screen_without_a_key(place: &mut Deployment) {
    let stage = &place.stage;
    talk(stage);
    let terminal = view(stage);
    terminal.wait_for("the build is red");
    terminal.press("Tab");
    terminal.press("Enter");
    terminal.wait_for("○ dave: stored");
    stage.relay_ok(&["send", "carol", "it is green again", "--from", "erin", "--thread", "build"]);
    terminal.wait_for("it is green again");
    terminal.wait_for("○ carol: stored");
    stage.relay_ok(&["read", "--agent", "carol"]);
    terminal.wait_for("● carol: read");
    stage.relay_ok(&["pause", "dave"]);
    terminal.wait_for("paused");
    stage.relay_ok(&["register", "frank"]);
    terminal.wait_for("6 agents");
}

#[test]
fn servers_that_go_away_leave_what_was_known_and_what_happens_after_they_are_back_is_on_screen() {
    let mut place = Deployment::on_one_server(env!("CARGO_BIN_EXE_relay-mesh"));
    talk(&place.stage);
    let terminal = view(&place.stage);
    terminal.wait_for("the build is red");
    terminal.press("Tab");
    terminal.press("Enter");
    terminal.wait_for("○ dave: stored");
    place.servers[0].kill();
    terminal.wait_for("last known state: could not reach");
    let screen = terminal.screen();
    for known in ["alice", "erin", "the build is red", "○ dave: stored"] {
        assert!(screen.contains(known), "{known}: {screen}");
    }
    place.servers[0].restart();
    wait_for("the servers answer", || (place.stage.run(&["agents"]).code == Some(0)).then_some(()));
    place.stage.relay_ok(&["send", "carol", "it is green again", "--from", "erin", "--thread", "build"]);
    terminal.wait_for("it is green again");
    terminal.wait_until_gone("last known state");
}

#[test]
fn an_agent_is_paused_and_goes_on_by_the_same_key() {
    let stage = five();
    let terminal = view(&stage);
    terminal.wait_for("▸ alice");
    terminal.press("p");
    terminal.wait_for("alice is paused");
    assert!(stage.relay_ok(&["agents", "--json"]).contains("\"paused\":true"));
    terminal.wait_for("paused · command line");
    terminal.press("w");
    terminal.wait_for("alice is paused: `p` lets it go on");
    terminal.press("p");
    terminal.wait_for("alice goes on");
    assert!(!stage.relay_ok(&["agents", "--json"]).contains("\"paused\":true"));
}

#[test]
fn every_size_is_drawn_and_a_small_terminal_shows_one_pane() {
    let stage = five();
    let terminal = view(&stage);
    terminal.wait_for("the build is red");
    for (columns, lines) in [(20, 5), (10, 2), (200, 60), (80, 24)] {
        terminal.resize(columns, lines);
        if lines >= 5 {
            terminal.wait_for("alice");
        }
        let screen = terminal.screen();
        assert!(screen.lines().count() <= lines, "{columns}x{lines}: {screen}");
    }
    terminal.press("?");
    terminal.wait_for("these keys");
}

#[test]
fn a_message_cannot_steer_the_terminal() {
    let stage = five();
    let body = "\u{1b}[2J\u{1b}]0;stolen\u{7}\u{202e}sdrawkcab\u{9b}31m\rover";
    stage.relay_ok(&["send", "bob", body, "--subject", "\u{1b}[31mred", "--from", "erin", "--thread", "evil"]);
    let terminal = view(&stage);
    terminal.wait_for("\\u{1b}[31mred");
    terminal.press("Tab");
    terminal.press("Enter");
    terminal.wait_for("\\u{1b}[2J\\u{1b}]0;stolen\\u{7}\\u{202e}sdrawkcab");
    let screen = terminal.screen();
    assert!(screen.contains("alice") && !screen.contains('\u{202e}'), "{screen}");
    assert_ne!(terminal.told("#{pane_title}"), "stolen");
}

#[test]
fn the_terminal_is_given_back_whatever_ends_the_view() {
    let stage = five();
    for (signal, code) in [("", 0), ("TERM", 0), ("HUP", 0), ("INT", 0)] {
        let terminal = view_in_a_shell(&stage);
        assert_eq!(terminal.told("#{alternate_on}"), "1");
        match signal {
            "" => terminal.press("q"),
            signal => drop(Program::new("kill").args(["-s", signal, &below(&terminal.program())]).succeed()),
        }
        terminal.wait_for(&format!("ended with {code}"));
        is_sane(&terminal);
    }
}

#[test]
fn what_was_answered_right_before_the_end_is_not_lost() {
    let stage = five();
    let terminal = view(&stage);
    terminal.wait_for("▸ alice");
    terminal.wait_for("Which port shall the server use?");
    terminal.press("a");
    terminal.wait_for("Answer (TEXT, refuse):");
    let program = terminal.program();
    // Enter and `q` come in one piece.
    terminal.write("port 8080\rq");
    wait_for("it has ended", || (!Path::new("/proc").join(&program).join("exe").exists()).then_some(()));
    let mail = stage.relay_ok(&["read", "--agent", "alice", "--peek"]);
    assert!(mail.contains("port 8080"), "{mail}");
}

#[test]
fn a_view_ends_with_its_terminal() {
    let stage = five();
    let terminal = view(&stage);
    terminal.wait_for("▸ alice");
    // It waits until the process has ended.
    terminal.close();
}

#[test]
fn the_bare_command_opens_it_in_a_terminal_and_prints_the_help_elsewhere() {
    let stage = five();
    let line = [stage.binary().display().to_string()];
    let terminal = Terminal::start(&stage.folder, &stage.project, &environment(&stage), &line);
    terminal.wait_for("1 needs you · 5 agents");
    let piped = stage.run(&[]);
    assert_eq!(piped.code, Some(2), "{piped:?}");
    assert!(piped.stderr.contains("Usage: relay-mesh [OPTIONS] <COMMAND>"), "{piped:?}");
}

#[test]
fn where_it_cannot_be_drawn_it_says_so_and_lines_are_printed() {
    let stage = five();
    let mut dumb = environment(&stage);
    dumb.retain(|(name, _)| name != "TERM");
    dumb.push(("TERM".to_owned(), "dumb".to_owned()));
    let script = format!("'{}' ui; echo \"ended with $?\"; exec cat", stage.binary().display());
    let line = ["sh".to_owned(), "-c".to_owned(), script];
    let terminal = Terminal::start(&stage.folder, &stage.project, &dumb, &line);
    terminal.wait_for("ended with 2");
    terminal.wait_for("relay-mesh ui --plain");

    let log = stage.folder.join("lines");
    let command = format!("exec '{}' ui > '{}'", stage.binary().display(), log.display());
    let following = Program::new("sh").args(["-c", &command]).envs(environment(&stage)).within(&stage.project);
    let mut running = following.start(&stage.folder.join("following.log"));
    let text = || fs::read_to_string(&log).unwrap_or_default();
    wait_for("it follows", || text().contains("\"subscribed\"").then_some(()));
    stage.relay_ok(&["send", "bob", "for the stream", "--from", "alice"]);
    wait_for("the message is a line", || text().contains("for the stream").then_some(()));
    running.kill();
}

#[test]
fn an_agent_does_not_get_to_watch_everybody() {
    let stage = five();
    for (name, value) in [("RELAY_OPENCODE_SESSION", "ses_1"), ("RELAY_RUN", "01JD8Z3K5V0000000000000000")] {
        let mut environment = environment(&stage);
        environment.push((name.to_owned(), value.to_owned()));
        let script = format!("'{}' ui; echo \"ended with $?\"; exec cat", stage.binary().display());
        let line = ["sh".to_owned(), "-c".to_owned(), script];
        let terminal = Terminal::start(&stage.folder, &stage.project, &environment, &line);
        terminal.wait_for("ended with 4");
        assert!(terminal.screen().contains("an agent cannot watch everybody's mail"), "{}", terminal.screen());
    }
}
