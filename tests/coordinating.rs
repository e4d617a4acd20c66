//! Two machines work on one repository and share its mesh by a real server: fifty agents race for overlapping
//! reservations, processes follow the event log and the server's Unix socket, and agents are woken across machines. A
//! mesh on a server promises the same as one in a folder (`reserving`, `events`, `waking`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use serde_json::{Value, json};
use test_support::{Host, NatsServer, PATIENCE, Running, Stage};

/// Two machines with a clone of the same repository each.
fn machines(server: &NatsServer) -> [Stage; 2] {
    ["alice", "bob"].map(|agent| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        stage.configure(&format!("store = '{}'\n[wake]\ntimeout = '30s'\n", server.url()));
        std::fs::write(stage.project.join(".relay-mesh.toml"), "repository = \"it\"\n").expect("written");
        stage.relay_ok(&["register", agent]);
        stage
    })
}

fn json_of(stage: &Stage, arguments: &[&str]) -> Value {
    serde_json::from_str(&stage.relay_ok(&[arguments, &["--json"]].concat())).expect("JSON")
}

#[test]
fn of_fifty_on_two_machines_that_race_only_those_win_that_may() {
    const RACERS: usize = 50;
    let server = NatsServer::start();
    let stages = machines(&server);
    // Each overlaps most others; some pairs overlap only by a path that neither names.
    let pattern = |number: usize| match number % 5 {
        0 => "src/**".to_owned(),
        1 => "**/*.rs".to_owned(),
        2 => format!("src/{{main,lib,m{number}}}.rs"),
        3 => format!("docs/[a-m]{number}*"),
        _ => "{src,docs}/*".to_owned(),
    };
    let name = |number: usize| format!("racer-{number}");
    for number in 0..RACERS {
        stages[number % 2].relay_ok(&["register", &name(number)]);
    }
    let won: Vec<usize> = thread::scope(|scope| {
        let race = |number: usize| {
            let stage = &stages[number % 2];
            scope.spawn(move || stage.run(&["reserve", &pattern(number), "--from", &name(number)]))
        };
        let racers: Vec<_> = (0..RACERS).map(race).collect();
        let outcomes = racers.into_iter().map(|racer| racer.join().expect("a racer ends"));
        outcomes
            .enumerate()
            .filter_map(|(number, outcome)| match outcome.code {
                Some(0) => Some(number),
                Some(6) => None,
                _ => panic!("racer {number}: {outcome:?}"),
            })
            .collect()
    });
    let mut expected: Vec<String> =
        won.iter().map(|number| format!("{} {}", name(*number), pattern(*number))).collect();
    expected.sort();
    assert!(!won.is_empty());
    for stage in &stages {
        let mut held = stage.held();
        held.sort();
        assert_eq!(held, expected, "who was told that they won holds it, and nobody else does");
        // The winner conflicts with everyone else who asks for the same, on both machines.
        for number in &won {
            let asked = stage.run(&["reserve", &pattern(*number), "--check", "--json"]);
            let told: Value = serde_json::from_str(&asked.stdout).expect("JSON");
            let owners = told["conflicts"].as_array().expect("a list").iter();
            let owners: Vec<&str> = owners.map(|one| one["held"]["owner"].as_str().unwrap_or_default()).collect();
            assert_eq!(owners, [name(*number)], "{} met others that won", pattern(*number));
        }
    }
}

/// Lines of a program's output or a socket, as JSON.
fn lines(source: impl std::io::Read) -> impl Iterator<Item = Value> {
    BufReader::new(source).lines().map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
}

fn started(stage: &Stage, arguments: &[&str], log: &str) -> Running {
    stage.relay(arguments).start(&stage.folder.join(log))
}

#[test]
fn who_follows_on_one_machine_is_told_once_what_happens_on_the_other() {
    const MESSAGES: usize = 40;
    let server = NatsServer::start();
    let [here, there] = machines(&server);
    let mut log = started(&here, &["log", "--follow", "--json", "--type", "sent"], "log.log");
    let followed = lines(log.child.stdout.take().expect("a pipe"));
    let _host = Host::start(&here);
    let socket = UnixStream::connect(here.data.join("events.sock")).expect("a host listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
    let wanted = json!({"subscribe": ["inbox", "reservations", "commands", "agents"], "agent": "alice"});
    writeln!(&socket, "{wanted}").expect("the host reads");
    let mut told = lines(socket.try_clone().expect("a second handle"));
    assert_eq!(told.next().expect("a line")["event"], "subscribed");

    thread::scope(|scope| {
        for part in 0..2 {
            let there = &there;
            scope.spawn(move || {
                for number in 0..MESSAGES / 2 {
                    there.relay_ok(&["send", "alice", &format!("{part} {number}"), "--from", "bob"]);
                }
            });
        }
    });
    there.relay_ok(&["reserve", "src/**", "--from", "bob"]);
    let order = json_of(&there, &["cmd", "alice", "/build", "--from", "bob"]);
    here.relay_ok(&["cmd", "take", "alice"]);
    here.relay_ok(&["cmd", "done", order["id"].as_str().expect("an id"), "fine", "--from", "alice"]);
    there.relay_ok(&["register", "zed"]);

    let (mut mail, mut events) = (BTreeMap::new(), Vec::new());
    // Mail and the other events are in two logs: each is in its own order.
    while mail.len() < MESSAGES || events.last() != Some(&"registered".to_owned()) {
        let line = told.next().expect("the host goes on");
        match line["event"].as_str().unwrap_or_default() {
            "message" => *mail.entry(line["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1,
            "alive" => {}
            other => events.push(other.to_owned()),
        }
    }
    assert_eq!(mail.len(), MESSAGES);
    assert!(mail.values().all(|times| *times == 1), "each once: {mail:?}");
    assert_eq!(events, ["reserved", "commanded", "command-taken", "command-done", "registered"]);
    let mut sent: Vec<String> =
        followed.take(MESSAGES).map(|line| line["id"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(log.stop(), Some(0));
    sent.sort();
    sent.dedup();
    assert_eq!(sent.len(), MESSAGES, "the log tells of each once");
}

#[test]
fn an_agent_is_woken_from_the_other_machine() {
    let server = NatsServer::start();
    let [here, there] = machines(&server);
    let mut listener = started(&there, &["listen", "--agent", "bob", "--no-stdin"], "listen.log");
    let mut heard = lines(listener.child.stdout.take().expect("a pipe"));
    assert!(heard.next().expect("a line").to_string().contains("watching"));
    let woken = json_of(&here, &["wake", "the build is red", "--to", "bob", "--from", "alice"]);
    assert_eq!((&woken["woken"], &woken["method"]), (&json!(true), &json!("routes")), "{woken}");
    let shown = heard.next().expect("a line").to_string();
    assert!(shown.contains("the build is red") && shown.contains("alice"), "{shown}");
    let history = here.relay_ok(&["message", woken["message"].as_str().expect("an id"), "--agent", "alice"]);
    assert!(history.contains("shown") && history.contains("listen"), "what was seen there is told here: {history}");
    assert!(!there.data.join("wake/trigger").exists() && !here.data.join("wake/trigger").exists());

    // No process listens there any more: the message waits, and this machine's wake file is the last resort.
    assert_eq!(listener.stop(), Some(0));
    here.configure(&format!("store = '{}'\n[wake]\ntimeout = '100ms'\n", server.url()));
    let woken = json_of(&here, &["wake", "still red", "--to", "bob", "--from", "alice"]);
    assert_eq!(woken["method"], "file", "{woken}");
    assert!(here.data.join("wake/trigger").exists() && !there.data.join("wake/trigger").exists());
    assert!(there.relay_ok(&["read", "--agent", "bob"]).contains("still red"));
}
