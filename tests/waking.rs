//! `relay-mesh wake`: each method is tried in order until one works, and the output reports what was seen. A model sees
//! a peer's words inside an envelope, also by a third-party program.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use test_support::{Host, Program, Stage, wait_for};

/// A program that records its arguments.
const GATEWAY: &str = "#!/bin/sh\nfor word in \"$@\"; do printf '%s\\n' \"[$word]\"; done > \"$HOME/gateway.said\"\n";

fn stage(settings: &str) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.configure(settings);
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    stage
}

/// The tried methods, as `method worked` or `method failed`, with the JSON and the exit code.
fn woken(stage: &Stage, arguments: &[&str]) -> (Vec<String>, Value, Option<i32>) {
    let outcome = stage.run(&[&["wake", "--json"], arguments].concat());
    let told: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
    let tried = told["tried"].as_array().expect("a list").iter();
    let word = |tried: &Value| {
        let how = if tried["worked"] == true { "worked" } else { "failed" };
        format!("{} {how}: {}", tried["method"].as_str().expect("a word"), tried["detail"].as_str().expect("words"))
    };
    (tried.map(word).collect(), told, outcome.code)
}

fn check(tried: &[String], expected: &[&str]) {
    assert_eq!(tried.len(), expected.len(), "{tried:?}");
    for (tried, expected) in tried.iter().zip(expected) {
        assert!(tried.contains(expected), "{expected} in {tried:?}");
    }
}

#[test]
fn each_way_is_tried_in_order_until_one_works() {
    let stage = stage(
        "[wake]\ngateway = ['gateway', '--text', '{text}', '{from}>{to}']\nsocket = '~/wake.sock'\ntimeout = '5s'\n",
    );
    let said = stage.home.join("gateway.said");
    // Nothing listens: no program, no socket. The file is the last resort.
    let (tried, told, code) = woken(&stage, &["look at #4", "--from", "alice"]);
    check(
        &tried,
        &[
            "gateway failed: `gateway` could not be started",
            "socket failed: there is no socket at",
            "file worked: wrote ",
        ],
    );
    assert_eq!((code, &told["method"]), (Some(0), &"file".into()));
    let file: Value =
        serde_json::from_slice(&std::fs::read(stage.data.join("wake/trigger")).expect("a file")).expect("JSON");
    assert_eq!((&file["from"], &file["text"], &file["to"]), (&"alice".into(), &"look at #4".into(), &Value::Null));

    // An agent's name alone means that agent, and anything else is a text.
    let named: Value = serde_json::from_str(&stage.run(&["wake", "bob", "--json"]).stdout).expect("JSON");
    assert_eq!(named["to"], "bob", "{named}");
    let text: Value = serde_json::from_str(&stage.run(&["wake", "nobody", "--json"]).stdout).expect("JSON");
    assert_eq!(text["to"], Value::Null, "{text}");

    // A process listens at the socket.
    let listener = UnixListener::bind(stage.home.join("wake.sock")).expect("a socket");
    let heard = thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(listener.accept().expect("somebody connects").0).read_line(&mut line).expect("a line");
        serde_json::from_str::<Value>(&line).expect("JSON")
    });
    let (tried, ..) = woken(&stage, &["again"]);
    check(&tried, &["gateway failed", "socket worked"]);
    assert_eq!(heard.join().expect("it hears")["text"], "again");
    let (tried, ..) = woken(&stage, &["again"]);
    check(&tried, &["gateway failed", "no process listens at", "file worked"]);

    // The program exists, and gets each word as one argument, whatever it contains.
    stage.program("gateway", GATEWAY);
    let (tried, ..) = woken(&stage, &["$(touch broken) '; {from}", "--from", "alice"]);
    check(&tried, &["gateway worked: `gateway` took it"]);
    let given = std::fs::read_to_string(&said).expect("it was run");
    assert!(
        given.starts_with("[--text]\n[The agent `alice` wakes you by relay-mesh.\n<relay-mesh-message id="),
        "{given}"
    );
    assert!(given.ends_with("\n$(touch broken) '; {from}\n</relay-mesh-message>]\n[alice>]\n"), "{given}");
    // It fails, it hangs, it leaves a child that keeps its pipe open.
    stage.program("gateway", "#!/bin/sh\necho 'no gateway\nconnect ECONNREFUSED' >&2\nexit 3\n");
    check(&woken(&stage, &["x", "--method", "gateway"]).0, &["ended with exit status: 3: connect ECONNREFUSED"]);
    stage.program("gateway", "#!/bin/sh\nsleep 600 &\nexit 0\n");
    check(&woken(&stage, &["x", "--method", "gateway"]).0, &["gateway worked"]);
    stage.program("gateway", "#!/bin/sh\necho $$ > \"$HOME/gateway.pid\"\nexec sleep 600\n");
    stage.configure("[wake]\ngateway = ['gateway']\ntimeout = '10s'\nmethods = ['gateway']\n");
    let (tried, told, code) = woken(&stage, &["x"]);
    check(&tried, &["gateway failed: it took more than 10s"]);
    assert_eq!((code, &told["woken"]), (Some(1), &false.into()));
    let pid = std::fs::read_to_string(stage.home.join("gateway.pid")).expect("it was run");
    wait_for("what took too long is ended", || {
        // A zombie has an empty command line.
        let words = std::fs::read(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        words.is_empty().then_some(())
    });
    let log = stage.relay_ok(&["log"]);
    assert!(log.lines().last().is_some_and(|line| line.contains("  wake-failed  ")), "{log}");
    assert!(stage.relay_ok(&["log", "--type", "woke"]).lines().all(|line| line.contains("  method=")), "{log}");
}

#[test]
fn a_gateway_that_takes_too_long_is_ended_with_all_that_it_has_started() {
    let stage = stage("");
    let (pid, settings) = (stage.folder.join("pid"), stage.folder.join("gateway.sh"));
    std::fs::write(&settings, format!("sleep 1000 &\necho $! > {}\nwait\n", pid.display())).expect("written");
    stage.configure(&format!("[wake]\ngateway = ['sh', '{}']\ntimeout = '10s'\n", settings.display()));
    let woken = stage.run(&["wake", "get up", "--method", "gateway"]);
    assert!(woken.code == Some(1) && woken.stdout.contains("gateway failed: it took more than 10s"), "{woken:?}");
    let pid = std::fs::read_to_string(pid).expect("it has begun");
    let status = format!("/proc/{}/status", pid.trim());
    wait_for("what the script has started to be over", || {
        std::fs::read_to_string(&status).map_or(Some(()), |status| status.contains("State:\tZ").then_some(()))
    });
}

#[test]
fn an_agent_is_woken_by_its_own_ways_first() {
    let stage = stage("[wake]\ntimeout = '100ms'\n");
    // bob has no session. The message waits, and the file is written.
    let (tried, told, code) = woken(&stage, &["the build is red", "--to", "bob"]);
    check(&tried, &["routes failed: it has no session, and no process listens for it within 100ms", "file worked"]);
    assert_eq!((code, &told["to"]), (Some(0), &"bob".into()));
    let id = told["message"].as_str().expect("an id").to_owned();
    let file = std::fs::read_to_string(stage.data.join("wake/trigger")).expect("a file");
    assert!(file.contains(&id) && file.contains("\"to\":\"bob\""), "{file}");
    assert!(stage.relay_ok(&["read", "--agent", "bob"]).contains("the build is red"));
    // A session listens: no other method is tried.
    stage.configure("[wake]\ntimeout = '30s'\n");
    let mut listener = stage.relay(&["listen", "--agent", "bob", "--no-stdin"]).start(&stage.folder.join("listen.log"));
    let mut lines = BufReader::new(listener.child.stdout.take().expect("a pipe")).lines();
    assert!(lines.next().expect("a line").expect("text").contains("watching"));
    std::fs::remove_file(stage.data.join("wake/trigger")).expect("it was there");
    let (tried, ..) = woken(&stage, &["--to", "bob"]);
    check(&tried, &["routes worked: shown by listen"]);
    assert!(lines.next().expect("a line").expect("text").contains("Please look at your mail and go on."));
    assert!(!stage.data.join("wake/trigger").exists());
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let outcome = stage.run(arguments);
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words) && outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    };
    refused(&["wake", "--to", "nobody"], 3, "no agent named `nobody`");
    refused(&["wake", "--method", "routes"], 2, "only an agent has routes");
    refused(&["wake", &"x".repeat(2_049)], 2, "may have 2048");
    refused(&["wake", "x", "--from", "nobody"], 3, "nobody");
}

#[test]
fn the_loop_guard_holds_a_wake_back_by_every_way() {
    let stage = stage("[loops]\nper-pair = 0\nper-agent = 0\n");
    let host = Host::start(&stage);
    let client = host.client("zed");
    drop(client);
    carol_begins(&stage);
    let (tried, told, code) = woken(&stage, &["x", "--to", "carol", "--from", "alice"]);
    check(&tried, &["routes failed: waking is held back: "]);
    assert_eq!((code, &told["woken"]), (Some(1), &false.into()));
    assert!(!stage.data.join("wake/trigger").exists(), "no other way is tried");
}

#[test]
fn that_a_wake_file_was_written_proves_nothing_and_the_next_way_is_tried() {
    let stage = stage("[wake]\ntimeout = '300ms'\n");
    carol_begins(&stage);
    let (tried, ..) = woken(&stage, &["x", "--to", "carol"]);
    check(&tried, &["routes failed: no process took it within 300ms; notified by wake-file", "file worked"]);
}

/// A session of Claude Code, reported by its hook, joins as carol.
fn carol_begins(stage: &Stage) {
    let start = json!({"session_id": "5b0c7f0e-4c2f-4a8e-9d0e-0d6d2b1f7a11", "cwd": stage.project,
        "hook_event_name": "SessionStart", "source": "startup"});
    let session = |program: Program| {
        program.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "5b0c7f0e-4c2f-4a8e-9d0e-0d6d2b1f7a11")
    };
    // A hook gives up if its adapter must still be compiled; registering waits for that.
    session(stage.relay(&["register", "carol"])).succeed();
    session(stage.relay(&["hook", "claude-code", "SessionStart"])).input(start.to_string()).succeed();
}

#[test]
fn systemd_takes_the_units_and_they_go_byte_for_byte() {
    let stage = stage("[wake]\nrun = ['gateway', '100%', '$HOME', 'a \"b\"']\n");
    stage.program("gateway", "#!/bin/sh\nexit 0\n");
    let before = stage.tree(&stage.home.join(".config"));
    let without_systemd = stage.relay(&["wake", "install", "--dry-run"]).env("PATH", stage.programs()).run();
    assert!(without_systemd.stderr.contains("warning: there is no `systemctl`"), "{without_systemd:?}");
    let shown = stage.relay_ok(&["wake", "install", "--dry-run"]);
    assert!(shown.contains("+PathChanged=") && shown.contains("+ExecStart="), "{shown}");
    assert_eq!(stage.tree(&stage.home.join(".config")), before, "a dry run writes nothing");
    assert_eq!(stage.run(&["wake", "install"]).code, Some(4), "nobody agreed");
    stage.relay_ok(&["wake", "install", "--yes"]);
    let units = stage.home.join(".config/systemd/user");
    let service = std::fs::read_to_string(units.join("relay-mesh-wake.service")).expect("a unit");
    let program = stage.programs().join("gateway");
    let expected = format!("ExecStart=\"{}\" \"100%%\" \"$$HOME\" \"a \\\"b\\\"\"\n", program.display());
    assert!(service.ends_with(&expected), "{service}");
    // If systemd is installed, it checks the units itself.
    if Path::new("/usr/bin/systemd-analyze").exists() {
        let verified = Program::new("/usr/bin/systemd-analyze")
            .args(["verify", "--user"])
            .args([units.join("relay-mesh-wake.path"), units.join("relay-mesh-wake.service")])
            .env("XDG_RUNTIME_DIR", &stage.folder)
            .env("HOME", &stage.home)
            .run();
        assert_eq!((verified.code, verified.stderr.trim()), (Some(0), ""), "{verified:?}");
    }
    stage.relay_ok(&["wake", "uninstall", "--yes"]);
    assert_eq!(stage.tree(&stage.home.join(".config")), before);
    assert_eq!(stage.run(&["wake", "install", "--", "no-such-program"]).code, Some(3));
    stage.configure("");
    assert_eq!(stage.run(&["wake", "install"]).code, Some(2), "it is not said what to run");
}

/// What systemd would do, with this machine's file watcher: the file is replaced atomically.
#[test]
fn whoever_watches_the_file_never_reads_half_of_it() {
    let stage = stage("");
    stage.relay_ok(&["wake", "first"]);
    let trigger = stage.data.join("wake/trigger");
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let stage = &stage;
                scope.spawn(move || {
                    for number in 0..10 {
                        stage.relay_ok(&["wake", &format!("{writer} says {number} {}", "x".repeat(1_500))]);
                    }
                })
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let mut text = String::new();
            std::fs::File::open(&trigger).expect("it is always there").read_to_string(&mut text).expect("text");
            let line: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(line["from"], "shell");
        }
    });
    let left: Vec<_> = std::fs::read_dir(stage.data.join("wake")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "nothing is left beside it: {left:?}");
}
