//! Where a time begins, on a server that is wrong about it: if a stream has more files that hold only the marks of deleted
//! messages than others, nats-server 2.15 names a message of the end for every time before.

#[path = "../../../tests/support/src/nats_server.rs"]
mod nats_server;

use std::ops::Range;
use std::time::Duration;

use async_nats::jetstream;
use futures::future::try_join_all;
use nats_server::NatsServer;
use store::{Durability, Expect, Key, Seek, Store, Term};
use store_nats::{NatsOptions, NatsStore};

/// A stream with such a limit has files of 4 MB: of these marks, 140,000.
const MOST_BYTES: i64 = 800_000;
/// How many messages are deleted, of how many logs: each file of marks has some of messages that stay in their files.
const GONE: u64 = 600_000;
const LOGS: u64 = 10;
/// The last of them are written in parts, and after each part comes some of what is kept.
const PARTS: u64 = 10;
const KEPT: u64 = 10;

fn log(name: &str) -> Key {
    format!("agents/{name}/inbox").parse().expect("a key")
}

fn entry(number: u64) -> Vec<u8> {
    format!(r#"{{"id":"{number:026}"}}"#).into_bytes()
}

async fn append(store: &NatsStore, number: u64) {
    store.append(&log("kept"), &[entry(number)], Expect::Any, Durability::Synced).await.expect("appended");
}

/// Sends messages past the store, many at once.
async fn fill(jetstream: &jetstream::Context, numbers: Range<u64>, subject: impl Fn(u64) -> String) {
    let mut acknowledged = Vec::new();
    for number in numbers {
        acknowledged.push(jetstream.publish(subject(number), entry(number).into()).await.expect("sent"));
        if acknowledged.len() == 5_000 {
            try_join_all(acknowledged.drain(..).map(IntoFuture::into_future)).await.expect("stored");
        }
    }
    try_join_all(acknowledged.into_iter().map(IntoFuture::into_future)).await.expect("stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_wrong_about_where_a_time_begins_hides_nothing() {
    let server = NatsServer::start();
    let options = NatsOptions {
        servers: vec![server.url()],
        prefix: "B".to_owned(),
        machine: "one".to_owned(),
        timeout: Duration::from_secs(10),
        ..NatsOptions::default()
    };
    // Without a rule for catalogs, so that each lookup asks for a time.
    append(&NatsStore::new(options.clone()), 0).await;
    // The same stream, made anew with a limit for its size, which says how large its files are, and then without.
    let jetstream = jetstream::new(async_nats::connect(server.url()).await.expect("connected"));
    let made = jetstream.get_stream("B_MESSAGES").await.expect("there");
    let kept = made.get_raw_message(1).await.expect("the entry").subject.to_string();
    let config = made.cached_info().config.clone();
    jetstream.delete_stream("B_MESSAGES").await.expect("deleted");
    let limited = jetstream::stream::Config { max_bytes: MOST_BYTES, ..config.clone() };
    jetstream.create_stream(limited).await.expect("made");
    jetstream.update_stream(config).await.expect("without the limit");

    let store = NatsStore::new(options);
    append(&store, 1).await;
    for part in 0..PARTS {
        let size = GONE / PARTS;
        let gone = |number: u64| kept.replace("kept", &format!("gone{}", number % LOGS));
        fill(&jetstream, part * size..(part + 1) * size, gone).await;
        if part >= PARTS - 3 {
            fill(&jetstream, part * KEPT..(part + 1) * KEPT, |_| kept.clone()).await;
        }
    }
    for number in 0..LOGS {
        let gone = log(&format!("gone{number}"));
        store.retire(&gone, store.end(&gone).await.expect("an end")).await.expect("retired");
    }
    append(&store, GONE).await;

    let stream = jetstream.get_stream("B_MESSAGES").await.expect("there");
    let first = stream.direct_get_next_for_subject(&kept, Some(1)).await.expect("the first entry");
    let asked = serde_json::json!({ "start_time": "2026-01-01T00:00:00Z", "next_by_subj": kept });
    let said: serde_json::Value = jetstream.request("STREAM.MSG.GET.B_MESSAGES", &asked).await.expect("an answer");
    let is_wrong = said["message"]["seq"].as_u64() > Some(first.sequence);
    assert!(is_wrong, "this server is right, so nothing was tested: {said}");

    let since = u64::try_from(first.time.unix_timestamp_nanos() / 1_000_000).expect("after 1970");
    let began = store.seek(&log("kept"), Seek::Time(since)).await.expect("sought").expect("servers know times");
    let all = store.read(&log("kept"), began, 1 << 20).await.expect("read");
    assert_eq!(all.entries.len() as u64, 1 + 3 * KEPT + 1);
    let term = |number: u64| Term { since: Some(since), ..Term::growing(format!("{number:026}")) };
    let found = store.find(&log("kept"), &[term((PARTS - 1) * KEPT), term(GONE)]).await.expect("found");
    assert_eq!(found.len(), 2, "{found:?}");
}
