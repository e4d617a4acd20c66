//! Machines that share a mesh by a server, each in a network of its own: what becomes of their mail when
//! cables are unplugged, processes die, clocks are wrong, the server is full or lets nobody in. Each
//! fault ends with its figures: nothing that was acknowledged is lost, and nothing is there twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use test_support::{Machine, NatsServer, Outcome, Program, StdioClient, Transcript, isolated, wait_for};

/// A machine whose mesh is on the server.
struct Host {
    machine: Machine,
    server: String,
}

impl Host {
    fn new(number: u8, server: &NatsServer) -> Host {
        let machine = Machine::new(number, env!("CARGO_BIN_EXE_relay-mesh"));
        let server = format!("nats://{}", machine.at(server.port()));
        machine.stage.configure(&format!("store = \"{server}\"\n"));
        Host { machine, server }
    }

    fn pair(server: &NatsServer) -> (Host, Host) {
        let (one, other) = (Host::new(1, server), Host::new(2, server));
        one.ok(&["register", "alice"]);
        other.ok(&["register", "bob"]);
        (one, other)
    }

    fn relay(&self, arguments: &[&str]) -> Program {
        self.machine.stage.relay(arguments)
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        self.machine.within(|| self.relay(arguments).run())
    }

    fn ok(&self, arguments: &[&str]) -> String {
        self.machine.within(|| self.relay(arguments).succeed())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        parse(&self.ok(&[arguments, &["--json"]].concat()))
    }

    /// An agent that is a program of its own, with the server of the mesh that its harness would start.
    fn agent(&self, name: &str) -> StdioClient {
        let log = self.machine.stage.folder.join(format!("{name}.log"));
        let process = self.machine.within(|| self.relay(&["mcp"]).start(&log));
        let mut client = StdioClient::connected(process, "a-plain-client");
        let registered = client.call("register_agent", json!({"name": name}));
        assert!(!registered.failed, "{registered:?}");
        client
    }

    /// How often each text lies in an agent's inbox.
    fn texts(&self, agent: &str) -> BTreeMap<String, usize> {
        let mail = self.json(&["read", "--agent", agent, "--peek", "--last", "100000"]);
        let mut texts = BTreeMap::new();
        for message in mail["messages"].as_array().cloned().unwrap_or_default() {
            *texts.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
        }
        texts
    }

    /// How many sendings wait here.
    fn waiting(&self) -> usize {
        let outcome = self.run(&["status", "--json"]);
        parse(&outcome.stdout)["queued"].as_array().map_or(0, Vec::len)
    }
}

/// What came of sending.
#[derive(Default)]
struct Figures {
    sent: usize,
    stored: Vec<String>,
    queued: Vec<String>,
    refused: usize,
}

impl Figures {
    fn note(&mut self, text: String, rung: Option<&str>) {
        self.sent += 1;
        match rung {
            Some("queued") => self.queued.push(text),
            Some(_) => self.stored.push(text),
            None => self.refused += 1,
        }
    }

    /// Compares what was acknowledged with what is there.
    fn check(&self, what: &str, there: &BTreeMap<String, usize>) {
        let acknowledged = self.stored.len() + self.queued.len();
        let lost: Vec<_> = self.stored.iter().chain(&self.queued).filter(|text| !there.contains_key(*text)).collect();
        let twice: Vec<_> = there.iter().filter(|(_, times)| **times > 1).collect();
        let mut transcript = Transcript::new();
        let figures = format!(
            "sent {}, acknowledged {acknowledged} (of them queued {}), refused {}, delivered {}, lost {}, twice {}",
            self.sent,
            self.queued.len(),
            self.refused,
            there.len(),
            lost.len(),
            twice.len()
        );
        transcript.step("fault", what, &figures);
        transcript.show();
        assert!(lost.is_empty(), "{what}: {lost:?}");
        assert!(twice.is_empty(), "{what}: {twice:?}");
    }
}

/// Sends as an agent; gives how far it got, none where it was refused.
fn send(client: &mut StdioClient, to: &str, text: &str) -> Option<String> {
    let answer = client.call("send_message", json!({"to": to, "body": text}));
    answer.structured["recipients"][0]["rung"].as_str().map(str::to_owned)
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("--json writes JSON: {error}: {text}"))
}

#[test]
fn what_is_stored_on_one_machine_is_delivered_on_the_other() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let (one, other) = Host::pair(&server);
        let mut carol = other.agent("carol");
        one.ok(&["send", "carol", "Are you there?", "--from", "alice"]);
        let fetched = carol.call("fetch_messages", json!({"wait_seconds": 20}));
        assert!(fetched.text.contains("Are you there?"), "{fetched:?}");
        let seen = one.json(&["agents"]);
        let carols: Vec<&Value> =
            seen["agents"].as_array().into_iter().flatten().filter(|agent| agent["name"] == "carol").collect();
        assert!(
            carols[0]["evidence"].as_str().is_some_and(|words| words.contains("on another machine")),
            "her machine says what she does: {carols:?}"
        );

        // Her process dies between two messages: what comes meanwhile waits for whoever has her name next.
        carol.server.kill();
        let mut figures = Figures::default();
        for number in 0..50 {
            let text = format!("while you were away {number}");
            let sent = one.json(&["send", "carol", &text, "--from", "alice"]);
            figures.note(text, sent["recipients"][0]["rung"].as_str());
        }
        let mut carol = other.agent("carol");
        let mut there = BTreeMap::new();
        while there.len() < figures.stored.len() {
            let fetched = carol.call("fetch_messages", json!({"limit": 20, "acknowledge": true}));
            let messages = fetched.structured["messages"].as_array().cloned().unwrap_or_default();
            assert!(!messages.is_empty(), "some are missing: {there:?}");
            for message in messages {
                *there.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
            }
        }
        figures.check("a host killed between store and push, and started again", &there);
    });
}

/// How many messages each of two machines sends at least while its cable is unplugged for a while.
const EACH: usize = 500;

/// Says that it is over when it goes, also where that is because something failed.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_cable_that_is_unplugged_costs_nothing() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let (one, other) = Host::pair(&server);
        let queued = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let sides = [(&one, "carol", "dora", &queued[0]), (&other, "dora", "carol", &queued[1])];
        let mut clients = sides.map(|(host, name, ..)| host.agent(name));
        let over = &AtomicBool::new(false);
        let figures: Vec<Figures> = std::thread::scope(|scope| {
            // However this ends, the senders end too.
            let _over = Over(over);
            let senders: Vec<_> = sides
                .iter()
                .zip(&mut clients)
                .map(|((_, from, to, queued), client)| {
                    scope.spawn(move || {
                        let mut figures = Figures::default();
                        // Whoever is fast goes on until the cables are plugged in again.
                        for number in (0..).take_while(|number| *number < EACH || !over.load(Ordering::Relaxed)) {
                            let text = format!("{number} from {from}");
                            let rung = send(client, to, &text);
                            if rung.as_deref() == Some("queued") {
                                queued.fetch_add(1, Ordering::Relaxed);
                            }
                            figures.note(text, rung.as_deref());
                        }
                        figures
                    })
                })
                .collect();
            // Some have come through when the cables are unplugged, and both sides have noticed before they are
            // plugged in again: that takes longer than the clients wait for an answer to their pings.
            wait_for("both have sent some", || {
                let some = |host: &Host, agent: &str| host.texts(agent).len() > 20;
                (some(&one, "dora") && some(&other, "carol")).then_some(())
            });
            let cut = Instant::now();
            one.machine.unplug();
            other.machine.unplug();
            wait_for("both sides keep what they send", || {
                queued.iter().all(|queued| queued.load(Ordering::Relaxed) >= 3).then_some(())
            });
            let told = one.run(&["status"]);
            assert_eq!(told.code, Some(5), "{told:?}");
            assert!(told.stdout.contains("the servers cannot be reached"), "{}", told.stdout);
            assert!(told.stdout.contains("waits for the servers"), "{}", told.stdout);
            one.machine.plug_in();
            other.machine.plug_in();
            let lasted = cut.elapsed();
            over.store(true, Ordering::Relaxed);
            let figures = senders.into_iter().map(|sender| sender.join().expect("a sender does its work")).collect();
            let mut transcript = Transcript::new();
            transcript.step("cables", "were unplugged", &format!("for {} s", lasted.as_secs()));
            transcript.show();
            figures
        });
        wait_for("nothing waits any more", || (one.waiting() == 0 && other.waiting() == 0).then_some(()));
        figures[0].check("cables unplugged, one way", &one.texts("dora"));
        figures[1].check("cables unplugged, the other way", &other.texts("carol"));
        assert!(figures.iter().all(|figures| figures.refused == 0), "nobody was refused");
    });
}

#[test]
fn a_command_line_without_its_server_keeps_what_it_is_told_to_send() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let (one, other) = Host::pair(&server);
        one.ok(&["status"]);
        one.machine.unplug();
        let sent = one.run(&["send", "bob", "Later, then.", "--from", "alice"]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
        assert!(sent.stdout.contains(" queued for bob"), "{}", sent.stdout);
        let id = sent.stdout.split_whitespace().next().expect("an id").to_owned();
        let ladder = one.ok(&["message", &id]);
        assert!(ladder.contains("queued") && ladder.contains("outbox"), "{ladder}");
        let agents = one.ok(&["agents"]);
        assert!(agents.contains("bob") && agents.contains("the servers cannot be reached since"), "{agents}");
        let reserved = one.run(&["reserve", "src/**", "--from", "alice"]);
        assert_eq!(reserved.code, Some(5), "what cannot be promised is refused: {reserved:?}");
        one.machine.plug_in();
        one.ok(&["send", "bob", "And this.", "--from", "alice"]);
        let texts: Vec<String> = other.texts("bob").into_keys().collect();
        assert_eq!(texts, ["And this.", "Later, then."]);
        let ladder = one.ok(&["message", &id]);
        assert!(ladder.contains("stored") && !ladder.contains("queued"), "{ladder}");
    });
}

#[test]
fn a_consumer_that_sleeps_gets_everything_when_it_wakes() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let (one, other) = Host::pair(&server);
        let (mut carol, mut dora) = (one.agent("carol"), other.agent("dora"));
        let signal = |what: &str| Program::new("kill").args([what, &dora.server.child.id().to_string()]).succeed();
        signal("-STOP");
        let mut figures = Figures::default();
        for number in 0..300 {
            let text = format!("{number} {}", "x".repeat(4_000));
            let rung = send(&mut carol, "dora", &text);
            figures.note(text, rung.as_deref());
        }
        signal("-CONT");
        let mut there = BTreeMap::new();
        while there.len() < figures.stored.len() {
            let ask = json!({"limit": 50, "max_length": 10_000, "acknowledge": true});
            let fetched = dora.call("fetch_messages", ask);
            let messages = fetched.structured["messages"].as_array().cloned().unwrap_or_default();
            assert!(!messages.is_empty(), "some are missing; {} are there", there.len());
            for message in messages {
                *there.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
            }
        }
        figures.check("a consumer that is stopped and goes on", &there);
    });
}

#[test]
fn machines_whose_clocks_differ_by_an_hour_agree() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let (one, other) = Host::pair(&server);
        for wrong_by in ["3600", "-3600"] {
            let wrong = |arguments: &[&str]| {
                other.machine.within(|| other.relay(arguments).env("RELAY_TEST_CLOCK_WRONG_BY", wrong_by).run())
            };
            let _forgotten = std::fs::remove_file(other.machine.stage.data.join("clock.json"));
            let pattern = format!("src/{wrong_by}/**");
            let repository = "repository = \"it\"\n";
            for host in [&one, &other] {
                std::fs::write(host.machine.stage.project.join(".relay-mesh.toml"), repository).expect("written");
            }
            one.ok(&["reserve", &pattern, "--from", "alice", "--ttl", "10m"]);
            let refused = wrong(&["reserve", &pattern, "--from", "bob", "--ttl", "10m"]);
            assert_eq!(refused.code, Some(6), "{wrong_by}: a lease that has not ended is not taken: {refused:?}");
            let mut figures = Figures::default();
            for number in 0..5 {
                let text = format!("{number} by a clock that is wrong by {wrong_by}");
                let sent = wrong(&["send", "alice", &text, "--from", "bob", "--json"]);
                figures.note(text, parse(&sent.stdout)["recipients"][0]["rung"].as_str());
            }
            let there: BTreeMap<String, usize> =
                one.texts("alice").into_iter().filter(|(text, _)| text.ends_with(wrong_by)).collect();
            figures.check(&format!("a clock that is wrong by {wrong_by} s"), &there);
            let agents = wrong(&["agents", "--json"]);
            let alice = parse(&agents.stdout)["agents"][0].clone();
            assert_eq!((&alice["name"], &alice["presence"]), (&json!("alice"), &json!("idle")), "{alice}");
        }
    });
}

#[test]
fn a_stream_that_is_full_refuses_and_keeps_what_it_has() {
    isolated(|| {
        let server = NatsServer::for_machines();
        let (one, other) = Host::pair(&server);
        let mut carol = one.agent("carol");
        let limit = |bytes: i64| {
            let info = server.request("$JS.API.STREAM.INFO.RELAY_MESSAGES", &json!({}));
            let mut config = info["config"].clone();
            config["max_bytes"] = json!(bytes);
            let answer = server.request("$JS.API.STREAM.UPDATE.RELAY_MESSAGES", &config);
            assert!(answer["error"].is_null(), "{answer}");
        };
        limit(200_000);
        let mut figures = Figures::default();
        let mut refusal = None;
        for number in 0..40 {
            let text = format!("{number} {}", "y".repeat(10_000));
            let answer = carol.call("send_message", json!({"to": "bob", "body": text}));
            let rung = answer.structured["recipients"][0]["rung"].as_str().map(str::to_owned);
            if rung.is_none() {
                refusal.get_or_insert(answer.text);
            }
            figures.note(text, rung.as_deref());
        }
        assert!(figures.refused > 0 && !figures.stored.is_empty() && figures.queued.is_empty(), "it became full");
        let refused = one.run(&["send", "bob", &"z".repeat(10_000), "--from", "alice"]);
        assert_eq!(refused.code, Some(5), "{refused:?}");
        assert!(refused.stderr.contains("hint: the stream or the account is full"), "{}", refused.stderr);
        limit(-1);
        let text = "there is room again".to_owned();
        let rung = send(&mut carol, "bob", &text);
        figures.note(text, rung.as_deref());
        assert_eq!(figures.stored.last().map(String::as_str), Some("there is room again"));
        figures.check("a stream that is full", &other.texts("bob"));
    });
}

#[test]
fn a_machine_that_is_let_in_no_more_keeps_what_it_sends_until_it_is() {
    isolated(|| {
        let server = NatsServer::asking_for("the-first-word");
        let one = Host::new(1, &server);
        let with = |word: &str| {
            let file = one.machine.stage.home.join("word");
            std::fs::write(&file, word).expect("written");
            let nats = format!("store = \"{}\"\n[nats]\ntoken = \"{}\"\n", one.server, file.display());
            one.machine.stage.configure(&nats);
        };
        with("the-first-word");
        one.ok(&["register", "bob"]);
        let mut carol = one.agent("carol");
        let mut figures = Figures::default();
        for number in 0..20 {
            let text = format!("before {number}");
            let rung = send(&mut carol, "bob", &text);
            figures.note(text, rung.as_deref());
        }
        server.ask_for("another-word");
        let refused = wait_for("a new command is refused", || {
            let outcome = one.run(&["status"]);
            (outcome.code == Some(5)).then_some(outcome)
        });
        assert!(refused.stderr.contains("does not know you"), "{refused:?}");
        for number in 0..2 {
            let text = format!("meanwhile {number}");
            let rung = send(&mut carol, "bob", &text);
            figures.note(text, rung.as_deref());
        }
        assert_eq!(figures.queued.len(), 2, "a process that was let in before keeps what it sends");
        server.ask_for("the-first-word");
        wait_for("nothing waits any more", || (one.waiting() == 0).then_some(()));
        figures.check("a machine that is let in no more, and then again", &one.texts("bob"));
    });
}
