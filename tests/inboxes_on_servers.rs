//! An inbox on a real nats-server, read by one process after the other: each begins where the cursor says, with old
//! messages left open, and knows what a plain list of the mail knows.

use std::collections::BTreeMap;

use serde_json::Value;
use test_support::{NatsServer, Stage, bodies};

/// Random enough, and the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn told(stage: &Stage, arguments: &[&str]) -> Value {
    serde_json::from_str(&stage.relay_ok(arguments)).expect("JSON")
}

#[test]
fn processes_that_begin_at_the_cursor_know_what_is_open_and_what_is_not() {
    let server = NatsServer::start();
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.configure(&format!("store = '{}'\n", server.url()));
    for agent in ["alice", "bob"] {
        stage.relay_ok(&["register", agent]);
    }
    let mut dice = Dice(24);
    // The messages by number: their ids, and whether each is open.
    let mut mail: BTreeMap<u64, (String, bool)> = BTreeMap::new();
    for step in 0..60_u64 {
        match dice.below(6) {
            0..3 => {
                let sent: Value = serde_json::from_str(&stage.relay_ok(&[
                    "send",
                    "bob",
                    &step.to_string(),
                    "--from",
                    "alice",
                    "--json",
                ]))
                .expect("JSON");
                mail.insert(step, (sent["id"].as_str().expect("an id").to_owned(), true));
            }
            3 => {
                // The newest are read, and older ones stay open.
                let last = (1 + dice.below(2)).to_string();
                let read = ["read", "--agent", "bob", "--unread", "--mark-read", "--last", &last, "--json"];
                for body in bodies(&told(&stage, &read)) {
                    let number: u64 = body.parse().expect("a number");
                    let (_, open) = mail.get_mut(&number).expect("a message that was sent");
                    assert!(std::mem::replace(open, false), "step {step}: {number} was read before");
                }
            }
            _ => {
                let which = dice.below(mail.len().max(1) as u64);
                if let Some((id, open)) = mail.values_mut().nth(usize::try_from(which).expect("a number")) {
                    stage.relay_ok(&["ack", id, "--agent", "bob"]);
                    *open = false;
                }
            }
        }
        let unread =
            bodies(&told(&stage, &["read", "--agent", "bob", "--unread", "--peek", "--last", "100", "--json"]));
        let open: Vec<String> =
            mail.iter().filter(|(_, (_, open))| *open).map(|(number, _)| number.to_string()).collect();
        assert_eq!(unread, open, "step {step}");
    }
    assert!(mail.values().any(|(_, open)| !open) && mail.len() > 20, "both happened: {mail:?}");
}
