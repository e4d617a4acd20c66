//! Killed in the middle: each command that changes something is ended by force at its first write, its second, at
//! its first rename, and so on. Whatever it left, everything can be read, and the same command done again does
//! what it should.

use serde_json::Value;
use test_support::{Program, Stage};

/// What changes files, or waits for them to be on disk. Not every system has each.
const CALLS: [&str; 9] =
    ["write", "pwrite64", "?rename", "?renameat", "?renameat2", "fdatasync", "fsync", "?unlink", "unlinkat"];
/// It is killed at most at so many calls of each kind.
const MOST_CALLS: usize = 6;

/// A command, what came before it, and what must hold after it was killed and then done once more.
struct Case {
    before: &'static [&'static [&'static str]],
    killed: &'static [&'static str],
    /// Done again. Its exit code may be one of these: what was killed may have been all but over.
    again: (&'static [&'static str], &'static [i32]),
    /// Puts everything back, for the next time.
    after: &'static [&'static [&'static str]],
    holds: fn(&Stage, &str),
}

const RESERVE: &[&str] = &["reserve", "src/**", "--from", "alice"];
const RELEASE: &[&str] = &["release", "--all", "--from", "alice"];

#[test]
fn whoever_is_killed_in_the_middle_of_a_command_leaves_nothing_half_done() {
    check(&Case {
        before: &[],
        killed: RESERVE,
        again: (RESERVE, &[0]),
        after: &[RELEASE],
        holds: |stage, cut| {
            assert_eq!(count(stage, &["reservations", "--json"], "reservations"), 1, "{cut}");
            assert_eq!(stage.run(&["reserve", "src/x", "--from", "bob"]).code, Some(6), "{cut}");
        },
    });
    check(&Case {
        before: &[RESERVE],
        killed: RELEASE,
        again: (RELEASE, &[0, 3]),
        after: &[],
        holds: |stage, cut| {
            assert_eq!(count(stage, &["reservations", "--json"], "reservations"), 0, "{cut}");
            stage.relay_ok(&["reserve", "src/x", "--from", "bob"]);
            stage.relay_ok(&["release", "--all", "--from", "bob"]);
        },
    });
    const BEAT: &[&str] = &["heartbeat", "--task", "the parser", "--from", "alice"];
    check(&Case {
        before: &[],
        killed: BEAT,
        again: (BEAT, &[0]),
        after: &[&["heartbeat", "--task", "", "--from", "alice"]],
        holds: |stage, cut| assert!(stage.relay_ok(&["agents"]).contains("the parser"), "{cut}"),
    });
    const TAKE: &[&str] = &["cmd", "take", "alice"];
    check(&Case {
        before: &[],
        killed: &["cmd", "alice", "/test", "--from", "bob"],
        again: (&["cmd", "alice", "/test", "--from", "bob"], &[0]),
        after: &[],
        holds: |stage, cut| {
            // The one that was killed was asked for, or not; each can be taken once.
            let asked = count(stage, &["cmd", "list", "--json"], "commands");
            assert!((1..=2).contains(&asked), "{cut}: {asked}");
            for _ in 0..asked {
                stage.relay_ok(TAKE);
            }
            assert_eq!(stage.run(TAKE).code, Some(3), "{cut}");
            finish_all(stage);
        },
    });
    check(&Case {
        before: &[&["cmd", "alice", "/one", "--from", "bob"], &["cmd", "alice", "/two", "--from", "bob"]],
        killed: TAKE,
        again: (TAKE, &[0]),
        after: &[],
        holds: |stage, cut| {
            // The first was taken by the one that was killed, or by the one after it.
            let left = if stage.run(TAKE).code == Some(0) { 1 } else { 0 };
            assert_eq!(stage.run(TAKE).code, Some(3), "{cut}: {left}");
            assert_eq!(count(stage, &["cmd", "list", "--json"], "commands"), 2, "{cut}");
            finish_all(stage);
        },
    });
    check(&Case {
        before: &[&["send", "bob", "keep this"], &["register", "carol"], &["register", "dora"]],
        killed: &["gc", "--stale", "0s"],
        again: (&["gc", "--stale", "0s"], &[0]),
        after: &[&["register", "alice"]],
        holds: |stage, cut| {
            assert_eq!(test_support::agents(stage), ["bob"], "{cut}: who has mail stays, all others go");
            assert!(stage.relay_ok(&["read", "--agent", "bob", "--peek"]).contains("keep this"), "{cut}");
        },
    });
    check(&Case {
        before: &[],
        killed: &["wake", "get up", "--to", "bob", "--from", "alice"],
        again: (&["wake", "get up", "--to", "bob", "--from", "alice"], &[0]),
        after: &[],
        holds: |stage, cut| {
            let trigger = std::fs::read(stage.data.join("wake/trigger")).expect("it was written");
            let told: Value = serde_json::from_slice(&trigger).unwrap_or_else(|error| panic!("{cut}: {error}"));
            assert_eq!(told["text"], "get up");
            assert!(stage.relay_ok(&["read", "--agent", "bob", "--peek"]).contains("get up"), "{cut}");
        },
    });
}

#[test]
fn whoever_is_killed_while_writing_or_reading_loses_no_mail() {
    const SEND: &[&str] = &["send", "bob", "one letter", "--from", "alice"];
    const READ: &[&str] = &["read", "--agent", "bob", "--unread", "--mark-read"];
    check(&Case {
        before: &[],
        killed: SEND,
        again: (SEND, &[0]),
        after: &[READ],
        holds: |stage, cut| {
            // The one that was killed has sent its letter, or not.
            let letters = letters(stage, &["--unread"]);
            assert!((1..=2).contains(&letters.len()), "{cut}: {letters:?}");
            assert!(letters.iter().all(|letter| letter == "one letter"), "{cut}: {letters:?}");
        },
    });
    check(&Case {
        before: &[&["send", "bob", "keep this"]],
        killed: READ,
        again: (READ, &[0]),
        after: &[],
        holds: |stage, cut| {
            assert!(letters(stage, &["--unread"]).is_empty(), "{cut}: it was read");
            assert_eq!(letters(stage, &["--last", "1"]), ["keep this"], "{cut}: it is kept");
        },
    });
    const JOIN: &[&str] = &["register", "carol"];
    check(&Case {
        before: &[],
        killed: JOIN,
        again: (JOIN, &[0]),
        after: &[&["gc", "--stale", "0s"], &["register", "alice"], &["register", "bob"]],
        holds: |stage, cut| assert_eq!(test_support::agents(stage), ["alice", "bob", "carol"], "{cut}"),
    });
}

/// The bodies of bob's mail, looked at.
fn letters(stage: &Stage, which: &[&str]) -> Vec<String> {
    let read = stage.relay_ok(&[&["read", "--agent", "bob", "--peek", "--json"], which].concat());
    let mail: Value = serde_json::from_str(&read).expect("JSON");
    let messages = mail["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|message| message["body"].as_str().unwrap_or_default().to_owned()).collect()
}

fn check(case: &Case) {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    // By then everybody is silent who says nothing just now; and a wake waits for nobody.
    stage.configure("away-after = '0s'\n[wake]\ntimeout = '1ms'\n");
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    let mut kills = 0;
    for call in CALLS {
        for nth in 1..=MOST_CALLS {
            for command in case.before {
                stage.relay_ok(command);
            }
            let is_over = !killed_at(&stage, case.killed, call, nth);
            kills += usize::from(!is_over);
            let cut = format!("{:?} killed at {call} number {nth}", case.killed);
            let status = stage.run(&["status", "--json"]);
            let told: Value = serde_json::from_str(&status.stdout).unwrap_or_else(|error| panic!("{cut}: {error}"));
            assert_eq!((status.code, &told["damaged"]), (Some(0), &Value::Array(Vec::new())), "{cut}: {status:?}");
            let log = stage.run(&["log"]);
            assert_eq!((log.code, log.stderr.as_str()), (Some(0), ""), "{cut}: every line of the log is whole");
            let (again, codes) = case.again;
            let done = stage.run(again);
            assert!(done.code.is_some_and(|code| codes.contains(&code)), "{cut}, then {again:?}: {done:?}");
            (case.holds)(&stage, &cut);
            for command in case.after {
                stage.relay_ok(command);
            }
            if is_over {
                break;
            }
        }
    }
    assert!(kills > 1, "{:?} was killed {kills} times", case.killed);
}

/// Runs a command and kills it where it makes a system call for the nth time; whether it came so far.
fn killed_at(stage: &Stage, command: &[&str], call: &str, nth: usize) -> bool {
    let inject = format!("inject={call}:signal=KILL:when={nth}");
    let outcome = Program::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject])
        .arg(stage.binary())
        .args(command)
        .envs(stage.environment())
        .within(&stage.project)
        .run();
    // It ends as what it traced did.
    assert!(!outcome.stderr.contains("strace: "), "{outcome:?}");
    outcome.code.is_none()
}

fn count(stage: &Stage, arguments: &[&str], list: &str) -> usize {
    let told: Value = serde_json::from_str(&stage.relay_ok(arguments)).expect("JSON");
    told[list].as_array().expect("a list").len()
}

/// Ends every command that was taken.
fn finish_all(stage: &Stage) {
    let told: Value = serde_json::from_str(&stage.relay_ok(&["cmd", "list", "--json"])).expect("JSON");
    for command in told["commands"].as_array().expect("a list") {
        stage.relay_ok(&["cmd", "done", command["id"].as_str().expect("an id"), "over", "--from", "alice"]);
    }
}
