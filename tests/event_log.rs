//! The event log and the cleanup of old data, through the real binary.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::thread;

use serde_json::Value;
use test_support::{Host, Stage, wait_for};

#[test]
fn a_follower_is_told_everything_once_while_others_work_and_sweep() {
    const WORKERS: usize = 4;
    const ROUNDS: usize = 6;
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for worker in 0..WORKERS {
        stage.relay_ok(&["register", &name(worker)]);
    }
    let mut follower = stage.relay(&["log", "--follow", "--json"]).start(&stage.folder.join("follower.log"));
    let lines = BufReader::new(follower.child.stdout.take().expect("its output is a pipe")).lines();
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let stage = &stage;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let path = format!("{}/{round}", name(worker));
                    stage.relay_ok(&["reserve", &path, "--from", &name(worker)]);
                    stage.relay_ok(&["release", &path, "--from", &name(worker)]);
                    stage.relay_ok(&["gc"]);
                }
            });
        }
    });
    // The last event ends the following.
    stage.relay_ok(&["register", "the-last"]);
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in lines {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let word = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        if word("agent") == "the-last" {
            break;
        }
        let what = format!("{} {}", word("event"), event["patterns"][0].as_str().unwrap_or_default());
        told.entry(word("agent")).or_default().push(what);
    }
    for worker in 0..WORKERS {
        let agent = name(worker);
        let each =
            (0..ROUNDS).flat_map(|round| [format!("reserved {agent}/{round}"), format!("released {agent}/{round}")]);
        let expected: Vec<String> = std::iter::once("registered ".to_owned()).chain(each).collect();
        assert_eq!(told[&agent], expected, "what {agent} did, once and in order");
    }
    assert_eq!(follower.stop(), Some(0), "asked to stop, it stops in order");
    let only = stage.relay_ok(&["log", "--agent", "worker-1", "--type", "released", "--since", "1h"]);
    assert_eq!(only.lines().count(), ROUNDS, "{only}");
    assert!(only.lines().all(|line| line.contains("  released  agent=worker-1  ")), "{only}");
    assert_eq!(stage.relay_ok(&["log", "--since", "2999-01-01T00:00:00Z"]), "");
    // Unknown fields of an event are left out, and times are readable.
    let joined = stage.relay_ok(&["log", "--agent", "worker-1", "--type", "registered"]);
    assert!(joined.ends_with("Z  registered  agent=worker-1\n"), "{joined}");
    let reserved = stage.relay_ok(&["log", "--agent", "worker-1", "--type", "reserved"]);
    assert!(reserved.lines().all(|line| line.contains("  expires=20") && line.ends_with('Z')), "{reserved}");
}

#[test]
fn sweeping_takes_what_is_over_and_nothing_else() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for agent in ["alice", "bob", "carol"] {
        stage.relay_ok(&["register", agent]);
    }
    stage.relay_ok(&["reserve", "short", "--ttl", "1s", "--from", "alice"]);
    stage.relay_ok(&["reserve", "long", "--from", "bob"]);
    stage.relay_ok(&["send", "carol", "still unread"]);
    // Waits as long as the reservation lasts, for a command that no agent takes.
    assert_eq!(stage.run(&["cmd", "bob", "/x", "--ttl", "1s", "--wait"]).code, Some(7));
    let json = |arguments: &[&str]| -> Value { serde_json::from_str(&stage.relay_ok(arguments)).expect("JSON") };
    let looked = json(&["gc", "--dry-run", "--stale", "0s", "--json"]);
    assert_eq!(
        (&looked["reservations"][0], looked["reservations"].as_array().map(Vec::len)),
        (&"alice short".into(), Some(1))
    );
    assert_eq!(looked["agents"], Value::Array(Vec::new()), "all of them were heard of just now: {looked}");
    let listed = || json(&["reservations", "--expired", "--json"])["reservations"].as_array().map(Vec::len);
    assert_eq!(listed(), Some(2), "looking changes nothing");
    assert!(stage.relay_ok(&["gc", "--expired-only"]).contains("removed 1 reservation: alice short"));
    assert_eq!(listed(), Some(1));
    stage.configure("away-after = '0s'\n");
    let deleted = json(&["gc", "--stale", "0s", "--json"]);
    assert_eq!(deleted["agents"], serde_json::json!(["alice"]), "bob holds a reservation, carol has mail");
    assert_eq!(stage.relay_ok(&["gc", "--stale", "0s"]).trim(), "nothing is finished and old");
    let log = stage.relay_ok(&["log", "--type", "deleted"]);
    assert_eq!(log.lines().count(), 2, "{log}");
}

#[test]
fn a_host_sweeps_by_itself() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["register", "alice"]);
    stage.relay_ok(&["reserve", "short", "--ttl", "1s", "--from", "alice"]);
    // Waits as long as the reservation lasts, for a command that no agent takes.
    assert_eq!(stage.run(&["cmd", "alice", "/x", "--ttl", "1s", "--wait"]).code, Some(7));
    let _host = Host::start(&stage);
    let deleted = wait_for("the server has cleaned up", || {
        let log = stage.relay_ok(&["log", "--type", "deleted"]);
        (!log.is_empty()).then_some(log)
    });
    assert!(deleted.contains("reservations=1"), "{deleted}");
    assert!(!stage.relay_ok(&["reservations", "--expired"]).contains("short"));
}

#[test]
fn who_is_killed_while_sweeping_leaves_nothing_half_done() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for number in 0..20 {
        stage.relay_ok(&["register", &name(number)]);
    }
    stage.relay_ok(&["send", "worker-3", "keep this"]);
    stage.configure("away-after = '0s'\n");
    let victims: Vec<_> = (0..6)
        .map(|number| stage.relay(&["gc", "--stale", "0s"]).start(&stage.folder.join(format!("victim-{number}.log"))))
        .collect();
    for mut victim in victims {
        victim.kill();
    }
    stage.relay_ok(&["gc", "--stale", "0s"]);
    let agents: Value = serde_json::from_str(&stage.relay_ok(&["agents", "--json"])).expect("JSON");
    let left: Vec<&str> =
        agents["agents"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(left, ["worker-3"], "the next one finishes it, and who has mail stays");
    assert!(stage.relay_ok(&["read", "--agent", "worker-3"]).contains("keep this"));
    assert!(stage.relay_ok(&["register", "worker-0"]).contains("registered worker-0"), "a name that went is free");
}

fn name(worker: usize) -> String {
    format!("worker-{worker}")
}
