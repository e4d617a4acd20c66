//! A clock that jumps by an hour, a day or a year, forwards and backwards, and stale locks of dead processes, against
//! the real binary: nothing is lost, and nothing is granted twice.

use std::fs::OpenOptions;

use serde_json::Value;
use test_support::{Outcome, Stage};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    stage
}

/// Runs a command with a clock that is wrong by this many seconds.
fn at(stage: &Stage, wrong_by: i64, arguments: &[&str]) -> Outcome {
    stage.relay(arguments).env("RELAY_TEST_CLOCK_WRONG_BY", wrong_by.to_string()).run()
}

fn ok(stage: &Stage, wrong_by: i64, arguments: &[&str]) -> String {
    let outcome = at(stage, wrong_by, arguments);
    assert_eq!(outcome.code, Some(0), "{arguments:?} while the clock is wrong by {wrong_by} s: {outcome:?}");
    outcome.stdout
}

/// The message texts, whatever their times.
fn bodies(told: &str) -> Vec<String> {
    let mail: Value = serde_json::from_str(told).expect("JSON");
    let messages = mail["messages"].as_array().cloned().unwrap_or_default();
    let body = |message: &Value| message["body"].as_str().unwrap_or_default().to_owned();
    let mut bodies: Vec<String> = messages.iter().map(body).collect();
    bodies.sort();
    bodies
}

#[test]
fn mail_and_the_event_log_lose_nothing_whatever_the_clock_says() {
    let stage = stage();
    let jumps = [0, -HOUR, 2 * HOUR, -DAY, 400 * DAY, -400 * DAY, 0];
    let mut sent = Vec::new();
    for (number, jump) in jumps.into_iter().enumerate() {
        let message = format!("message {number}");
        ok(&stage, jump, &["send", "bob", &message, "--from", "alice"]);
        ok(&stage, jump, &["heartbeat", "--from", "alice", "--task", &message]);
        let status: Value = serde_json::from_str(&ok(&stage, jump, &["status", "--json"])).expect("JSON");
        assert_eq!((&status["waiting"], &status["damaged"]), (&(number + 1).into(), &Value::Array(Vec::new())));
        sent.push(message);
    }
    let log = ok(&stage, 0, &["log", "--json", "--type", "sent"]);
    assert_eq!(log.lines().count(), jumps.len());
    assert_eq!(bodies(&ok(&stage, -DAY, &["read", "--agent", "bob", "--unread", "--peek", "--json"])), sent);
    assert_eq!(bodies(&ok(&stage, DAY, &["read", "--agent", "bob", "--unread", "--mark-read", "--json"])), sent);
    assert!(bodies(&ok(&stage, -DAY, &["read", "--agent", "bob", "--unread", "--peek", "--json"])).is_empty());
}

#[test]
fn what_is_reserved_is_never_held_by_two_whatever_the_clock_says() {
    let stage = stage();
    let held = |wrong_by| {
        let told: Value = serde_json::from_str(&ok(&stage, wrong_by, &["reservations", "--json"])).expect("JSON");
        let all = told["reservations"].as_array().cloned().unwrap_or_default();
        let owner = |one: &Value| one["owner"].as_str().unwrap_or_default().to_owned();
        all.iter().map(owner).collect::<Vec<_>>().join(" ")
    };
    let bob = ["reserve", "src/x", "--from", "bob"];
    ok(&stage, 0, &["reserve", "src/**", "--from", "alice"]);
    for earlier in [-HOUR, -DAY, -400 * DAY] {
        assert_eq!(at(&stage, earlier, &bob).code, Some(6), "the clock went back by {earlier} s");
    }
    // After an hour the reservation is bob's; then the clock is corrected.
    ok(&stage, HOUR + 1, &bob);
    for later in [HOUR + 1, 0, -DAY] {
        assert_eq!(held(later), "bob", "at {later}");
        assert_eq!(at(&stage, later, &["reserve", "src/**", "--from", "alice"]).code, Some(6), "at {later}");
    }
    let asked: Value = serde_json::from_str(&ok(&stage, 0, &["cmd", "bob", "/test", "--json"])).expect("JSON");
    // A command ordered in time can still be taken after the clock goes back, and ends once.
    ok(&stage, -DAY, &["cmd", "take", "bob"]);
    let id = asked["id"].as_str().expect("an id");
    ok(&stage, -2 * DAY, &["cmd", "done", id, "fine", "--from", "bob"]);
    assert_ne!(at(&stage, DAY, &["cmd", "done", id, "again", "--from", "bob"]).code, Some(0));
}

#[test]
fn a_lock_that_the_dead_have_left_holds_nobody_up() {
    let stage = stage();
    let locks = ["agents/bob/.inbox.lock", "agents/bob/.receipts.lock", ".global.lock"];
    ok(&stage, 0, &["send", "bob", "before", "--from", "alice"]);
    ok(&stage, 0, &["read", "--agent", "bob"]);
    for lock in locks {
        // The file stays, as after every crash, with its content.
        assert!(OpenOptions::new().write(true).open(stage.data.join(lock)).is_ok(), "{lock} is there");
        ok(&stage, 0, &["send", "bob", "with it", "--from", "alice"]);
        // And with a content that no release of ours ever wrote.
        std::fs::write(stage.data.join(lock), "4711 a process that is long gone\n").expect("the stage is writable");
        ok(&stage, 0, &["send", "bob", "after it", "--from", "alice"]);
    }
    let all = bodies(&ok(&stage, 0, &["read", "--agent", "bob", "--last", "100", "--peek", "--json"]));
    assert_eq!(all.len(), 1 + 2 * locks.len(), "{all:?}");
}
