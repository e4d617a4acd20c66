//! Twenty processes send a thousand messages each to one agent, each with its own idempotency key, while others follow
//! the status and run one cleanup after another. One sender is killed half-way; its successor starts a little earlier
//! and repeats messages that may already be stored. Every message is there, and none twice.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicBool, Ordering as Memory};
use std::thread;

use serde_json::{Value, json};
use test_support::{Stage, StdioClient, isolated};

const SENDERS: usize = 20;
const MESSAGES: usize = 1_000;
/// Which sender is killed, and after how many answers.
const VICTIM: usize = 13;
const HALF_WAY: usize = MESSAGES / 2;
/// How many of its acknowledged messages its successor sends again.
const AGAIN: usize = 20;

#[test]
fn twenty_processes_lose_nothing_and_double_nothing_though_one_is_killed() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        stage.relay_ok(&["register", "everyone-writes-me"]);
        let mut follower = stage.relay(&["status", "--follow"]).start(&stage.folder.join("status.log"));
        let shown = BufReader::new(follower.child.stdout.take().expect("a pipe"));
        let is_over = AtomicBool::new(false);
        let acknowledged: Vec<usize> = thread::scope(|scope| {
            let follower = scope.spawn(|| last_count(shown));
            let sweeper = scope.spawn(|| {
                let mut sweeps = 0;
                while !is_over.load(Memory::Relaxed) {
                    stage.relay_ok(&["gc"]);
                    sweeps += 1;
                }
                sweeps
            });
            let senders: Vec<_> = (0..SENDERS)
                .map(|sender| {
                    scope.spawn({
                        let stage = &stage;
                        move || send_all(stage, sender)
                    })
                })
                .collect();
            let acknowledged = senders.into_iter().map(|sender| sender.join().expect("a sender does its work"));
            let acknowledged: Vec<usize> = acknowledged.collect();
            is_over.store(true, Memory::Relaxed);
            assert!(sweeper.join().expect("it sweeps") > 0);
            let stored: usize = acknowledged.iter().sum();
            let shown = follower.join().expect("it is read");
            // The killed sender's last message may have been stored.
            assert!((stored..=stored + 1).contains(&shown), "the status showed {shown} messages at last, not {stored}");
            acknowledged
        });
        assert_eq!(follower.stop(), Some(0), "asked to stop, it stops in order");
        for (sender, acknowledged) in acknowledged.iter().enumerate() {
            let expected = if sender == VICTIM { HALF_WAY } else { MESSAGES };
            assert_eq!(*acknowledged, expected, "sender {sender}");
        }
        let stored = read_back(&stage);
        let lost: Vec<usize> = (0..HALF_WAY).filter(|number| !stored.contains_key(&text(VICTIM, *number))).collect();
        assert_eq!(lost, Vec::<usize>::new(), "what the killed one was told is stored is there");

        // Its successor continues about where the killed sender stopped.
        let mut heir = sender(&stage, VICTIM);
        for number in HALF_WAY - AGAIN..MESSAGES {
            let expected: &[bool] = match number.cmp(&HALF_WAY) {
                Ordering::Less => &[true],
                // Nothing told whether the killed sender's last message was stored.
                Ordering::Equal => &[true, false],
                Ordering::Greater => &[false],
            };
            let duplicate = send(&mut heir, VICTIM, number);
            assert!(expected.contains(&duplicate), "{number} was there before: {duplicate}");
        }
        let stored = read_back(&stage);
        let twice: Vec<_> = stored.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "nothing is stored twice: {twice:?}");
        assert_eq!(stored.len(), SENDERS * MESSAGES, "everything is read back");
    });
}

/// Reads a followed status until the greatest possible number of messages waits, and returns the number.
fn last_count(shown: impl BufRead) -> usize {
    let all_but_the_killed = (SENDERS - 1) * MESSAGES + HALF_WAY;
    let waiting = |line: String| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["mail", .., count, "messages", "wait"] => count.parse::<usize>().ok(),
            _ => None,
        }
    };
    let mut counts = shown.lines().map_while(Result::ok).filter_map(waiting);
    counts.find(|count| *count >= all_but_the_killed).unwrap_or_default()
}

/// Sends all of one sender's messages and returns how many were acknowledged.
fn send_all(stage: &Stage, number_of_sender: usize) -> usize {
    let mut client = sender(stage, number_of_sender);
    for number in 0..MESSAGES {
        if number_of_sender == VICTIM && number == HALF_WAY {
            // It dies after writing its next message and before reading the answer.
            client.write(
                &json!({
                    "jsonrpc": "2.0",
                    "id": "unanswered",
                    "method": "tools/call",
                    "params": {"name": "send_message", "arguments": message(number_of_sender, number)},
                })
                .to_string(),
            );
            client.server.kill();
            return number;
        }
        let duplicate = send(&mut client, number_of_sender, number);
        assert!(!duplicate, "sender {number_of_sender} has sent {number} before");
    }
    assert_eq!(client.close(), Some(0));
    MESSAGES
}

fn sender(stage: &Stage, number: usize) -> StdioClient {
    let process = stage.relay(&["mcp"]).start(&stage.folder.join(format!("sender-{number}.log")));
    let mut client = StdioClient::connected(process, "a-plain-client");
    let registered = client.call("register_agent", json!({"name": format!("sender-{number}")}));
    assert!(!registered.failed, "{registered:?}");
    client
}

/// Sends one message; whether it had been stored before.
fn send(client: &mut StdioClient, sender: usize, number: usize) -> bool {
    let answer = client.call("send_message", message(sender, number));
    assert!(!answer.failed, "{answer:?}");
    answer.structured["recipients"][0]["duplicate"] == true
}

fn message(sender: usize, number: usize) -> Value {
    let body = text(sender, number);
    json!({"to": "everyone-writes-me", "body": body, "idempotency_key": body})
}

fn text(sender: usize, number: usize) -> String {
    format!("message {number} of sender {sender}")
}

/// How often each text is in the inbox, as the user reads it.
fn read_back(stage: &Stage) -> BTreeMap<String, usize> {
    let read = stage.relay_ok(&["read", "--agent", "everyone-writes-me", "--peek", "--last", "100000", "--json"]);
    let mail: Value = serde_json::from_str(&read).expect("--json writes JSON");
    let mut stored = BTreeMap::new();
    for message in mail["messages"].as_array().cloned().unwrap_or_default() {
        *stored.entry(message["body"].as_str().unwrap_or_default().to_owned()).or_insert(0) += 1;
    }
    stored
}
