//! Killed while logs grow old: at one system call after the other of the send that seals a segment and writes its index,
//! and of the cleanup that deletes old segments. What was acknowledged is there, once, and the repeated command ends the
//! work.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use test_support::{Program, Stage};

/// The system calls that change files.
const CALLS: [&str; 10] = [
    "write",
    "pwrite64",
    "?rename",
    "?renameat",
    "?renameat2",
    "fdatasync",
    "fsync",
    "?unlink",
    "unlinkat",
    "ftruncate",
];
/// It is killed at each of the first calls of a kind, and then at every so manieth until it ends by itself.
const FIRST_CALLS: usize = 12;
const THEN_EACH: usize = 17;
/// A segment of a log is sealed when it has grown to this many bytes.
const SEGMENT: u64 = 1 << 20;

/// A data folder that is put back before each kill.
struct Start {
    stage: Stage,
    kept: PathBuf,
}

impl Start {
    fn of(stage: Stage) -> Start {
        let kept = stage.home.join("kept");
        copy(&stage.data, &kept);
        Start { stage, kept }
    }

    /// Kills a command at each of its calls, and then looks at what is left and at what the repeated command does.
    fn kill_everywhere(&self, command: &[&str], holds: impl Fn(&str)) {
        let mut kills = 0;
        for call in CALLS {
            for nth in (1..=FIRST_CALLS).chain((FIRST_CALLS + THEN_EACH..).step_by(THEN_EACH)) {
                fs::remove_dir_all(&self.stage.data).expect("it was there");
                copy(&self.kept, &self.stage.data);
                let ended = self.stage.run_killed_at(call, nth, command);
                let cut = format!("{command:.60?} killed at {call} number {nth}");
                let status: Value = serde_json::from_str(&self.stage.relay_ok(&["status", "--json"])).expect("JSON");
                assert_eq!(status["damaged"], Value::Array(Vec::new()), "{cut}");
                let again = self.stage.run(command);
                assert_eq!(again.code, Some(0), "{cut}, then: {again:?}");
                holds(&cut);
                let doctor = self.stage.run(&["doctor", "--store", "--all"]);
                assert_eq!(doctor.code, Some(0), "{cut}: {doctor:?}");
                if ended.code.is_some() {
                    break;
                }
                kills += 1;
            }
        }
        assert!(kills > 8, "{command:.60?} was killed {kills} times");
    }
}

fn copy(from: &PathBuf, to: &PathBuf) {
    Program::new("cp").arg("-a").arg(from).arg(to).succeed();
}

fn ids(stage: &Stage, which: &[&str]) -> Vec<String> {
    let read = stage.relay_ok(&[&["read", "--agent", "bob", "--peek", "--last", "100", "--json"], which].concat());
    let mail: Value = serde_json::from_str(&read).expect("JSON");
    let messages = mail["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|message| message["id"].as_str().expect("an id").to_owned()).collect()
}

/// A stage with mail for bob of about so many bytes, sent by a clock that is wrong by so many seconds.
fn stage_with_mail(bytes: u64, wrong_by: i64) -> (Stage, Vec<String>) {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    // A cleanup comes when it is asked for.
    stage.configure("[retention]\nautomatic = false\n[wake]\ntimeout = '1ms'\n");
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    let mut sent = Vec::new();
    for number in 0..bytes / 100_000 {
        let body = format!("{number} {}", "x".repeat(99_000));
        let send = stage.relay(&["send", "bob", "--stdin", "--from", "alice", "--json"]).input(body);
        let told = send.env("RELAY_TEST_CLOCK_WRONG_BY", wrong_by.to_string()).succeed();
        let told: Value = serde_json::from_str(&told).expect("JSON");
        sent.push(told["id"].as_str().expect("an id").to_owned());
    }
    (stage, sent)
}

#[test]
fn whoever_is_killed_while_sealing_a_segment_loses_nothing_and_doubles_nothing() {
    let (stage, sent) = stage_with_mail(SEGMENT, 0);
    let inbox = stage.data.join("agents/bob/inbox.jsonl");
    let room = SEGMENT - fs::metadata(&inbox).expect("an inbox").len();
    let long = "y".repeat(99_000);
    assert!(room < long.len() as u64, "the next message fills it");
    let start = Start::of(stage);
    let stage = &start.stage;
    start.kill_everywhere(&["send", "bob", &long, "--from", "alice", "--idempotency-key", "k"], |cut| {
        assert!(stage.data.join("agents/bob/inbox.jsonl.0").exists(), "{cut}: the segment is sealed");
        let there = ids(stage, &[]);
        assert_eq!((there.len(), &there[..sent.len()]), (sent.len() + 1, &sent[..]), "{cut}");
        assert_eq!(ids(stage, &["--unread"]), there, "{cut}");
        stage.relay_ok(&["ack", &sent[0], "--agent", "bob"]);
        assert_eq!(ids(stage, &["--unread"]), there[1..], "{cut}: one of a sealed segment is found and acknowledged");
        stage.relay_ok(&["message", &sent[1]]);
    });
}

#[test]
fn whoever_is_killed_while_deleting_old_mail_deletes_nothing_that_waits() {
    const LONG_AGO: i64 = -20 * 86_400;
    let (stage, old) = stage_with_mail(3 * SEGMENT, LONG_AGO);
    let last = old.len() - 1;
    // The last of the old ones still waits.
    for id in &old[..last] {
        let acknowledge = stage.relay(&["ack", id, "--agent", "bob"]);
        acknowledge.env("RELAY_TEST_CLOCK_WRONG_BY", LONG_AGO.to_string()).succeed();
    }
    stage.relay_ok(&["send", "bob", "new", "--from", "alice"]);
    let waiting = ids(&stage, &["--unread"]);
    assert_eq!((waiting.len(), &waiting[0]), (2, &old[last]));
    let segments = |stage: &Stage| -> BTreeSet<String> {
        let files = fs::read_dir(stage.data.join("agents/bob")).expect("a folder").flatten();
        let names = files.filter_map(|file| file.file_name().into_string().ok());
        names.filter(|name| name.starts_with("inbox.jsonl.")).collect()
    };
    let before = segments(&stage);
    assert!(before.len() > 1, "{before:?}");
    let start = Start::of(stage);
    let stage = &start.stage;
    start.kill_everywhere(&["gc"], |cut| {
        assert_eq!(ids(stage, &["--unread"]), waiting, "{cut}");
        let left = segments(stage);
        assert!(left.len() < before.len() && left.is_subset(&before), "{cut}: {left:?} of {before:?}");
        stage.relay_ok(&["message", &waiting[0]]);
        stage.relay_ok(&["ack", &waiting[0], "--agent", "bob"]);
        assert_eq!(ids(stage, &["--unread"]), waiting[1..], "{cut}");
    });
}
