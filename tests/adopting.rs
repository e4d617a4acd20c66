//! The user adopts an agent whose machine was lost: it continues on another machine with its mail and its name, and
//! nothing is delivered twice when the lost machine returns. The real binary on three machines, connected only by a
//! real server.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use test_support::{NatsServer, Outcome, Program, Stage, StdioClient, wait_for};

/// A machine with its mesh on the server and a short `away-after`.
struct Host {
    stage: Stage,
}

impl Host {
    fn new(server: &NatsServer, away_after: &str) -> Host {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        stage.configure(&format!("store = '{}'\naway-after = '{away_after}'\n", server.url()));
        Host { stage }
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.stage.run(arguments)
    }

    fn ok(&self, arguments: &[&str]) -> String {
        self.stage.relay_ok(arguments)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).expect("JSON")
    }

    /// The MCP server of one session, as its harness would start it.
    fn session(&self, log: &str) -> StdioClient {
        let process = self.stage.relay(&["mcp"]).by_hand().start(&self.stage.folder.join(log));
        StdioClient::connected(process, "a-plain-client")
    }

    /// Adopts an agent as soon as it has been silent long enough.
    fn adopts(&self, agent: &str) -> Value {
        wait_for("it is silent for long enough", || {
            let outcome = self.run(&["adopt", agent, "--json"]);
            match outcome.code {
                Some(0) => Some(serde_json::from_str(&outcome.stdout).expect("JSON")),
                _ => {
                    assert!(outcome.stderr.contains("on the machine"), "{outcome:?}");
                    None
                }
            }
        })
    }

    /// How often each text is in an agent's inbox.
    fn texts(&self, agent: &str) -> BTreeMap<String, usize> {
        bodies(&self.json(&["read", "--agent", agent, "--peek", "--last", "1000"]))
    }
}

fn bodies(mail: &Value) -> BTreeMap<String, usize> {
    let mut texts = BTreeMap::new();
    for message in mail["messages"].as_array().cloned().unwrap_or_default() {
        *texts.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    texts
}

fn once(texts: &[&str]) -> BTreeMap<String, usize> {
    texts.iter().map(|text| ((*text).to_owned(), 1)).collect()
}

fn signal(what: &str, client: &StdioClient) {
    Program::new("kill").args([what, &client.server.child.id().to_string()]).succeed();
}

#[test]
fn an_agent_of_a_lost_machine_goes_on_at_another_and_nothing_comes_twice() {
    let server = NatsServer::start();
    let [old, new, third] = ["10m", "1s", "10m"].map(|away_after| Host::new(&server, away_after));
    let mut before = old.session("alice.log");
    assert_eq!(before.call("register_agent", json!({"name": "alice"})).structured["name"], "alice");
    third.ok(&["register", "bob"]);
    for text in ["first", "second", "third"] {
        third.ok(&["send", "alice", text, "--from", "bob"]);
    }
    let order = third.json(&["cmd", "alice", "/build", "--from", "bob"]);
    let fetched = before.call("fetch_messages", json!({"limit": 1}));
    assert_eq!(bodies(&fetched.structured), once(&["first"]));
    before.call("send_message", json!({"to": "bob", "body": "from the old machine"}));

    // It is alive, so no other machine can adopt it. Then its machine freezes, like a closed laptop.
    let refused = third.run(&["adopt", "alice"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("`alice` is idle on the machine"), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: end it there, or wait"), "{}", refused.stderr);
    signal("-STOP", &before);
    let adopted = new.adopts("alice");
    assert_eq!((&adopted["name"], &adopted["waiting"]), (&json!("alice"), &json!(2)), "{adopted}");
    let there = third.ok(&["agents", "alice"]);
    assert!(there.contains("offline") && there.contains("was adopted from"), "{there}");

    let mut after = new.session("alice.log");
    assert_eq!(after.call("register_agent", json!({"name": "alice"})).structured["name"], "alice");
    let fetched = after.call("fetch_messages", json!({"acknowledge": true}));
    assert_eq!(bodies(&fetched.structured), once(&["second", "third"]), "what was fetched there stays fetched");
    after.call("send_message", json!({"to": "bob", "body": "from the new machine"}));
    assert_eq!(third.texts("bob"), once(&["from the old machine", "from the new machine"]));
    let taken = new.json(&["cmd", "list", "--all"]);
    assert_eq!(taken["commands"][0]["id"], order["id"], "its command waits still: {taken}");

    // The old machine resumes and still acts as alice.
    signal("-CONT", &before);
    third.ok(&["send", "alice", "fourth", "--from", "bob"]);
    for (tool, arguments) in [
        ("send_message", json!({"to": "bob", "body": "a late word of the old machine"})),
        ("fetch_messages", json!({})),
    ] {
        let answer = before.call(tool, arguments);
        assert!(answer.failed && answer.text.contains("register_agent"), "{tool}: {answer:?}");
    }
    let fetched = after.call("fetch_messages", json!({"wait_seconds": 20, "acknowledge": true}));
    assert_eq!(bodies(&fetched.structured), once(&["fourth"]));
    assert_eq!(before.call("register_agent", json!({"name": "alice"})).structured["name"], "alice-2");
    before.call("send_message", json!({"to": "bob", "body": "I am another one now."}));
    let all = ["from the old machine", "from the new machine", "I am another one now."];
    assert_eq!(third.texts("bob"), once(&all), "nothing is lost, nothing is there twice");

    // And back again: the laptop was repaired.
    after.server.kill();
    let refused = old.run(&["adopt", "nobody"]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    old.stage.configure(&format!("store = '{}'\naway-after = '1s'\n", server.url()));
    third.ok(&["send", "alice", "fifth", "--from", "bob"]);
    assert_eq!(old.adopts("alice")["waiting"], 1);
    old.ok(&["register", "alice"]);
    let mail = old.json(&["read", "--agent", "alice", "--unread"]);
    assert_eq!(bodies(&mail), once(&["fifth"]), "whatever was settled on either machine stays settled");
    assert_eq!(third.texts("bob"), once(&all), "what it said on either machine still counts");
}

#[test]
fn what_waited_at_a_lost_machine_as_an_agent_that_went_on_comes_back_to_its_sender() {
    let mut server = NatsServer::start();
    let [old, new] = ["10m", "1s"].map(|away_after| Host::new(&server, away_after));
    for name in ["alice", "carol"] {
        old.ok(&["register", name]);
    }
    new.ok(&["register", "bob"]);
    server.kill();
    for (from, text) in [("alice", "as alice"), ("carol", "as carol")] {
        let queued = old.ok(&["send", "bob", text, "--from", from]);
        assert!(queued.contains(" queued for bob"), "{queued}");
    }
    server.restart();
    new.adopts("alice");
    new.ok(&["register", "alice"]);
    new.ok(&["send", "bob", "as alice, from here", "--from", "alice"]);
    // The first process on the old machine sends what may be sent.
    old.ok(&["send", "bob", "as carol again", "--from", "carol"]);
    assert_eq!(new.texts("bob"), once(&["as carol", "as carol again", "as alice, from here"]));
    let status = old.ok(&["status"]);
    assert!(status.contains("lives on another machine now"), "{status}");
    let refused = old.run(&["send", "bob", "It is me.", "--from", "alice"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("`alice` lives on the machine"), "{}", refused.stderr);
    // Registering the name of an agent that seems lost explains how to adopt it.
    wait_for("carol is silent", || new.ok(&["agents", "carol"]).contains("away").then_some(()));
    let registered = new.run(&["register", "carol"]);
    assert!(registered.stdout.contains("registered carol-2"), "{registered:?}");
    assert!(registered.stderr.contains("`relay-mesh adopt carol` brings it here"), "{registered:?}");
    let alone = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    // It hands over mail and a voice, so an agent's shell may not.
    let refused = alone.relay(&["adopt", "alice"]).env("RELAY_RUN", "01JD8Z3K5V0000000000000000").run();
    assert!(refused.code == Some(4) && refused.stderr.contains("an agent cannot adopt an agent"), "{refused:?}");
    let refused = alone.run(&["adopt", "alice"]);
    assert!(refused.stderr.contains("no agent named `alice` has joined"), "{refused:?}");
    alone.relay_ok(&["register", "alice"]);
    let refused = alone.run(&["adopt", "alice"]);
    assert!(refused.stderr.contains("`alice` lives on this machine already"), "{refused:?}");
}
