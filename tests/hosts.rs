//! Machines that share a mesh by a server, each in its own network: their mail if cables are unplugged, processes die,
//! clocks are wrong, or the server is full or refuses logins. Each test ends with figures: no acknowledged message is
//! lost, and none is there twice.

#[path = "hosts/machines.rs"]
mod machines;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::{NatsServer, Program, Transcript, isolated, wait_for};

use machines::{Figures, Host, parse, send};

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

        // Her process dies between two messages: mail that arrives meanwhile waits for the next session with her name.
        carol.server.kill();
        let mut figures = Figures::default();
        for number in 0..50 {
            let text = format!("while you were away {number}");
            let sent = one.json(&["send", "carol", &text, "--from", "alice"]);
            figures.note(text, sent["recipients"][0]["status"].as_str());
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

/// Messages sent by each of two machines: some before its cable is unplugged, most meanwhile, and the last ones after
/// it is plugged in again.
const EACH: usize = 1_000;
/// How many of these are sent only after the cables are plugged in again.
const AFTERWARDS: usize = 200;
/// How long the cables are unplugged.
const CUT: Duration = Duration::from_secs(60);

/// Sets the flag when dropped, also after a panic.
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
            // The senders end however this ends.
            let _over = Over(over);
            let senders: Vec<_> = sides
                .iter()
                .zip(&mut clients)
                .map(|((_, from, to, queued), client)| {
                    scope.spawn(move || {
                        let mut figures = Figures::default();
                        for number in 0..EACH {
                            if number == EACH - AFTERWARDS {
                                while !over.load(Ordering::Relaxed) {
                                    std::thread::park_timeout(Duration::from_millis(100));
                                }
                            }
                            let text = format!("{number} from {from}");
                            let status = send(client, to, &text);
                            if status.as_deref() == Some("queued") {
                                queued.fetch_add(1, Ordering::Relaxed);
                            }
                            figures.note(text, status.as_deref());
                        }
                        figures
                    })
                })
                .collect();
            // Some messages have arrived when the cables are unplugged, and both sides have noticed the cut before they
            // are plugged in again: that takes longer than the clients wait for an answer to their pings.
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
            for part in 1..=4 {
                wait_for("a quarter of the time is over", || (cut.elapsed() >= CUT / 4 * part).then_some(()));
            }
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
        for figures in &figures {
            let kept = figures.queued.len();
            assert_eq!((figures.sent, figures.refused), (EACH, 0), "nobody was refused");
            assert!(kept >= EACH / 4, "a good part of it was sent without servers: {kept}");
        }
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
        let history = one.ok(&["message", &id]);
        assert!(history.contains("queued") && history.contains("outbox"), "{history}");
        let agents = one.ok(&["agents"]);
        assert!(agents.contains("bob") && agents.contains("the servers have been unreachable since"), "{agents}");
        let reserved = one.run(&["reserve", "src/**", "--from", "alice"]);
        assert_eq!(reserved.code, Some(5), "what cannot be promised is refused: {reserved:?}");
        one.machine.plug_in();
        one.ok(&["send", "bob", "And this.", "--from", "alice"]);
        let texts: Vec<String> = other.texts("bob").into_keys().collect();
        assert_eq!(texts, ["And this.", "Later, then."]);
        let history = one.ok(&["message", &id]);
        assert!(history.contains("stored") && !history.contains("queued"), "{history}");
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
            let status = send(&mut carol, "dora", &text);
            figures.note(text, status.as_deref());
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
                figures.note(text, parse(&sent.stdout)["recipients"][0]["status"].as_str());
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
            let status = answer.structured["recipients"][0]["status"].as_str().map(str::to_owned);
            if status.is_none() {
                refusal.get_or_insert(answer.text);
            }
            figures.note(text, status.as_deref());
        }
        assert!(figures.refused > 0 && !figures.stored.is_empty() && figures.queued.is_empty(), "it became full");
        let refused = one.run(&["send", "bob", &"z".repeat(10_000), "--from", "alice"]);
        assert_eq!(refused.code, Some(5), "{refused:?}");
        assert!(refused.stderr.contains("hint: the stream or the account is full"), "{}", refused.stderr);
        limit(-1);
        let text = "there is room again".to_owned();
        let status = send(&mut carol, "bob", &text);
        figures.note(text, status.as_deref());
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
            let status = send(&mut carol, "bob", &text);
            figures.note(text, status.as_deref());
        }
        server.ask_for("another-word");
        let refused = wait_for("a new command is refused", || {
            let outcome = one.run(&["status"]);
            (outcome.code == Some(5)).then_some(outcome)
        });
        assert!(refused.stderr.contains("refused this login"), "{refused:?}");
        for number in 0..2 {
            let text = format!("meanwhile {number}");
            let status = send(&mut carol, "bob", &text);
            figures.note(text, status.as_deref());
        }
        assert_eq!(figures.queued.len(), 2, "a process that was let in before keeps what it sends");
        server.ask_for("the-first-word");
        wait_for("nothing waits any more", || (one.waiting() == 0).then_some(()));
        figures.check("a machine that is let in no more, and then again", &one.texts("bob"));
    });
}
