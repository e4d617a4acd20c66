//! The store on a real nats-server keeps the promises of every store.

#[path = "../../../tests/support/src/nats_server.rs"]
mod nats_server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nats_server::NatsServer;
use store::conformance::{Pair, check};
use store::{Durability, Expect, IndexRule, Indexed, Key, Position, Seek, Term};
use store_nats::{NatsOptions, NatsStore};

/// Two connections to one server, with streams of their own.
fn pair(server: &NatsServer) -> Pair {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let open = |machine: &str| {
        Arc::new(NatsStore::new(NatsOptions {
            servers: vec![server.url()],
            prefix: format!("T{number}"),
            machine: machine.to_owned(),
            ..NatsOptions::default()
        }))
    };
    Pair { one: open("one"), other: open("other") }
}

/// What the entries of the suite are looked up by: `"n":7}`.
struct ByNumber;

impl IndexRule for ByNumber {
    fn version(&self) -> u32 {
        1
    }

    fn of(&self, _: &Key, entry: &[u8]) -> Indexed {
        let number = serde_json::from_slice::<serde_json::Value>(entry).ok().and_then(|entry| entry["n"].as_u64());
        let terms = number.map(|number| Term::growing(format!("\"n\":{number}}}"))).into_iter().collect();
        Indexed { terms, at: number }
    }
}

/// The same as [`pair`], with catalogs of the logs.
fn pair_with_catalogs(server: &NatsServer) -> Pair {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let prefix = format!("C{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let open = |machine: &str| {
        let (servers, prefix, machine) = (vec![server.url()], prefix.clone(), machine.to_owned());
        let options = NatsOptions { servers, prefix, machine, ..NatsOptions::default() };
        Arc::new(NatsStore::with_rules(options, None, Arc::new(ByNumber)))
    };
    Pair { one: open("one"), other: open("other") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nats_conforms_with_catalogs() {
    let server = NatsServer::start();
    check(|| pair_with_catalogs(&server)).await;
}

/// Two connections to streams as an operator creates them with NATS tools: buckets of this kind, subjects wider than
/// ours, and no announcements of stored messages.
fn pair_on_made_streams(server: &NatsServer, buckets: &serde_json::Value) -> Pair {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let prefix = format!("M{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let make = |name: String, more: serde_json::Value| {
        let mut config = serde_json::json!({ "name": name, "storage": "file", "retention": "limits" });
        let all = config.as_object_mut().expect("an object");
        all.extend(more.as_object().expect("an object").clone());
        let made = server.request(&format!("$JS.API.STREAM.CREATE.{name}"), &config);
        assert!(made["error"].is_null(), "{made}");
    };
    let logs = serde_json::json!({ "subjects": [format!("{}.>", prefix.to_lowercase())], "discard": "old" });
    make(format!("{prefix}_MESSAGES"), logs);
    for bucket in ["MAP", "HOLDS"] {
        let age = if bucket == "HOLDS" { 15_000_000_000_u64 } else { 0 };
        let mut config = serde_json::json!({
            "subjects": [format!("$KV.{prefix}_{bucket}.>")], "max_age": age, "discard": "new", "allow_direct": true,
        });
        let all = config.as_object_mut().expect("an object");
        all.extend(buckets.as_object().expect("an object").clone());
        make(format!("KV_{prefix}_{bucket}"), config);
    }
    let open = |machine: &str| {
        let servers = vec![server.url()];
        let options =
            NatsOptions { servers, prefix: prefix.clone(), machine: machine.to_owned(), ..NatsOptions::default() };
        Arc::new(NatsStore::new(options))
    };
    Pair { one: open("one"), other: open("other") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nats_conforms_on_a_bucket_of_which_nothing_can_be_deleted() {
    let server = NatsServer::start();
    let buckets = serde_json::json!({ "max_msgs_per_subject": 1, "allow_rollup_hdrs": true, "deny_delete": true });
    check(|| pair_on_made_streams(&server, &buckets)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nats_conforms_on_a_bucket_that_keeps_old_values() {
    let server = NatsServer::start();
    let buckets = serde_json::json!({ "max_msgs_per_subject": 10, "allow_msg_ttl": true });
    check(|| pair_on_made_streams(&server, &buckets)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nats_conforms() {
    let server = NatsServer::start();
    check(|| pair(&server)).await;
}

/// Servers keep no index of contents, but they know when they stored what.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_sought_since_a_time_is_not_looked_for_before_it() {
    const IN_THE_YEAR_2100: u64 = 4_102_444_800_000;
    let server = NatsServer::start();
    let store = pair(&server).one;
    let log: Key = "logs/dated".parse().expect("a key");
    assert_eq!(store.seek(&log, Seek::Time(1)).await.expect("sought"), Some(Position::START), "an absent log");
    for number in 0..3 {
        let entry = format!("{{\"id\":\"{number}-id\"}}").into_bytes();
        store.append(&log, &[entry], Expect::Any, Durability::Synced).await.expect("appended");
    }
    let count = async |term: Term| store.find(&log, &[term]).await.expect("found").len();
    assert_eq!(count(Term::growing("1-id")).await, 1);
    assert_eq!(count(Term::growing("1-id").since(0)).await, 1);
    assert_eq!(count(Term::growing("1-id").since(IN_THE_YEAR_2100)).await, 0, "nothing was stored since");
    let end = store.end(&log).await.expect("the end");
    assert_eq!(store.seek(&log, Seek::Time(IN_THE_YEAR_2100)).await.expect("sought"), Some(end));
    let begin = store.seek(&log, Seek::Time(0)).await.expect("sought").expect("a position");
    assert_eq!(store.read(&log, begin, 1 << 20).await.expect("read").entries.len(), 3);
}
