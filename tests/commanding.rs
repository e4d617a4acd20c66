//! Commands and presence through the real binary: a script orders a command, an agent takes it and reports the result,
//! another process waits. If many take, each command goes to one.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::thread;

use serde_json::Value;
use test_support::Stage;

#[test]
fn a_script_asks_and_another_answers() {
    let stage = stage(&["alice", "ci"]);
    let waiting = thread::scope(|scope| {
        let asked = scope.spawn(|| stage.run(&["cmd", "ci", "/test", "src", "--wait", "--from", "alice", "--json"]));
        let taken = json(&stage.relay_ok(&["cmd", "take", "ci", "--wait", "--timeout", "50s", "--json"]));
        assert_eq!(
            (&taken["command"], &taken["arguments"][0], &taken["from"]),
            (&"/test".into(), &"src".into(), &"alice".into())
        );
        let shown = stage.relay_ok(&["status", "--commands"]);
        assert!(shown.contains("running") && shown.contains("/test src"), "{shown}");
        let id = taken["id"].as_str().expect("an id");
        stage.relay_ok(&["cmd", "done", id, "3 of 40 failed\nsee the log", "--failed", "--from", "ci"]);
        asked.join().expect("the asker ends")
    });
    let ended = json(&waiting.stdout);
    assert_eq!((waiting.code, &ended["status"]), (Some(1), &"failed".into()), "{}", waiting.stderr);
    assert_eq!(ended["result"], "3 of 40 failed\nsee the log");
    assert_eq!(stage.relay_ok(&["status", "--commands"]).trim(), "no command waits");
    let all = stage.relay_ok(&["cmd", "list", "--all"]);
    assert!(all.contains("failed") && all.contains("/test src"), "{all}");
}

#[test]
fn what_waits_too_long_says_so() {
    let stage = stage(&["alice", "ci"]);
    let code = |arguments: &[&str]| stage.run(arguments).code;
    assert_eq!(code(&["cmd", "take", "ci"]), Some(3));
    assert_eq!(code(&["cmd", "take", "ci", "--wait", "--timeout", "10ms"]), Some(7));
    assert_eq!(code(&["cmd", "ci", "/x", "--wait", "--timeout", "10ms"]), Some(7));
    // A caller that gives up sees the command's current status, not that of the order.
    let mut waits = stage.relay(&["cmd", "ci", "/y", "--wait"]).start(&stage.folder.join("waits.log"));
    for _ in ["/x", "/y"] {
        stage.relay_ok(&["cmd", "take", "ci", "--wait"]);
    }
    assert_eq!(waits.stop(), Some(1));
    let mut told = String::new();
    waits.child.stdout.take().expect("a pipe").read_to_string(&mut told).expect("text");
    assert!(told.contains("shell → ci  running  /y"), "{told}");
    assert_eq!(code(&["cmd", "ci", "/expires", "--ttl", "1s", "--wait"]), Some(7));
    assert_eq!(code(&["wait-for", "alice", "nobody", "--timeout", "10ms"]), Some(7));
    assert_eq!(code(&["wait-for", "alice", "ci"]), Some(0));
}

#[test]
fn what_cannot_be_is_refused_with_a_hint() {
    let stage = stage(&["alice", "ci"]);
    let id = json(&stage.relay_ok(&["cmd", "ci", "/x", "--from", "alice", "--json"]))["id"].clone();
    let id = id.as_str().expect("an id");
    let check = |arguments: &[&str], code: i32, words: &str| {
        let outcome = stage.run(arguments);
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{arguments:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains("hint: ") || outcome.stderr.contains("For more information"),
            "{}",
            outcome.stderr
        );
    };
    check(&["cmd", "ci", "x"], 2, "is not a command");
    check(&["cmd", "ci"], 2, "required");
    check(&["cmd", "cli", "/x"], 3, "no agent named `cli`");
    check(&["cmd", "ci", "/x", "--ttl", "0s"], 2, "between a second and a week");
    check(&["cmd", "ci", "/x", "--timeout", "1s"], 2, "--wait");
    check(&["cmd", "take", "nobody"], 3, "nobody");
    check(&["cmd", "done", id, "fine", "--from", "ci"], 4, "has not been taken");
    check(&["cmd", "done", id, "fine", "--from", "alice"], 3, "you have no command");
    check(&["cmd", "done", "01JD8Z3K5V0000000000000000", "--from", "ci"], 3, "you have no command");
    check(&["heartbeat"], 4, "you have not registered");
    check(&["heartbeat", "--from", "ci", "--task", &"x".repeat(201)], 2, "may have 200");
}

#[test]
fn whose_commands_run_is_the_persons_to_say() {
    let stage = stage(&["alice", "ci"]);
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let outcome = stage.run(arguments);
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words) && outcome.stderr.contains("hint: "), "{}", outcome.stderr);
    };
    let none = stage.run(&["cmd", "allowed"]);
    assert!(none.stderr.contains("no sender's commands run by themselves here"), "{none:?}");
    refused(&["cmd", "allow", "shell"], 2, "`shell` is no agent");
    refused(&["cmd", "disallow", "alice"], 3, "nothing like that is allowed");
    let agents = stage.relay(&["cmd", "allow", "alice"]).env("RELAY_OPENCODE_SESSION", "ses_1").run();
    assert_eq!(agents.code, Some(4), "{}", agents.stderr);
    assert!(agents.stderr.contains("an agent cannot consent for its user"), "{}", agents.stderr);

    stage.relay_ok(&["cmd", "allow", "alice", "/review", "--to", "ci"]);
    stage.relay_ok(&["cmd", "allow", "alice", "/test"]);
    let twice = stage.run(&["cmd", "allow", "alice", "/test"]);
    assert!(twice.stderr.contains("it was allowed before"), "{twice:?}");
    let allowed = json(&stage.relay_ok(&["cmd", "allowed", "--json"]));
    let expected = serde_json::json!([
        {"from": "alice", "command": "/review", "to": "ci"}, {"from": "alice", "command": "/test"}
    ]);
    assert_eq!(allowed["allowed"], expected);
    let file = allowed["file"].as_str().expect("a path");
    assert!(file.starts_with(&stage.home.display().to_string()), "it is the person's own: {file}");
    assert_eq!(
        stage.relay_ok(&["cmd", "disallow", "alice", "/review"]),
        "alice may no longer run /review in the session of ci\n"
    );
    assert_eq!(stage.relay_ok(&["cmd", "allowed"]), "alice may run /test in the session of every agent here\n");

    // The project's settings name another mesh, on which nothing is allowed.
    std::fs::write(stage.project.join(".relay-mesh.toml"), "dir = '~/mesh'\n").expect("written");
    let elsewhere = stage.relay(&["cmd", "allowed", "--json"]).env("RELAY_DIR", "").run();
    assert_eq!(json(&elsewhere.stdout)["allowed"], serde_json::json!([]), "{elsewhere:?}");
    std::fs::write(file, "[[allow]]\nfrom = 'alice'\nmesh = 3\n").expect("written");
    let broken = stage.run(&["cmd", "allowed"]);
    assert!(broken.code != Some(0) && broken.stderr.contains("commands.toml`, line 3"), "{broken:?}");
}

#[test]
fn of_many_takers_each_command_has_one() {
    const COMMANDS: usize = 12;
    const TAKERS: usize = 24;
    let stage = stage(&["alice", "ci"]);
    let asked: BTreeSet<String> = (0..COMMANDS)
        .map(|number| {
            let id = &json(&stage.relay_ok(&["cmd", "ci", "/run", &number.to_string(), "--json"]))["id"];
            id.as_str().expect("an id").to_owned()
        })
        .collect();
    let taken: Vec<String> = thread::scope(|scope| {
        let takers: Vec<_> = (0..TAKERS).map(|_| scope.spawn(|| stage.run(&["cmd", "take", "ci", "--json"]))).collect();
        let outcomes = takers.into_iter().map(|taker| taker.join().expect("a taker ends"));
        outcomes.filter(|outcome| outcome.code == Some(0)).map(|outcome| id_of(&outcome.stdout)).collect()
    });
    assert_eq!(taken.len(), COMMANDS, "each is taken once: {taken:?}");
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), asked);
}

#[test]
fn who_is_killed_while_commanding_leaves_nothing_half_done() {
    let stage = stage(&["alice", "ci"]);
    for number in 0..4 {
        stage.relay_ok(&["cmd", "ci", "/before", &number.to_string()]);
    }
    let victims: Vec<_> = (0..20)
        .map(|number| {
            let program = match number % 3 {
                0 => stage.relay(&["cmd", "ci", "/during"]),
                1 => stage.relay(&["cmd", "take", "ci"]),
                _ => stage.relay(&["heartbeat", "--task", "dies", "--from", "ci"]),
            };
            program.start(&stage.folder.join(format!("victim-{number}.log")))
        })
        .collect();
    for mut victim in victims {
        victim.kill();
    }
    let all = json(&stage.relay_ok(&["cmd", "list", "--all", "--json"]));
    let states: Vec<&str> =
        all["commands"].as_array().expect("a list").iter().filter_map(|one| one["status"].as_str()).collect();
    assert!(states.len() >= 4 && states.iter().all(|state| matches!(*state, "pending" | "running")), "{states:?}");
    let pending = states.iter().filter(|state| **state == "pending").count();
    let left = (0..).take_while(|_| stage.run(&["cmd", "take", "ci"]).code == Some(0)).count();
    assert_eq!(left, pending, "what nobody took can be taken");
    let agents = json(&stage.relay_ok(&["agents", "--json"]));
    assert_eq!(agents["agents"].as_array().map(Vec::len), Some(2), "{agents}");
}

#[test]
fn a_heartbeat_is_seen_in_the_status() {
    let stage = stage(&["alice"]);
    let told = stage.relay_ok(&["heartbeat", "--from", "alice", "--task", "the parser"]);
    assert_eq!(told.trim(), "alice is idle, the parser; 0 messages wait");
    let shown = |stale: &str| json(&stage.relay_ok(&["status", "--stale", stale, "--json"]))["agents"][0].clone();
    assert_eq!((&shown("5m")["presence"], &shown("5m")["task"]), (&"idle".into(), &"the parser".into()));
    assert_eq!(shown("0s")["presence"], "away", "as stale as one asks for");
    stage.relay_ok(&["reserve", "src/**", "--from", "alice"]);
    let only = stage.relay_ok(&["status", "--reservations"]);
    assert!(only.contains("src/**") && !only.contains("PRESENCE"), "{only}");
    let whole = stage.relay_ok(&["status"]);
    assert!(whole.contains("src/**") && whole.contains("PRESENCE"), "{whole}");
}

#[test]
fn whoever_waits_is_told_that_somebody_fell_silent() {
    let stage = stage(&["alice", "ci"]);
    let stale = stage.run(&["wait-for", "ci", "--until-stale", "--stale", "0s"]);
    assert!(stale.code == Some(0) && stale.stdout.contains("ci") && stale.stdout.contains("away"), "{stale:?}");
    assert_eq!(stage.run(&["wait-for", "alice", "ci", "--until-stale", "--timeout", "10ms"]).code, Some(7));
    assert_eq!(stage.run(&["wait-for", "nobody", "--until-stale"]).code, Some(3));
    let vain = stage.run(&["wait-for", "alice", "nobody", "--timeout", "10ms"]);
    assert_eq!((vain.code, vain.stderr.trim()), (Some(7), "nobody has not joined"), "{vain:?}");
    let asked = stage.run(&["cmd", "ci", "/x", "--ttl", "1s", "--wait"]);
    assert!(asked.code == Some(7) && !asked.stderr.contains("the command waits for it"), "{asked:?}");
    stage.configure("away-after = '0s'\n");
    let vain = stage.run(&["wait-for", "ci", "--timeout", "10ms"]);
    assert!(vain.code == Some(7) && vain.stderr.starts_with("ci is away: nothing heard for"), "{vain:?}");
    let asked = stage.run(&["cmd", "ci", "/x", "--ttl", "1s", "--wait"]);
    assert!(asked.code == Some(7) && asked.stderr.contains("ci is away"), "{asked:?}");
}

#[test]
fn a_command_wakes_whoever_listens_and_a_status_goes_on() {
    let stage = stage(&["alice", "ci"]);
    let mut listener = stage.relay(&["listen", "--agent", "ci", "--no-stdin"]).start(&stage.folder.join("listen.log"));
    let mut heard = BufReader::new(listener.child.stdout.take().expect("a pipe")).lines();
    let mut line = || heard.next().expect("it goes on").expect("a line");
    assert!(line().contains("watching"));
    let mut status = stage.relay(&["status", "--commands", "--follow"]).start(&stage.folder.join("status.log"));
    let mut shown = BufReader::new(status.child.stdout.take().expect("a pipe")).lines();
    let mut shows = |words: &str| {
        let mut lines = shown.by_ref().map(|line| line.expect("a line"));
        assert!(lines.any(|line| line.contains(words)), "{words}");
    };
    shows("no command waits");
    stage.relay_ok(&["cmd", "ci", "/test", "src", "--wake", "--from", "alice"]);
    assert!(line().contains("A command waits for you: /test src"), "the message that wakes says what waits");
    shows("/test src");
    stage.relay_ok(&["cmd", "take", "ci"]);
    shows("running");
    assert_eq!(status.stop(), Some(0), "asked to stop, it stops in order");
}

#[test]
fn a_listener_takes_one_command_after_the_other_and_says_how_each_ended() {
    let stage = stage(&["alice", "ci"]);
    let mut listener = stage.relay(&["listen", "--agent", "ci", "--commands"]).start(&stage.folder.join("listen.log"));
    let mut heard = BufReader::new(listener.child.stdout.take().expect("a pipe")).lines();
    let mut line = || json(&heard.next().expect("it goes on").expect("a line"));
    assert_eq!(line()["event"], "watching");
    let asked: Vec<String> = ["/one", "/two", "/three"]
        .iter()
        .map(|command| id_of(&stage.relay_ok(&["cmd", "ci", command, "--json", "--from", "alice"])))
        .collect();
    let mut input = listener.child.stdin.take().expect("a pipe");
    let mut say = |words: String| writeln!(input, "{words}").expect("it reads");
    let first = line();
    assert_eq!(
        (&first["event"], &first["command"], &first["id"]),
        (&"command".into(), &"/one".into(), &asked[0].as_str().into())
    );
    assert_eq!(state(&stage, &asked[1]), "pending", "one at a time");
    say(format!(r#"{{"command":"{}","ended":"done","result":"all green"}}"#, asked[1]));
    assert_eq!(line()["error"], format!("command `{}` has not been taken", asked[1]));
    say(format!(r#"{{"command":"{}","ended":"done","result":"all green"}}"#, asked[0]));
    assert_eq!(line()["command"], "/two");
    assert_eq!(state(&stage, &asked[0]), "done");
    // A process that ends takes no more commands; another must finish the one it began.
    drop(input);
    assert_eq!(listener.ended(), Some(0));
    assert_eq!((state(&stage, &asked[1]).as_str(), state(&stage, &asked[2]).as_str()), ("running", "pending"));
    stage.relay_ok(&["cmd", "done", &asked[1], "by hand", "--from", "ci"]);
}

/// A command's status.
fn state(stage: &Stage, id: &str) -> String {
    let all = json(&stage.relay_ok(&["cmd", "list", "--all", "--json"]));
    let found = all["commands"].as_array().expect("a list").iter().find(|one| one["id"] == id);
    found.and_then(|one| one["status"].as_str()).unwrap_or_default().to_owned()
}

/// A stage on which these agents have registered.
fn stage(agents: &[&str]) -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    for agent in agents {
        stage.relay_ok(&["register", agent]);
    }
    stage
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn id_of(text: &str) -> String {
    json(text)["id"].as_str().expect("an id").to_owned()
}
