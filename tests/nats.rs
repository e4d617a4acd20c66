//! Two machines share one mesh by a NATS server: the real binary with two homes and data folders, connected only by the
//! server.

use test_support::{NatsServer, Outcome, Stage};

/// A machine: its own stage, with its mesh on a server.
struct Host {
    stage: Stage,
    server: String,
}

impl Host {
    fn new(server: &NatsServer) -> Host {
        Host { stage: Stage::new(env!("CARGO_BIN_EXE_relay-mesh")), server: server.url() }
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.stage.relay(arguments).env("RELAY_STORE", &self.server).run()
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.ok(arguments)).expect("JSON")
    }

    fn ok(&self, arguments: &[&str]) -> String {
        self.stage.relay(arguments).env("RELAY_STORE", &self.server).succeed()
    }
}

#[test]
fn two_machines_talk_by_a_server() {
    let server = NatsServer::start();
    let (one, other) = (Host::new(&server), Host::new(&server));
    one.ok(&["register", "alice"]);
    other.ok(&["register", "bob"]);
    let agents = one.ok(&["agents"]);
    assert!(agents.contains("alice") && agents.contains("bob"), "{agents}");

    let sent = one.ok(&["send", "bob", "Is the other machine there?", "--from", "alice", "--json"]);
    let sent: serde_json::Value = serde_json::from_str(&sent).expect("JSON");
    let id = sent["id"].as_str().expect("an id");
    let read = other.ok(&["read", "--agent", "bob"]);
    assert!(read.contains("Is the other machine there?"), "{read}");
    other.ok(&["send", "alice", "It is.", "--from", "bob", "--reply-to", id]);
    let history = one.ok(&["message", id, "--agent", "alice"]);
    assert!(history.contains("acknowledged"), "{history}");
    let answer = one.ok(&["read", "--agent", "alice"]);
    assert!(answer.contains("It is."), "{answer}");

    // A name belongs to one agent, whatever its machine.
    let taken = other.json(&["register", "alice", "--json"]);
    assert_eq!(taken["name"], "alice-2", "{taken}");
    for host in [&one, &other] {
        assert!(!host.stage.data.join("agents").exists(), "what is shared lies on the server alone");
    }
}

#[test]
fn a_name_stays_with_its_machine_also_when_its_agent_is_let_go_of() {
    let server = NatsServer::start();
    let (one, other) = (Host::new(&server), Host::new(&server));
    one.stage.configure("away-after = '0s'\n");
    one.ok(&["register", "carol"]);
    one.ok(&["gc", "--stale", "0s"]);
    assert!(!other.ok(&["agents"]).contains("carol"), "she was deleted");
    let registered = other.json(&["register", "carol", "--json"]);
    assert_eq!(registered["name"], "carol-2", "{registered}");
    assert_eq!(one.json(&["register", "carol", "--json"])["name"], "carol");
}

#[test]
fn a_server_that_is_gone_is_told_and_what_was_sent_before_is_safe() {
    let mut server = NatsServer::start();
    let host = Host::new(&server);
    host.ok(&["register", "bob"]);
    host.ok(&["send", "bob", "This one was stored."]);
    server.kill();
    let waits = host.ok(&["send", "bob", "This one waits."]);
    assert!(waits.contains(" queued for bob"), "{waits}");
    let refused = host.run(&["read", "--agent", "bob"]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(refused.stderr.contains("could not connect to nats://127.0.0.1:"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: check that a nats-server with JetStream runs there"), "{}", refused.stderr);
    server.restart();
    host.ok(&["send", "bob", "This one comes last."]);
    let read = host.json(&["read", "--agent", "bob", "--json"]);
    let bodies: Vec<&str> =
        read["messages"].as_array().into_iter().flatten().filter_map(|message| message["body"].as_str()).collect();
    assert_eq!(bodies, ["This one was stored.", "This one waits.", "This one comes last."]);
}

#[test]
fn mail_of_many_is_counted_by_the_server_and_not_read() {
    let server = NatsServer::start();
    let (one, other) = (Host::new(&server), Host::new(&server));
    let names: Vec<String> = (0..30).map(|number| format!("agent-{number}")).collect();
    for name in &names {
        one.ok(&["register", name]);
    }
    let send = |times: usize| {
        for _ in 0..times {
            other.ok(&["send", &names.join(","), "It waits."]);
        }
    };
    // Few messages are read in order to count them.
    send(1);
    let status = other.json(&["status", "--json"]);
    assert_eq!((&status["waiting"], &status["counted"]), (&30.into(), &serde_json::Value::Null), "{status}");
    send(34);
    // More than the number of agent-0's mail is known, so it is read.
    one.ok(&["read", "--agent", "agent-0", "--unread", "--mark-read"]);
    other.ok(&["send", "agent-0", "One more."]);
    let status = other.json(&["status", "--json"]);
    assert_eq!((&status["waiting"], &status["counted"]), (&1_031.into(), &1_015.into()), "{status}");
    let waiting = |name: &str| {
        let agents = status["agents"].as_array().expect("agents");
        agents.iter().find(|agent| agent["name"] == name).map(|agent| agent["waiting"].clone())
    };
    assert_eq!((waiting("agent-0"), waiting("agent-29")), (Some(16.into()), Some(35.into())));
    let shown = other.ok(&["status"]);
    assert!(shown.contains("1031 messages wait\n"), "{shown}");
    assert!(
        shown.contains("1015 messages of these by the servers' count: they are not read yet, nor checked"),
        "{shown}"
    );
}
