//! Following fast-growing logs: 100,000 messages in one inbox and as many events, over many segments. A follower by the
//! real binary misses none and gets none twice.
//!
//! The test writes the logs directly to the store, a few hundred entries per append, because it tests the reader.
//! `many_senders` tests real writers.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::thread;

use serde_json::{Value, json};
use store::files::{FilesOptions, FilesStore};
use store::{Durability, Expect, Key, Store};
use test_support::{Running, Stage};

const MESSAGES: usize = 100_000;
const WRITERS: usize = 4;
const AT_ONCE: usize = 250;
/// Small, so that the logs have some hundred segments.
const SEGMENT: u64 = 256 * 1024;

#[test]
fn who_follows_a_hundred_thousand_messages_over_many_segments_misses_none() {
    let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
    stage.relay_ok(&["register", "bob"]);
    let log = start(&stage, &["log", "--follow", "--json", "--type", "sent"], "log");
    let mail = start(&stage, &["events", "--subscribe", "inbox", "--agent", "bob", "--cursor", "start"], "mail");
    let (in_log, in_mail) = thread::scope(|scope| {
        let in_log = scope.spawn(|| numbers(log, |line| line["n"].as_u64()));
        let in_mail = scope.spawn(|| numbers(mail, |line| line["body"].as_str()?.parse().ok()));
        let options = FilesOptions { durability: Durability::Process, rotate_at: SEGMENT, ..FilesOptions::default() };
        let store = Arc::new(FilesStore::open(&stage.data, options).expect("the data folder is there"));
        for writer in 0..WRITERS {
            let store = Arc::clone(&store);
            scope.spawn(move || write(&store, writer));
        }
        (in_log.join().expect("it is read"), in_mail.join().expect("it is read"))
    });
    for (who, told) in [("log --follow", in_log), ("events", in_mail)] {
        let each: BTreeSet<u64> = told.iter().copied().collect();
        assert_eq!((told.len(), each.len()), (MESSAGES, MESSAGES), "{who} is told each once");
    }
    let segments = std::fs::read_dir(stage.data.join("agents/bob")).expect("a folder").flatten();
    let sealed = segments.filter(|entry| entry.file_name().to_string_lossy().starts_with("inbox.jsonl.")).count();
    assert!(sealed > 50, "the inbox was begun anew {sealed} times");
}

fn start(stage: &Stage, arguments: &[&str], name: &str) -> Running {
    stage.relay(arguments).start(&stage.folder.join(format!("{name}.log")))
}

/// Reads a follower until it has printed as many entries as were written, then stops it.
fn numbers(mut follower: Running, number: impl Fn(&Value) -> Option<u64>) -> Vec<u64> {
    let pipe = follower.child.stdout.take().expect("its output is a pipe");
    let lines = BufReader::new(pipe).lines().map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"));
    let told: Vec<u64> = lines.filter_map(|line: Value| number(&line)).take(MESSAGES).collect();
    assert_eq!(follower.stop(), Some(0));
    told
}

/// One writer's share, as messages in the inbox and events in the event log.
fn write(store: &FilesStore, writer: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (inbox, event_log): (Key, Key) = ("agents/bob/inbox".parse().expect("a key"), "global".parse().expect("a key"));
    let numbers: Vec<usize> = (0..MESSAGES).filter(|number| number % WRITERS == writer).collect();
    for some in numbers.chunks(AT_ONCE) {
        let line = |value: Value| serde_json::to_vec(&value).expect("JSON");
        let messages: Vec<Vec<u8>> = some.iter().map(|number| line(message(*number))).collect();
        let events: Vec<Vec<u8>> =
            some.iter().map(|number| line(json!({"event": "sent", "at": 1, "n": number}))).collect();
        for (log, entries) in [(&inbox, messages), (&event_log, events)] {
            runtime
                .block_on(store.append(log, &entries, Expect::Any, Durability::Process))
                .expect("the store takes them");
        }
    }
}

fn message(number: usize) -> Value {
    let id = format!("01JD8Z3K5V{number:016}");
    json!({
        "id": id, "at": 1_795_258_742_120_u64, "from": "alice", "to": "bob", "subject": number.to_string(),
        "body": number.to_string(), "thread": id, "priority": "normal", "trace": {"root": id, "hops": 0},
    })
}
