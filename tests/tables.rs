//! Tables on a terminal: as wide as it is, whatever is in them; what is left out there, and that a pipe gets everything.

use test_support::{Program, Stage, StdioClient, Terminal, presence_of, unread, wait_for};
use unicode_width::UnicodeWidthStr as _;

/// Agents with long and wide texts, one of them offline, who hold something and have written to each other.
fn busy_stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for number in [10, 2, 1] {
        let role = "パーサーを書く 👩‍💻 and whatever else there is to do around it, at some length";
        stage.relay_ok(&["register", &format!("worker-{number}"), "--role", role]);
    }
    let mut gone =
        StdioClient::connected(stage.relay(&["mcp"]).start(&stage.folder.join("gone.log")), "a-plain-client");
    gone.call("register_agent", serde_json::json!({"name": "gone"}));
    gone.server.kill();
    wait_for("it is offline", || presence_of(&stage, "gone").filter(|presence| presence == "offline"));
    let pattern = "host/relay-mesh/src/commands/**/*.rs";
    stage.relay_ok(&["reserve", pattern, "--from", "worker-1", "--reason", "日本語の理由、それはとても長いです"]);
    let subject =
        "題名 that is longer than any terminal is wide, so that it has to be cut somewhere in the middle of it";
    stage.relay_ok(&["send", "worker-2,worker-10", "hello", "--subject", subject, "--from", "worker-1"]);
    stage
}

/// What a command prints on a terminal of so many columns, codes and all.
fn on_terminal(stage: &Stage, columns: usize, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let line = format!("stty cols {columns}; '{}' {}", stage.binary().display(), arguments.join(" "));
    let script = Program::new("script").args(["-qec", &line, "/dev/null"]).envs(stage.environment());
    script.envs(environment.iter().copied()).within(&stage.project).succeed().replace("\r\n", "\n")
}

#[test]
fn what_was_agreed_to_before_is_listed_on_a_terminal_and_shown_whole_in_a_pipe() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for command in ["install", "uninstall"] {
        let dry = on(&stage, 80, &[command, "claude-code", "--dry-run"]);
        assert!(dry.contains("FILE") && dry.contains("+++ "), "{dry}");
        let agreed = on(&stage, 80, &[command, "claude-code", "--yes"]);
        assert!(agreed.contains("FILE") && !agreed.contains("+++ "), "{agreed}");
    }
    assert!(stage.relay_ok(&["install", "claude-code", "--yes"]).contains("+++ "));
}

/// The same without colour.
fn on(stage: &Stage, columns: usize, arguments: &[&str]) -> String {
    on_terminal(stage, columns, arguments, &[("NO_COLOR", "1")])
}

#[test]
fn no_line_is_wider_than_the_terminal_whatever_is_in_it() {
    let stage = busy_stage();
    for columns in [40, 80, 200] {
        for arguments in [
            &["agents", "--all", "-v"][..],
            &["agents", "worker"],
            &["status"],
            &["status", "--agents", "--reservations", "--all"],
            &["reservations"],
            &["log"],
            &["threads"],
            &["threads", "--pairs"],
            &["read", "--list", "--agent", "worker-2"],
            &["read", "--sent", "--list", "--agent", "worker-1"],
        ] {
            let text = on(&stage, columns, arguments);
            assert!(!text.is_empty(), "{arguments:?}");
            for line in text.lines() {
                assert!(line.width() <= columns, "{columns} {arguments:?}: {line}");
            }
        }
    }
}

#[test]
fn a_terminal_shows_who_is_here_in_the_order_in_which_people_count_and_a_pipe_gets_everything() {
    let stage = busy_stage();
    let names = |text: &str| -> Vec<String> {
        text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    let shown = on(&stage, 100, &["agents"]);
    assert_eq!(names(&shown), ["worker-1", "worker-2", "worker-10", "1"], "{shown}");
    assert!(shown.ends_with("1 agent offline: `--all` shows them\n"), "{shown}");
    assert!(!shown.contains("BECAUSE"), "{shown}");
    let all = on(&stage, 160, &["agents", "--all", "--verbose"]);
    assert_eq!(names(&all), ["gone", "worker-1", "worker-2", "worker-10"], "{all}");
    assert!(all.contains("BECAUSE") && all.contains("its process no longer runs"), "{all}");
    let piped = stage.relay_ok(&["agents"]);
    assert!(piped.contains("gone") && piped.contains("BECAUSE") && piped.contains("at some length"), "{piped}");
    assert_eq!(on(&stage, 40, &["agents", "--json"]).lines().count(), 1, "JSON is what it was");
    let log = on(&stage, 50, &["log", "--verbose", "--type", "reserved"]);
    assert!(log.contains("commands/**/*.rs"), "{log}");
}

#[test]
fn states_are_coloured_on_a_terminal_unless_the_user_wants_none() {
    let stage = busy_stage();
    let is_coloured = |more: &[&str], environment: &[(&str, &str)]| {
        on_terminal(&stage, 80, &[&["agents"], more].concat(), environment).contains("\u{1b}[")
    };
    assert!(is_coloured(&[], &[]), "a terminal gets colour");
    assert!(!is_coloured(&[], &[("NO_COLOR", "1")]));
    assert!(!is_coloured(&[], &[("TERM", "dumb")]));
    assert!(!is_coloured(&["--color", "never"], &[]));
    assert!(is_coloured(&["--color", "always"], &[("NO_COLOR", "1")]), "what is typed counts for more");
    let piped = stage.relay(&["agents"]).env("COLUMNS", "40").succeed();
    assert!(
        !piped.contains('\u{1b}') && piped.contains("at some length"),
        "a pipe gets no colour and all words: {piped}"
    );
    let wanted = stage.relay_ok(&["agents", "--color", "always"]);
    assert!(wanted.contains("\u{1b}[") && wanted.contains("gone") && wanted.contains("at some length"), "{wanted}");
}

#[test]
fn a_status_that_is_followed_stays_in_its_place() {
    let stage = busy_stage();
    let line = [stage.binary().display().to_string(), "status".to_owned(), "--follow".to_owned()];
    let terminal = Terminal::start(&stage.folder, &stage.project, &stage.environment(), &line);
    terminal.wait_for("worker-10");
    stage.relay_ok(&["register", "the-newest"]);
    terminal.wait_for("the-newest");
    let screen = terminal.screen();
    assert_eq!(screen.lines().filter(|line| line.starts_with("data ")).count(), 1, "{screen}");
    terminal.kill();
}

#[test]
fn an_agent_that_is_gone_and_settled_can_be_forgotten_by_its_user() {
    let stage = busy_stage();
    stage.relay_ok(&["send", "gone", "one more", "--from", "worker-1"]);
    let refused = |agent: &str, words: &str| {
        let outcome = stage.run(&["forget", agent]);
        assert!(outcome.code == Some(4) && outcome.stderr.contains(words), "{outcome:?}");
    };
    refused("worker-2", "`worker-2` is idle");
    refused("worker-1", "`worker-1` holds reservations");
    refused("gone", "mail waits for `gone`: 1 unread");
    assert_eq!(stage.run(&["forget", "nobody"]).code, Some(3));
    // Its mail comes to an end once an agent of that name has read it.
    let mut back =
        StdioClient::connected(stage.relay(&["mcp"]).start(&stage.folder.join("back.log")), "a-plain-client");
    back.call("register_agent", serde_json::json!({"name": "gone"}));
    back.call("fetch_messages", serde_json::json!({"acknowledge": true}));
    // What is noted after an answer is lost with a process that is killed right then.
    wait_for("its mail is read", || unread(&stage, "gone").is_empty().then_some(()));
    back.server.kill();
    wait_for("it is offline", || presence_of(&stage, "gone").filter(|presence| presence == "offline"));
    let by_an_agent = stage.relay(&["forget", "gone"]).env("RELAY_OPENCODE_SESSION", "ses_1").run();
    assert!(by_an_agent.code == Some(4) && by_an_agent.stderr.contains("cannot forget an agent"), "{by_an_agent:?}");
    assert!(stage.relay_ok(&["agents"]).contains("gone"));
    let forgotten = stage.relay_ok(&["forget", "gone"]);
    assert_eq!(forgotten, "gone is forgotten; its mail stays until it is old\n");
    assert!(!stage.relay_ok(&["agents"]).contains("gone"));
    assert!(stage.relay_ok(&["log", "--type", "deleted"]).contains("agents=gone"));
}
