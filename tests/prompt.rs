//! The cheat sheet for prompts: short enough, and every command in it works, with a server and without.

use test_support::{Host, Stage};

/// 300 tokens, at four bytes each.
const BYTES: usize = 300 * 4;

#[test]
fn every_command_of_the_cheat_sheet_works_without_a_host() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    follow_the_sheet(&stage);
}

#[test]
fn every_command_of_the_cheat_sheet_works_with_a_host() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let _host = Host::start(&stage);
    follow_the_sheet(&stage);
}

#[test]
fn a_harness_is_told_of_its_tools() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    let told = stage.relay_ok(&["prompt", "--harness", "claude-code"]);
    assert!(told.contains("register_agent") && told.len() / 4 <= 300, "{told}");
    let refused = stage.run(&["prompt", "--harness", "nope"]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
}

/// Runs every command in backticks, in order, with its placeholders filled in.
fn follow_the_sheet(stage: &Stage) {
    let sheet = stage.relay_ok(&["prompt"]);
    assert!(sheet.trim_end().len() <= BYTES, "{} bytes are more than 300 tokens", sheet.trim_end().len());
    assert_eq!(sheet.lines().count(), 6, "a head and five lines");
    let mut id = String::new();
    let mut ran = 0;
    for command in sheet.split('`').skip(1).step_by(2).filter_map(|words| words.strip_prefix("relay-mesh ")) {
        let command = command.replace("NAME", "alice").replace("TEXT", "hello").replace("/COMMAND", "/review");
        // No waiting: the command ordered from oneself is taken only below.
        let command = command.replace(" --wait", "").replace("ID", &id).replace("COMMAND", "send").replace('\'', "");
        let program = stage.relay(&command.split(' ').collect::<Vec<_>>());
        let outcome = program.env("RELAY_AGENT", "alice").run();
        assert_eq!(outcome.code, Some(0), "{command}: {}", outcome.stderr);
        if command.starts_with("cmd take") {
            id = outcome.stdout.split_whitespace().next().unwrap_or_default().to_owned();
        }
        ran += 1;
    }
    assert_eq!(ran, 12, "{sheet}");
}
