//! Two machines during failures: one sends, and the other reads its inbox as mail arrives. Each test ends with figures
//! of what was sent, acknowledged and delivered: no acknowledged message is lost or delivered twice.

#[path = "hosts/machines.rs"]
mod machines;

use std::collections::BTreeMap;
use std::sync::mpsc;

use serde_json::json;
use test_support::{NatsServer, Program, StdioClient, isolated, wait_for};

use machines::{Figures, Host, send};

const MESSAGES: usize = 400;
/// How often the status is queried while a leader is elected.
const LOOKS: usize = 30;

/// Fetches an inbox once and counts how often each text was shown.
fn fetch(client: &mut StdioClient, there: &mut BTreeMap<String, usize>) -> bool {
    let ask = json!({ "limit": 20, "acknowledge": true, "wait_seconds": 1 });
    let fetched = client.call("fetch_messages", ask);
    let messages = fetched.structured["messages"].as_array().cloned().unwrap_or_default();
    for message in &messages {
        *there.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    !messages.is_empty()
}

/// Carol on one machine sends to dora on the other, who reads what arrives; after a third of the messages, `happens`
/// runs.
fn check(what: &str, one: &Host, other: &Host, happens: impl FnOnce() + Send) {
    let mut carol = one.agent("carol");
    let mut dora = other.agent("dora");
    let (tell, third) = mpsc::channel();
    let (figures, there) = std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let mut figures = Figures::default();
            for number in 0..MESSAGES {
                if number == MESSAGES / 3 {
                    tell.send(()).expect("somebody waits");
                }
                let text = format!("message {number}");
                let status = send(&mut carol, "dora", &text);
                figures.note(text, status.as_deref());
            }
            (figures, carol)
        });
        let fault = scope.spawn(move || {
            third.recv().expect("a third was sent");
            happens();
        });
        let mut there = BTreeMap::new();
        while !sender.is_finished() || !fault.is_finished() {
            fetch(&mut dora, &mut there);
        }
        fault.join().expect("it happened");
        // Her process keeps running, because it sends the queued messages.
        let (figures, _carol) = sender.join().expect("all is sent");
        wait_for("nothing waits any more", || (one.waiting() == 0).then_some(()));
        let acknowledged = figures.stored.len() + figures.queued.len();
        wait_for("everything acknowledged is delivered", || {
            fetch(&mut dora, &mut there);
            (there.len() >= acknowledged).then_some(())
        });
        while fetch(&mut dora, &mut there) {}
        (figures, there)
    });
    figures.check(what, &there);
    assert_eq!((figures.sent, figures.refused), (MESSAGES, 0), "{what}: nobody was refused");
}

#[test]
fn a_server_that_is_killed_and_started_again_loses_nothing() {
    isolated(|| {
        let mut server = NatsServer::for_machines();
        let (one, other) = Host::pair(&server);
        check("the server killed and started again", &one, &other, || server.restart());
    });
}

#[test]
fn a_cluster_whose_leader_is_killed_loses_nothing() {
    isolated(|| {
        let mut servers = NatsServer::cluster_for_machines(3);
        let (one, other) = (Host::of_many(1, &servers), Host::of_many(2, &servers));
        wait_for("the servers have agreed on who leads", || {
            (one.run(&["register", "alice"]).code == Some(0)).then_some(())
        });
        let led_by = |servers: &[NatsServer]| {
            let info = servers[0].request("$JS.API.STREAM.INFO.RELAY_MESSAGES", &json!({}));
            let leader = info["cluster"]["leader"].as_str().map(str::to_owned);
            servers.iter().position(|server| Some(server.name()) == leader.as_deref())
        };
        let leader = wait_for("somebody leads", || led_by(&servers));
        let fault = || {
            servers[leader].kill();
            // Queries meanwhile show the last known state.
            for _ in 0..LOOKS {
                one.waiting();
            }
        };
        check("a node of three killed, and the leader moved", &one, &other, fault);
    });
}

#[test]
fn who_is_too_slow_for_the_server_is_cut_off_and_misses_nothing() {
    isolated(|| {
        // Small socket buffers between server and client, and a short write deadline of the server.
        let narrow = |which: &str| {
            let order = format!("echo '4096 16384 16384' > /proc/sys/net/ipv4/{which}");
            Program::new("sh").args(["-c", &order]).succeed();
        };
        narrow("tcp_wmem");
        let server = NatsServer::configured("jetstream {}\nwrite_deadline: \"1s\"\n", &[]).open_to_machines();
        let (one, other) = Host::pair(&server);
        other.machine.within(|| narrow("tcp_rmem"));
        let mut carol = one.agent("carol");
        let mut dora = other.agent("dora");
        let log = server.log();
        let mut there = BTreeMap::new();
        assert!(!fetch(&mut dora, &mut there), "she listens, and nothing is there");
        let signal =
            |what: &str| test_support::Program::new("kill").args([what, &dora.server.child.id().to_string()]).succeed();
        signal("-STOP");
        let mut figures = Figures::default();
        for number in 0..MESSAGES {
            let text = format!("{number} {}", "x".repeat(1_000));
            let status = send(&mut carol, "dora", &text);
            figures.note(text, status.as_deref());
        }
        wait_for("the server has cut her off", || {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            said.contains("Slow Consumer").then_some(())
        });
        signal("-CONT");
        wait_for("everything acknowledged is delivered", || {
            fetch(&mut dora, &mut there);
            (there.len() >= figures.stored.len()).then_some(())
        });
        figures.check("a slow consumer, cut off by the server", &there);
    });
}
