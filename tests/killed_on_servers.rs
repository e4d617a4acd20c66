//! Killed while talking to the servers: a command that sends several requests to a real nats-server is killed before
//! the first, the second, and so on. Afterwards everything can be read, and the repeated command works (`killed` tests
//! the same on files).

use serde_json::Value;
use test_support::{NatsServer, Stage};

/// The system call that sends a request.
const CALL: &str = "writev";
/// The most calls at which it is killed. More than a command's own requests; commands that read others' records send
/// one for each of those.
const MOST_CALLS: usize = 24;

#[test]
fn whoever_is_killed_on_the_way_to_the_servers_leaves_nothing_half_done() {
    const RESERVE: &[&str] = &["reserve", "src/**", "--from", "alice"];
    const RELEASE: &[&str] = &["release", "--all", "--from", "alice"];
    const ASK: &[&str] = &["cmd", "alice", "/test", "--from", "bob"];
    const TAKE: &[&str] = &["cmd", "take", "alice"];
    const READ: &[&str] = &["read", "--agent", "bob", "--unread", "--mark-read"];
    let server = NatsServer::start();
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.configure(&format!("store = '{}'\n[wake]\ntimeout = '1ms'\n", server.url()));
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    let check = |before: &[&[&str]], killed: &[&str], after: &[&[&str]], holds: &dyn Fn(&str)| {
        let mut kills = 0;
        for nth in 1..=MOST_CALLS {
            for command in before {
                stage.relay_ok(command);
            }
            let was_killed = killed_at(&stage, killed, nth);
            let cut = format!("{killed:?} killed at {CALL} number {nth}");
            let log = stage.run(&["log"]);
            assert_eq!((log.code, log.stderr.as_str()), (Some(0), ""), "{cut}: every event is whole");
            let again = stage.run(killed);
            // The reservation or command may already be gone.
            assert!(matches!(again.code, Some(0 | 3)), "{cut}: {again:?}");
            holds(&cut);
            for command in after {
                stage.run(command);
            }
            if !was_killed {
                break;
            }
            kills += 1;
        }
        assert!(kills > 5, "{killed:?} was killed {kills} times");
    };
    check(&[], RESERVE, &[RELEASE], &|cut| assert_eq!(stage.held(), ["alice src/**"], "{cut}"));
    check(&[RESERVE], RELEASE, &[], &|cut| assert!(stage.held().is_empty(), "{cut}"));
    check(
        &[RESERVE],
        &["reserve", "src/x", "--force", "--from", "bob"],
        &[&["release", "--all", "--from", "bob"], &["read", "--agent", "alice", "--unread", "--mark-read"]],
        &|cut| {
            assert_eq!(stage.held(), ["bob src/x"], "{cut}");
            assert_eq!(unread(&stage, "alice").len(), 1, "{cut}: whoever lost it is told, and once");
        },
    );
    check(&[], &["send", "bob", "a message", "--from", "alice"], &[READ], &|cut| {
        // The killed process has sent its message, or not.
        let messages = unread(&stage, "bob");
        assert!(messages == ["a message"] || messages == ["a message", "a message"], "{cut}: {messages:?}");
    });
    check(&[&["send", "bob", "a message"]], READ, &[], &|cut| assert!(unread(&stage, "bob").is_empty(), "{cut}"));
    check(&[], ASK, &[], &|cut| {
        // The same for the process that ordered a command.
        let asked = commands(&stage, "pending").len();
        assert!((1..=2).contains(&asked), "{cut}: {asked}");
        for _ in 0..asked {
            stage.relay_ok(TAKE);
        }
        assert_eq!(stage.run(TAKE).code, Some(3), "{cut}: each is taken once");
    });
    check(&[ASK, ASK], TAKE, &[], &|cut| {
        let taken = commands(&stage, "running").len() + commands(&stage, "pending").len();
        while stage.run(TAKE).code == Some(0) {}
        assert_eq!(commands(&stage, "running").len(), taken, "{cut}: none is lost");
    });
}

/// Runs a command and kills it at its nth such system call; false if it made fewer.
fn killed_at(stage: &Stage, command: &[&str], nth: usize) -> bool {
    stage.run_killed_at(CALL, nth, command).code.is_none()
}

/// The bodies of an agent's unread mail.
fn unread(stage: &Stage, agent: &str) -> Vec<String> {
    let all = list(stage, &["read", "--agent", agent, "--peek", "--unread"], "messages");
    all.iter().map(|message| word(message, "body")).collect()
}

/// The commands with one status.
fn commands(stage: &Stage, state: &str) -> Vec<Value> {
    let all = list(stage, &["cmd", "list", "--all"], "commands");
    all.into_iter().filter(|command| word(command, "status") == state).collect()
}

fn list(stage: &Stage, arguments: &[&str], name: &str) -> Vec<Value> {
    let told = stage.relay_ok(&[arguments, &["--json"]].concat());
    let told: Value = serde_json::from_str(&told).expect("JSON");
    told[name].as_array().cloned().unwrap_or_default()
}

fn word(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}
