//! Machines of one mesh under exactly the configuration that `relay-mesh nats-auth` prints: they talk as usual, and a
//! hostile one, with its own login and every means of the protocol, can neither send, settle nor reserve as another
//! machine's agent, and destroys nothing.

use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};
use async_nats::{Client, ConnectOptions, HeaderMap};
use serde_json::{Value, json};
use test_support::{NatsServer, Outcome, Stage};

/// How long the hostile machine waits for an answer that it must not get. A missing service answers at once or never.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits for what it may have.
const READS: Duration = Duration::from_secs(30);

/// A machine of the mesh.
struct Machine {
    stage: Stage,
    name: String,
}

impl Machine {
    fn new() -> Machine {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        let told: Value = serde_json::from_str(&stage.relay_ok(&["nats-auth", "--json"])).expect("JSON");
        Machine { stage, name: told["machine"].as_str().expect("a name").to_owned() }
    }

    /// Sets up the machine as the next steps of `nats-auth` say.
    fn joins(&self, server: &NatsServer, domain: &str) {
        let file = self.stage.home.join("password");
        std::fs::write(&file, password(&self.name)).expect("the home is writable");
        self.stage.configure(&format!(
            "store = '{}'\n[nats]\nuser = '{}'\npassword = '{}'\ndomain = '{domain}'\n",
            server.url(),
            self.name,
            file.display()
        ));
    }

    fn ok(&self, arguments: &[&str]) -> String {
        self.stage.relay_ok(arguments)
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.stage.run(arguments)
    }
}

fn password(machine: &str) -> String {
    format!("secret-of-{machine}")
}

/// Three machines under the printed configuration: alice lives on the first, bob on the second, eve on the
/// third, which is hostile.
struct Mesh {
    server: NatsServer,
    here: Machine,
    there: Machine,
    evil: Machine,
}

fn mesh() -> Mesh {
    let [here, there, evil] = [Machine::new(), Machine::new(), Machine::new()];
    let told = here.ok(&["nats-auth", "--json", &here.name, &there.name, &evil.name]);
    let told: Value = serde_json::from_str(&told).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let mut variables = vec![(text(&told["operator_password"]), "secret-of-the-operator".to_owned())];
    for machine in told["machines"].as_array().expect("machines") {
        variables.push((text(&machine["password_variable"]), password(&text(&machine["machine"]))));
    }
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let server = NatsServer::configured(&text(&told["configuration"]), &variables);

    // The operator creates the streams, on any machine.
    let file = here.stage.home.join("operator");
    std::fs::write(&file, "secret-of-the-operator").expect("the home is writable");
    let operator = text(&told["operator"]);
    here.stage
        .relay(&["doctor", "--store", &server.url()])
        .env("RELAY_NATS_USER", &operator)
        .env("RELAY_NATS_PASSWORD", &file)
        .succeed();
    for (machine, agent) in [(&here, "alice"), (&there, "bob"), (&evil, "eve")] {
        machine.joins(&server, &text(&told["machines"][0]["domain"]));
        machine.ok(&["register", agent]);
    }
    Mesh { server, here, there, evil }
}

#[test]
fn machines_talk_and_reserve_under_the_printed_configuration() {
    let Mesh { here, there, server: _server, .. } = mesh();
    let sent: Value =
        serde_json::from_str(&here.ok(&["send", "bob", "Do you hear me?", "--from", "alice", "--json"])).expect("JSON");
    let id = sent["id"].as_str().expect("an id");
    let read = there.ok(&["read", "--agent", "bob"]);
    assert!(read.contains("Do you hear me?"), "{read}");
    there.ok(&["send", "alice", "I do.", "--from", "bob", "--reply-to", id]);
    let history = here.ok(&["message", id, "--agent", "alice"]);
    assert!(history.contains("acknowledged"), "{history}");
    assert!(here.ok(&["read", "--agent", "alice"]).contains("I do."));

    let order: Value =
        serde_json::from_str(&here.ok(&["cmd", "bob", "/build", "--from", "alice", "--json"])).expect("JSON");
    assert!(there.ok(&["cmd", "take", "bob"]).contains("/build"));
    let id = order["id"].as_str().expect("an id");
    there.ok(&["cmd", "done", id, "--agent", "bob"]);
    assert!(here.ok(&["cmd", "list", "--all"]).contains("done"));

    here.ok(&["reserve", "src/**", "--from", "alice", "--repo", "."]);
    let listed = here.ok(&["reservations"]);
    assert!(listed.contains("alice"), "{listed}");
    here.ok(&["release", "--all", "--from", "alice", "--repo", "."]);
    assert!(!here.ok(&["reservations"]).contains("alice"));
    here.ok(&["gc"]);

    // A name belongs to one machine, and a command line acts only for its own machine's agents.
    let second: Value = serde_json::from_str(&there.ok(&["register", "alice", "--json"])).expect("JSON");
    assert_eq!(second["name"], "alice-2", "{second}");
    let refused = there.run(&["send", "bob", "It is me.", "--from", "alice"]);
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("lives on the machine"), "{}", refused.stderr);
}

/// The hostile machine's own connection.
struct Evil {
    client: Client,
    name: String,
    /// The machines that it tries to impersonate.
    victims: [String; 2],
}

impl Evil {
    async fn connected(mesh: &Mesh) -> Evil {
        let name = mesh.evil.name.clone();
        let options =
            ConnectOptions::with_user_and_password(name.clone(), password(&name)).request_timeout(Some(PATIENCE));
        let client = options.connect(mesh.server.url()).await.expect("it has a login");
        Evil { client, name, victims: [mesh.here.name.clone(), mesh.there.name.clone()] }
    }

    /// Publishes with a reply subject; the mesh shows the effect.
    async fn publish(&self, subject: &str, reply: Option<&str>, headers: HeaderMap, body: &Value) {
        // Its account knows values by their name in the domain.
        if subject.starts_with("$KV.") {
            self.publish_at(&format!("$JS.relay.API.{subject}"), reply, headers.clone(), body).await;
        }
        self.publish_at(subject, reply, headers, body).await;
    }

    async fn publish_at(&self, subject: &str, reply: Option<&str>, headers: HeaderMap, body: &Value) {
        let (subject, body) = (subject.to_owned(), body.to_string().into_bytes());
        let sent = match reply {
            Some(reply) => {
                self.client.publish_with_reply_and_headers(subject, reply.to_owned(), headers, body.into()).await
            }
            None => self.client.publish_with_headers(subject, headers, body.into()).await,
        };
        sent.expect("the client takes it");
    }

    /// Waits until the server has handled all earlier requests.
    async fn settled(&self) {
        let sent = within(&self.client, READS)
            .publish(format!("relay.{}.barrier", self.name), "{}".into())
            .await
            .expect("sent");
        sent.await.expect("its own subjects take it");
    }
}

/// The domain's streams, where each answer is waited for so long.
fn within(client: &Client, patience: Duration) -> jetstream::Context {
    jetstream::context::ContextBuilder::new().domain("relay").timeout(patience).build(client.clone())
}

/// Output without the minutes left, which change meanwhile.
fn timeless(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let passes = |at: usize| words.get(at + 1) == Some(&"min") && words[at].bytes().all(|byte| byte.is_ascii_digit());
    (0..words.len()).filter(|at| !passes(*at)).map(|at| words[at]).collect::<Vec<_>>().join(" ")
}

/// A message as alice would send it.
fn forged(id: &str, from: &str, body: &str) -> Value {
    json!({
        "id": id, "at": 1, "from": from, "to": "bob", "thread": id, "subject": body, "body": body,
        "priority": "normal", "trace": { "root": id, "hops": 0 },
    })
}

const FORGED: &str = "01JD8Z3K5V0000000000000001";

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_machine_passes_for_nobody_and_destroys_nothing() {
    let mesh = mesh();
    let sent: Value =
        serde_json::from_str(&mesh.here.ok(&["send", "bob", "This one is alice's.", "--from", "alice", "--json"]))
            .expect("JSON");
    let id = sent["id"].as_str().expect("an id").to_owned();
    mesh.here.ok(&["reserve", "src/**", "--from", "alice", "--repo", "."]);
    let order = mesh.here.ok(&["cmd", "bob", "/build", "--from", "alice", "--json"]);
    let order: Value = serde_json::from_str(&order).expect("JSON");
    let seen = || {
        [
            mesh.there.ok(&["read", "--agent", "bob", "--peek"]),
            mesh.here.ok(&["message", &id, "--agent", "alice"]),
            mesh.here.ok(&["reservations"]),
            mesh.here.ok(&["cmd", "list", "--all"]),
        ]
        .map(|text| timeless(&text))
    };
    let before = seen();
    assert!(before[0].contains("This one is alice's."), "{before:?}");
    let evil = Evil::connected(&mesh).await;
    let [here, there] = &evil.victims;

    // It sends as alice under alice's machine's name, and under its own.
    let lie = forged(FORGED, "alice", "This one is a lie.");
    for host in [here, there, &evil.name] {
        evil.publish(&format!("relay.{host}.agents.bob.inbox"), None, HeaderMap::new(), &lie).await;
    }
    // It settles bob's mail, as bob's machine and as itself.
    let settled = json!({ "message": id, "at": 2, "event": "status", "status": "acknowledged", "route": "fetch" });
    for host in [there, &evil.name] {
        evil.publish(&format!("relay.{host}.agents.bob.receipts"), None, HeaderMap::new(), &settled).await;
    }
    // It takes over bob's record, moves bob to itself, hides bob's mail, and sends bob's heartbeat.
    let record = json!({ "name": "bob", "origin": "command-line", "machine": evil.name, "registered": 1, "bound": 9 });
    for host in [there, &evil.name] {
        for (key, value) in [
            ("_homes.agents.bob", json!({})),
            ("agents.bob.meta", record.clone()),
            ("agents.bob.heartbeat", json!({ "at": 9 })),
            ("agents.bob.cursor", json!({ "inbox": u64::MAX, "receipts": u64::MAX })),
            ("_retired.agents.bob.inbox", json!(u64::MAX)),
        ] {
            evil.publish(&format!("$KV.RELAY_MAP.{host}.{key}"), None, HeaderMap::new(), &value).await;
        }
    }
    // It ends the command and releases alice's reservation in the stored records.
    let (js, reads) = (within(&evil.client, PATIENCE), within(&evil.client, READS));
    let map = reads.get_stream("KV_RELAY_MAP").await.expect("it may read");
    let key = format!("$KV.RELAY_MAP.{here}.reservations.>");
    let ledger = map.get_last_raw_message_by_subject(&key).await.expect("it may read");
    let shared = ledger.subject.rsplit_once(&format!("{here}.")).expect("the subject of a value").1.to_owned();
    let mut none: Value = serde_json::from_slice(&ledger.payload).expect("JSON");
    none["reservations"] = json!([]);
    let command = format!("commands.{}", order["id"].as_str().expect("an id"));
    let found = map.get_last_raw_message_by_subject(&format!("$KV.RELAY_MAP.{here}.{command}")).await;
    let mut done: Value = serde_json::from_slice(&found.expect("it may read").payload).expect("JSON");
    done["stage"] = json!({ "is": "done", "at": 3, "ended": "failed", "result": "It was eve." });
    for host in [here, there, &evil.name] {
        evil.publish(&format!("$KV.RELAY_MAP.{host}.{shared}"), None, HeaderMap::new(), &none).await;
        evil.publish(&format!("$KV.RELAY_MAP.{host}.{command}"), None, HeaderMap::new(), &done).await;
    }
    evil.settled().await;
    assert_eq!(seen(), before, "what it says counts for nothing");

    // It lets the server answer at others' subjects.
    let own = format!("$KV.RELAY_MAP.{}.bait", evil.name);
    evil.publish(&own, None, HeaderMap::new(), &settled).await;
    for target in [
        format!("$KV.RELAY_MAP.{there}.agents.bob.meta"),
        format!("relay.{there}.agents.bob.receipts"),
        format!("relay.{here}.agents.bob.inbox"),
    ] {
        evil.publish(&own, Some(&target), HeaderMap::new(), &json!({})).await;
        let bait = json!({ "last_by_subj": own });
        for api in ["$JS.relay.API", "$JS.API"] {
            for request in ["DIRECT.GET.KV_RELAY_MAP", "STREAM.MSG.GET.KV_RELAY_MAP"] {
                evil.publish(&format!("{api}.{request}"), Some(&target), HeaderMap::new(), &bait).await;
            }
        }
        let consumer = consumer::push::Config { deliver_subject: target, ..consumer::push::Config::default() };
        let map = js.get_stream_no_info("KV_RELAY_MAP").await.expect("nothing is asked yet");
        map.create_consumer(consumer).await.expect_err("it may follow nothing by a consumer");
    }
    evil.settled().await;
    assert_eq!(seen(), before, "the server answers in its own account alone");

    // It deletes.
    for name in ["KV_RELAY_MAP", "RELAY_MESSAGES"] {
        let config = reads.get_stream(name).await.expect("it may read").cached_info().config.clone();
        let stream = js.get_stream_no_info(name).await.expect("nothing is asked yet");
        stream.purge().await.expect_err("it may not purge");
        stream.delete_message(1).await.expect_err("it may not delete");
        assert!(js.delete_stream(name).await.is_err(), "it may not delete the stream");
        let other = stream::Config { max_messages: 1, ..config };
        js.update_stream(other).await.expect_err("it may not change the stream");
    }
    let greedy =
        stream::Config { name: "MINE".to_owned(), subjects: vec!["relay.>".to_owned()], ..stream::Config::default() };
    js.create_stream(greedy).await.expect_err("it may make no stream");
    for scope in ["all", "sub"] {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", scope);
        evil.publish(&own, None, headers.clone(), &json!({})).await;
        evil.publish(&format!("relay.{}.bait", evil.name), None, headers, &json!({})).await;
    }
    evil.settled().await;
    assert_eq!(seen(), before, "nothing is gone");
    mesh.there.ok(&["read", "--agent", "bob"]);
    let history = mesh.here.ok(&["message", &id, "--agent", "alice"]);
    assert!(history.contains("read"), "and everything goes on: {history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_one_machine_never_leaves_it() {
    let mesh = mesh();
    // A session with its own process, folder and variables, and a route to it.
    let seat = mesh.here.stage.folder.join("seat.log");
    let client = mesh.here.stage.relay(&["mcp"]).env("A_SECRET_OF_THIS_MACHINE", "swordfish").start(&seat);
    let mut client = test_support::StdioClient::connected(client, "a-plain-client");
    client.call("register_agent", json!({ "name": "carol" }));
    mesh.there.ok(&["send", "carol", "Wake up.", "--from", "bob"]);
    client.call("fetch_messages", json!({}));
    let name = mesh.evil.name.clone();
    let options = ConnectOptions::with_user_and_password(name.clone(), password(&name));
    let evil = options.connect(mesh.server.url()).await.expect("it has a login");
    let js = within(&evil, READS);
    let mut kept = 0;
    for name in ["KV_RELAY_MAP", "RELAY_MESSAGES"] {
        let stream = js.get_stream(name).await.expect("it may read");
        let mut from = 1;
        while let Ok(message) = stream.raw_message_builder().sequence(from).next_by_subject(">").send().await {
            from = message.sequence + 1;
            kept += 1;
            let text = format!("{} {}", message.subject, String::from_utf8_lossy(&message.payload));
            for secret in
                ["swordfish", "A_SECRET", ".sessions.", ".wake files.", ".keys.", "hints", "environment", "\"pid\""]
            {
                assert!(!text.contains(secret), "{secret} lies on the server: {text}");
            }
        }
    }
    assert!(kept > 8, "everything was read: {kept}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_operator_brings_an_agent_to_another_machine() {
    let mesh = mesh();
    mesh.here.ok(&["send", "bob", "For bob alone.", "--from", "alice"]);
    let settings = std::fs::read_to_string(mesh.evil.stage.home.join(".config/relay-mesh/config.toml")).expect("there");
    mesh.evil.stage.configure(&format!("away-after = '1s'\n{settings}"));
    let evil = Evil::connected(&mesh).await;

    // It cannot adopt bob: neither by the command with its own login, nor by writing the operator's records, nor by
    // logging in as operator.
    let refused = test_support::wait_for("nothing is heard of bob", || {
        let outcome = mesh.evil.run(&["adopt", "bob"]);
        (!outcome.stderr.contains("on the machine")).then_some(outcome)
    });
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(refused.stderr.contains("hint: only the operator may bring an agent"), "{}", refused.stderr);
    let own = json!({ "host": evil.name, "before": [] });
    for host in ["_moved", &evil.name, &evil.victims[1]] {
        evil.publish(&format!("$KV.RELAY_MAP.{host}._homes.agents.bob"), None, HeaderMap::new(), &own).await;
    }
    evil.settled().await;
    assert!(mesh.there.ok(&["read", "--agent", "bob", "--peek"]).contains("For bob alone."));
    let named = mesh.here.run(&["nats-auth", "_moved"]);
    assert!(named.stderr.contains("cannot be part of a subject"), "{named:?}");

    // The operator's login allows it, on the machine where the agent continues.
    let file = mesh.here.stage.home.join("operator");
    mesh.here.stage.configure(&format!(
        "away-after = '1s'\n{}",
        std::fs::read_to_string(mesh.here.stage.home.join(".config/relay-mesh/config.toml")).expect("there")
    ));
    let adopted = test_support::wait_for("nothing is heard of bob", || {
        let adopting = mesh.here.stage.relay(&["adopt", "bob"]).env("RELAY_NATS_USER", "relay-operator");
        let outcome = adopting.env("RELAY_NATS_PASSWORD", &file).run();
        (!outcome.stderr.contains("on the machine")).then_some(outcome)
    });
    assert_eq!(adopted.code, Some(0), "{adopted:?}");
    assert!(adopted.stdout.contains("bob lives on this machine now"), "{adopted:?}");
    mesh.here.ok(&["register", "bob"]);
    assert!(mesh.here.ok(&["read", "--agent", "bob"]).contains("For bob alone."));
    mesh.evil.ok(&["send", "bob", "And now?", "--from", "eve"]);
    mesh.here.ok(&["send", "alice", "I moved.", "--from", "bob"]);
    let refused = mesh.there.run(&["send", "alice", "No, I did not.", "--from", "bob"]);
    assert!(refused.stderr.contains("lives on the machine"), "{refused:?}");
    assert!(mesh.here.ok(&["read", "--agent", "bob"]).contains("And now?"));
}
