//! The ownership of keys on servers: a machine may write only its own, and is told so; an open log accepts from each
//! machine what it may write. Data that an operator removes, and a server that comes back, harm no caller.

#[path = "../../../tests/support/src/nats_server.rs"]
mod nats_server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use nats_server::NatsServer;
use store::conformance::children;
use store::{
    AppendError, ChildLeaf, Durability, Expect, Key, Leaf, MachinePart, Ownership, Position, Store, StoreError,
    SwapError,
};
use store_nats::{NatsOptions, NatsStore};

/// Everything under `agents/NAME` belongs to NAME's machine; an inbox is open, and its entries are `{"from":NAME}`.
struct ByName;

impl Ownership for ByName {
    fn home_of(&self, key: &Key) -> Option<Key> {
        let segments: Vec<&str> = key.segments().collect();
        (segments.len() == 3).then(|| self::key(&segments[..2].join("/")))
    }

    fn is_open(&self, log: &Key) -> bool {
        log.leaf() == "inbox"
    }

    fn speaker(&self, _: &Key, entry: &[u8]) -> Option<Key> {
        let entry: serde_json::Value = serde_json::from_slice(entry).ok()?;
        Some(key(&format!("agents/{}", entry["from"].as_str()?)))
    }

    fn owners_needed(&self, _: &Key, _: &[MachinePart]) -> BTreeSet<Key> {
        BTreeSet::new()
    }

    fn merge(&self, _: &Key, parts: &[MachinePart], _: &BTreeMap<Key, String>) -> Option<Vec<u8>> {
        parts.last().map(|part| part.bytes.clone())
    }
}

fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

/// A machine of the mesh on a server.
fn machine(server: &NatsServer, name: &str) -> NatsStore {
    let options = NatsOptions {
        servers: vec![server.url()],
        machine: name.to_owned(),
        timeout: Duration::from_secs(5),
        ..NatsOptions::default()
    };
    NatsStore::with_homes(options, Arc::new(ByName))
}

async fn append(store: &NatsStore, log: &str, entry: &str, expect: Expect) -> Result<Position, AppendError> {
    store.append(&key(log), &[entry.as_bytes().to_vec()], expect, Durability::Synced).await
}

/// The entries of a log, and the number of those that do not count.
async fn read(store: &NatsStore, log: &str) -> (Vec<String>, usize) {
    let batch = store.read(&key(log), Position::START, 1 << 16).await.expect("read");
    let entries = batch.entries.iter().map(|entry| String::from_utf8_lossy(&entry.bytes).into_owned());
    (entries.collect(), batch.damage.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_what_is_another_hosts_is_told_so_and_has_written_nothing() {
    let server = NatsServer::start();
    let (one, other) = (machine(&server, "one"), machine(&server, "other"));
    one.swap(&key("agents/bob/meta"), None, Some(b"1"), Durability::Synced).await.expect("his own machine");
    append(&one, "agents/bob/receipts", "1", Expect::Any).await.expect("his own machine");

    let refused = append(&other, "agents/bob/receipts", "2", Expect::Any).await.expect_err("not his machine");
    assert!(matches!(refused, AppendError::Store(StoreError::Elsewhere { machine, .. }) if machine == "one"));
    let refused =
        other.swap(&key("agents/bob/work"), None, Some(b"2"), Durability::Synced).await.expect_err("nor this");
    assert!(matches!(refused, SwapError::Store(StoreError::Elsewhere { machine, .. }) if machine == "one"));
    for store in [&one, &other] {
        assert_eq!(read(store, "agents/bob/receipts").await, (vec!["1".to_owned()], 0));
        assert!(store.get(&key("agents/bob/work")).await.expect("read").is_none());
    }

    other.swap(&key("agents/carol/meta"), None, Some(b"1"), Durability::Synced).await.expect("her own machine");
    append(&other, "agents/bob/inbox", r#"{"from":"carol"}"#, Expect::Any).await.expect("an inbox is open");
    append(&other, "agents/bob/inbox", r#"{"from":"bob"}"#, Expect::Any).await.expect("to all");
    for store in [&one, &other] {
        let there = read(store, "agents/bob/inbox").await;
        assert_eq!(there, (vec![r#"{"from":"carol"}"#.to_owned()], 1), "nobody speaks as another");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_agents_that_is_seen_at_a_glance_which_their_own_hosts_wrote() {
    let server = NatsServer::start();
    let (one, other) = (machine(&server, "one"), machine(&server, "other"));
    let put = async |store: &NatsStore, at: &str, text: &str| {
        let revision = store.get(&key(at)).await.expect("read").map(|found| found.revision);
        store.swap(&key(at), revision, Some(text.as_bytes()), Durability::Synced).await.expect("its own");
    };
    for name in ["alice", "bob", "carol"] {
        put(&one, &format!("agents/{name}/meta"), "1").await;
    }
    put(&other, "agents/dave/meta", "2").await;
    for entry in [r#"{"from":"dave"}"#, r#"{"from":"alice"}"#] {
        append(&other, "agents/bob/inbox", entry, Expect::Any).await.expect("an inbox is open");
    }
    append(&one, "agents/bob/receipts", "{}", Expect::Any).await.expect("its own");
    // Another machine's data there is stored, but does not count.
    let jetstream = async_nats::jetstream::new(async_nats::connect(server.url()).await.expect("connected"));
    for subject in ["$KV.RELAY_MAP.other.agents.carol.meta", "relay.other.agents.carol.receipts"] {
        jetstream.publish(subject, "3".into()).await.expect("sent").await.expect("kept");
    }
    let glance = async |store: &NatsStore| {
        let beside = [Leaf::Log("inbox"), Leaf::Log("receipts"), Leaf::Value("beat")];
        let text = |value: Vec<u8>| String::from_utf8(value).expect("text");
        let lines = children(store, &key("agents"), "meta", &beside).await.into_iter().map(|(name, value, beside)| {
            let beside = beside.into_iter().map(|beside| match beside {
                ChildLeaf::Nothing => "-".to_owned(),
                ChildLeaf::Appends(count) => count.to_string(),
                ChildLeaf::Value(value) => text(value.expect("a value").bytes),
                ChildLeaf::Unknown => "?".to_owned(),
            });
            let beside = beside.collect::<Vec<_>>().join(" ");
            format!("{name}: {}, {beside}", text(value))
        });
        lines.collect::<Vec<_>>()
    };
    for store in [&one, &other] {
        assert_eq!(glance(store).await, ["alice: 1, - - -", "bob: 1, 2 1 -", "carol: 1, - - -", "dave: 2, - - -"]);
    }
    // A second read sees what was written and removed since.
    put(&one, "agents/alice/meta", "4").await;
    put(&other, "agents/dave/beat", "[5]").await;
    put(&other, "agents/erin/meta", "6").await;
    let revision = one.get(&key("agents/bob/meta")).await.expect("read").map(|found| found.revision);
    one.swap(&key("agents/bob/meta"), revision, None, Durability::Synced).await.expect("removed");
    for store in [&one, &other, &machine(&server, "third")] {
        assert_eq!(glance(store).await, ["alice: 4, - - -", "carol: 1, - - -", "dave: 2, - - [5]", "erin: 6, - - -"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_whose_messages_grew_too_old_goes_on_where_it_ended() {
    let server = NatsServer::start();
    let one = machine(&server, "one");
    let log = "agents/bob/receipts";
    let end = append(&one, log, "1", Expect::Any).await.expect("appended");
    let js = async_nats::jetstream::new(async_nats::connect(server.url()).await.expect("connected"));
    js.get_stream("RELAY_MESSAGES").await.expect("a stream").purge().await.expect("purged");
    append(&one, log, "2", Expect::End(end)).await.expect("nothing has come since");
    let late = append(&one, log, "3", Expect::End(end)).await.expect_err("now something has");
    assert!(matches!(late, AppendError::Moved), "{late:?}");
    assert_eq!(read(&one, log).await.0, ["2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_watches_looks_again_after_a_server_came_back() {
    let mut server = NatsServer::start();
    let one = machine(&server, "one");
    append(&one, "agents/bob/inbox", "1", Expect::Any).await.expect("appended");
    let mut watch = one.watch(&[key("agents/bob/inbox")]).await.expect("watched");
    // Changes while the server was down are not announced afterwards: the reconnect itself must wake the watch.
    server.restart();
    let told = tokio::time::timeout(Duration::from_secs(60), watch.changed()).await;
    told.expect("it is told within a minute").expect("and goes on");
}
