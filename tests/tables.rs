//! Tables on a terminal: as wide as it is, whatever is in them; what is left out there, and that a pipe gets everything.

use test_support::{Stage, StdioClient, Terminal, presence_of, wait_for};
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

fn on(stage: &Stage, columns: &str, arguments: &[&str]) -> String {
    stage.relay(arguments).env("COLUMNS", columns).succeed()
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
            let text = on(&stage, &columns.to_string(), arguments);
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
    let shown = on(&stage, "100", &["agents"]);
    assert_eq!(names(&shown), ["worker-1", "worker-2", "worker-10", "1"], "{shown}");
    assert!(shown.ends_with("1 agent offline: `--all` shows them\n"), "{shown}");
    assert!(!shown.contains("BECAUSE"), "{shown}");
    let all = on(&stage, "160", &["agents", "--all", "--verbose"]);
    assert_eq!(names(&all), ["gone", "worker-1", "worker-2", "worker-10"], "{all}");
    assert!(all.contains("BECAUSE") && all.contains("its process no longer runs"), "{all}");
    let piped = stage.relay_ok(&["agents"]);
    assert!(piped.contains("gone") && piped.contains("BECAUSE") && piped.contains("at some length"), "{piped}");
    assert_eq!(on(&stage, "40", &["agents", "--json"]).lines().count(), 1, "JSON is what it was");
    let log = on(&stage, "50", &["log", "--verbose", "--type", "reserved"]);
    assert!(log.contains("commands/**/*.rs"), "{log}");
}

#[test]
fn states_are_coloured_on_a_terminal_unless_the_user_wants_none() {
    let stage = busy_stage();
    let is_coloured = |arguments: &[&str], environment: &[(&str, &str)]| {
        let agents = [&["agents", "--all"], arguments].concat();
        stage.relay(&agents).env("COLUMNS", "80").envs(environment.iter().copied()).succeed().contains('\u{1b}')
    };
    assert!(is_coloured(&["--color", "always"], &[]));
    assert!(is_coloured(&["--color", "always"], &[("NO_COLOR", "1")]), "what is typed counts for more");
    assert!(!is_coloured(&[], &[]), "a pipe gets no colour");
    assert!(!is_coloured(&["--color", "never"], &[]));
    let on_terminal = |more: &[(&str, &str)]| {
        let mut environment = stage.environment();
        environment.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let raw = stage.folder.join("raw");
        // `script` keeps what a program writes to its terminal, codes and all.
        let line =
            format!("script -qec '{} agents' {} > /dev/null; echo all-done", stage.binary().display(), raw.display());
        let terminal = Terminal::start(&stage.folder, &stage.project, &environment, &["sh".to_owned()]);
        terminal.type_line(&line);
        terminal.wait_for("\nall-done");
        terminal.kill();
        std::fs::read_to_string(&raw).expect("written").contains("\u{1b}[")
    };
    assert!(on_terminal(&[]), "a terminal gets colour");
    assert!(!on_terminal(&[("NO_COLOR", "1")]));
    assert!(!on_terminal(&[("TERM", "dumb")]));
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
