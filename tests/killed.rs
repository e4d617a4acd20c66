//! Killed midway: each command that changes something is killed at its first write, its second, its first rename, and
//! so on. Afterwards everything can be read, and the repeated command works.

use std::borrow::Cow;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use test_support::{Stage, wait_for};

/// System calls that change files or sync them. Not every system has each.
const CALLS: [&str; 9] =
    ["write", "pwrite64", "?rename", "?renameat", "?renameat2", "fdatasync", "fsync", "?unlink", "unlinkat"];
/// The most calls of each kind at which it is killed.
const MOST_CALLS: usize = 6;

/// A command, its preparation, and what must hold after it was killed and repeated.
struct Case {
    before: &'static [&'static [&'static str]],
    killed: &'static [&'static str],
    /// The repetition. Several exit codes are allowed, because the killed one may have been almost done.
    again: (&'static [&'static str], &'static [i32]),
    /// Restores the state for the next run.
    after: &'static [&'static [&'static str]],
    holds: fn(&Stage, &str),
}

/// Placeholders in a command for the ids of the newest command and of bob's newest message.
const NEWEST_COMMAND: &str = "NEWEST COMMAND";
const NEWEST_MESSAGE: &str = "NEWEST MESSAGE";
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
            // The killed order was stored, or not; each command can be taken once.
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
            // The killed process took the first command, or the next one did.
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
    const SEND: &[&str] = &["send", "bob", "one message", "--from", "alice"];
    const READ: &[&str] = &["read", "--agent", "bob", "--unread", "--mark-read"];
    check(&Case {
        before: &[],
        killed: SEND,
        again: (SEND, &[0]),
        after: &[READ],
        holds: |stage, cut| {
            // The killed process has sent its message, or not.
            let messages = messages(stage, "bob", &["--unread"]);
            assert!((1..=2).contains(&messages.len()), "{cut}: {messages:?}");
            assert!(messages.iter().all(|message| message == "one message"), "{cut}: {messages:?}");
        },
    });
    check(&Case {
        before: &[&["send", "bob", "keep this"]],
        killed: READ,
        again: (READ, &[0]),
        after: &[],
        holds: |stage, cut| {
            assert!(messages(stage, "bob", &["--unread"]).is_empty(), "{cut}: it was read");
            assert_eq!(messages(stage, "bob", &["--last", "1"]), ["keep this"], "{cut}: it is kept");
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

#[test]
fn whoever_is_killed_while_taking_over_or_ending_leaves_nothing_half_done() {
    const TAKE_OVER: &[&str] = &["reserve", "src/x", "--force", "--from", "bob"];
    check(&Case {
        before: &[RESERVE],
        killed: TAKE_OVER,
        again: (TAKE_OVER, &[0]),
        after: &[&["release", "--all", "--from", "bob"], &["read", "--agent", "alice", "--unread", "--mark-read"]],
        holds: |stage, cut| {
            assert_eq!(stage.held(), ["bob src/x"], "{cut}");
            // The former holder is told, even if the process that took it was killed right after.
            let told = messages(stage, "alice", &["--unread"]);
            assert!(!told.is_empty() && told.iter().all(|one| one.starts_with("bob took over")), "{cut}: {told:?}");
        },
    });
    const NARROW: &[&str] = &["reserve", "src/x", "--narrow", "--from", "alice"];
    check(&Case {
        before: &[RESERVE],
        killed: NARROW,
        again: (NARROW, &[0]),
        after: &[RELEASE],
        holds: |stage, cut| assert_eq!(stage.held(), ["alice src/x"], "{cut}"),
    });
    check(&Case {
        before: &[&["cmd", "alice", "/test", "--from", "bob"], &["cmd", "take", "alice"]],
        killed: &["cmd", "done", NEWEST_COMMAND, "all green", "--from", "alice"],
        // It ends once: the repetition may find it ended.
        again: (&["cmd", "done", NEWEST_COMMAND, "all green", "--from", "alice"], &[0, 4]),
        after: &[],
        holds: |stage, cut| {
            let newest = newest(stage, &["cmd", "list", "--all", "--json"], "commands");
            assert_eq!((&newest["status"], &newest["result"]), (&"done".into(), &"all green".into()), "{cut}");
        },
    });
    check(&Case {
        before: &[&["send", "bob", "keep this"]],
        killed: &["ack", NEWEST_MESSAGE, "--agent", "bob"],
        again: (&["ack", NEWEST_MESSAGE, "--agent", "bob"], &[0]),
        after: &[],
        holds: |stage, cut| {
            assert!(messages(stage, "bob", &["--unread"]).is_empty(), "{cut}: it was acknowledged");
            assert_eq!(messages(stage, "bob", &["--last", "1"]), ["keep this"], "{cut}: it is kept");
        },
    });
    const WISH: &[&str] = &["wait-for", "bob", "--until-stale", "--by-mail", "--from", "alice"];
    check(&Case {
        before: &[],
        killed: WISH,
        again: (WISH, &[0]),
        after: &[&["read", "--agent", "alice", "--unread", "--mark-read"]],
        holds: |stage, cut| {
            // With this stage's settings bob goes offline at once, and followers of the log see it.
            let mut following = stage.relay(&["log", "--follow"]).start(&stage.folder.join("follow.log"));
            let told = wait_for("alice to be told", || {
                Some(messages(stage, "alice", &["--unread"])).filter(|all| !all.is_empty())
            });
            following.stop();
            assert_eq!(told.len(), 1, "{cut}: once, however often she wished it: {told:?}");
        },
    });
}

#[test]
fn whoever_is_killed_while_setting_something_up_leaves_it_whole() {
    check(&Case {
        before: &[&["reservations", "mode", "enforce"]],
        killed: &["reservations", "mode", "advise"],
        again: (&["reservations", "mode", "advise"], &[0]),
        after: &[],
        holds: |stage, cut| {
            let settings = stage.project.join(".relay-mesh.toml");
            let text = std::fs::read_to_string(settings).expect("it was written");
            assert_eq!(text, "[reservations]\nmode = \"advise\"\n", "{cut}");
        },
    });
    check(&Case {
        before: &[],
        killed: &["cmd", "allow", "alice", "/test"],
        again: (&["cmd", "allow", "alice", "/test"], &[0]),
        after: &[&["cmd", "disallow", "alice", "/test"]],
        holds: |stage, cut| assert_eq!(count(stage, &["cmd", "allowed", "--json"], "allowed"), 1, "{cut}"),
    });
    const UNITS: &[&str] = &["wake", "install", "--yes", "--", "true"];
    check(&Case {
        before: &[],
        killed: UNITS,
        again: (UNITS, &[0]),
        after: &[&["wake", "uninstall", "--yes"]],
        holds: |stage, cut| assert_eq!(stage.tree(&stage.home.join(".config/systemd/user")).len(), 2, "{cut}"),
    });
    check(&Case {
        before: &[UNITS],
        killed: &["wake", "uninstall", "--yes"],
        again: (&["wake", "uninstall", "--yes"], &[0]),
        after: &[],
        holds: |stage, cut| assert!(!stage.home.join(".config/systemd").exists(), "{cut}"),
    });
}

#[test]
fn whoever_is_killed_while_putting_a_guard_in_or_out_leaves_the_hook_that_was_there() {
    // No hook, a script that our lines can be inserted into, and one that is kept beside ours.
    for old in [None, Some("#!/bin/sh\necho mine\n"), Some("#!/usr/bin/env python3\nprint('mine')\n")] {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let hook = stage.project.join(".git/hooks/pre-commit");
        if let Some(text) = old {
            std::fs::write(&hook, text).expect("the project is writable");
            std::fs::set_permissions(&hook, Permissions::from_mode(0o755)).expect("it is ours");
        }
        let hooks = || stage.tree(&stage.project.join(".git/hooks"));
        let before = hooks();
        let mut kills = 0;
        for (call, nth) in CALLS.into_iter().flat_map(|call| (1..=3).map(move |nth| (call, nth))) {
            for command in ["install", "uninstall"] {
                let ended = end_at(&stage, &["guard".into(), command.into()], call, nth);
                kills += usize::from(ended == Ended::Killed);
                let cut = format!("{command} over {old:?} killed at {call} number {nth}");
                // Git runs the old hook, or ours, which runs the old one.
                assert!(old.is_none() || hook.exists(), "{cut}");
                stage.relay_ok(&["guard", command]);
                match command {
                    "install" => assert_eq!(stage.run(&["guard", "status"]).code, Some(0), "{cut}: it stands"),
                    _ => assert_eq!(hooks(), before, "{cut}: every byte is as it was"),
                }
            }
        }
        assert!(kills > 2, "{old:?}: killed {kills} times");
    }
}

/// The bodies of an agent's mail, without marking it read.
fn messages(stage: &Stage, agent: &str, which: &[&str]) -> Vec<String> {
    let read = stage.relay_ok(&[&["read", "--agent", agent, "--peek", "--json"], which].concat());
    let mail: Value = serde_json::from_str(&read).expect("JSON");
    let messages = mail["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|message| message["body"].as_str().unwrap_or_default().to_owned()).collect()
}

fn check(case: &Case) {
    let stage = &Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    // Every agent counts as away at once, and a wake does not wait.
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
            let ended = end_at(stage, &meant(stage, case.killed), call, nth);
            kills += usize::from(ended == Ended::Killed);
            let cut = format!("{:?} killed at {call} number {nth}", case.killed);
            let status = stage.run(&["status", "--json"]);
            let told: Value = serde_json::from_str(&status.stdout).unwrap_or_else(|error| panic!("{cut}: {error}"));
            assert_eq!((status.code, &told["damaged"]), (Some(0), &Value::Array(Vec::new())), "{cut}: {status:?}");
            let log = stage.run(&["log"]);
            assert_eq!((log.code, log.stderr.as_str()), (Some(0), ""), "{cut}: every line of the log is whole");
            let (again, codes) = case.again;
            let again = meant(stage, again);
            let done = stage.run(&again.iter().map(AsRef::as_ref).collect::<Vec<_>>());
            assert!(done.code.is_some_and(|code| codes.contains(&code)), "{cut}, then {again:?}: {done:?}");
            (case.holds)(stage, &cut);
            for command in case.after {
                stage.relay_ok(command);
            }
            if ended == Ended::ByItself {
                break;
            }
        }
    }
    assert!(kills > 1, "{:?} was killed {kills} times", case.killed);
}

/// The command with its placeholders replaced.
fn meant<'c>(stage: &Stage, command: &[&'c str]) -> Vec<Cow<'c, str>> {
    let id = |newest: Value| Cow::Owned(newest["id"].as_str().expect("an id").to_owned());
    let word = |word: &&'c str| match *word {
        NEWEST_COMMAND => id(newest(stage, &["cmd", "list", "--all", "--json"], "commands")),
        NEWEST_MESSAGE => id(newest(stage, &["read", "--agent", "bob", "--peek", "--last", "1", "--json"], "messages")),
        word => Cow::Borrowed(word),
    };
    command.iter().map(word).collect()
}

#[derive(PartialEq, Eq)]
enum Ended {
    /// It was killed.
    Killed,
    /// A program that it started was killed, and it gave up.
    InVain,
    /// It made fewer such calls and succeeded.
    ByItself,
}

/// Runs a command and kills its process that makes a system call for the nth time.
fn end_at(stage: &Stage, command: &[Cow<'_, str>], call: &str, nth: usize) -> Ended {
    match stage.run_killed_at(call, nth, command.iter().map(AsRef::<str>::as_ref)).code {
        None => Ended::Killed,
        Some(0) => Ended::ByItself,
        Some(_) => Ended::InVain,
    }
}

/// The last entry of a list that a command prints.
fn newest(stage: &Stage, arguments: &[&str], list: &str) -> Value {
    let told: Value = serde_json::from_str(&stage.relay_ok(arguments)).expect("JSON");
    told[list].as_array().and_then(|all| all.last()).cloned().expect("there is one")
}

fn count(stage: &Stage, arguments: &[&str], list: &str) -> usize {
    let told: Value = serde_json::from_str(&stage.relay_ok(arguments)).expect("JSON");
    told[list].as_array().expect("a list").len()
}

/// Finishes every taken command.
fn finish_all(stage: &Stage) {
    let told: Value = serde_json::from_str(&stage.relay_ok(&["cmd", "list", "--json"])).expect("JSON");
    for command in told["commands"].as_array().expect("a list") {
        stage.relay_ok(&["cmd", "done", command["id"].as_str().expect("an id"), "over", "--from", "alice"]);
    }
}
