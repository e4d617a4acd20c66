//! Catalogs on a server that several machines share: a machine believes the catalog of the machine that has the log's
//! home, and no other one.

#[path = "../../../tests/support/src/nats_server.rs"]
mod nats_server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_nats::jetstream;
use nats_server::NatsServer;
use store::{Durability, Entry, Expect, IndexRule, Indexed, Key, MachinePart, Ownership, Seek, Store, Term};
use store_nats::{NatsOptions, NatsStore};

/// Everything under `agents/NAME` belongs to NAME's machine; an inbox is open.
struct ByName;

impl Ownership for ByName {
    fn home_of(&self, key: &Key) -> Option<Key> {
        let segments: Vec<&str> = key.segments().collect();
        (segments.len() == 3).then(|| self::key(&segments[..2].join("/")))
    }

    fn is_open(&self, log: &Key) -> bool {
        log.leaf() == "inbox"
    }

    fn speaker(&self, _: &Key, _: &[u8]) -> Option<Key> {
        None
    }

    fn owners_needed(&self, _: &Key, _: &[MachinePart]) -> BTreeSet<Key> {
        BTreeSet::new()
    }

    fn merge(&self, _: &Key, parts: &[MachinePart], _: &BTreeMap<Key, String>) -> Option<Vec<u8>> {
        parts.last().map(|part| part.bytes.clone())
    }
}

/// Entries `{"id":ID,"at":TIME}`.
struct Rule;

impl IndexRule for Rule {
    fn version(&self) -> u32 {
        1
    }

    fn of(&self, _: &Key, entry: &[u8]) -> Indexed {
        let Ok(line) = serde_json::from_slice::<serde_json::Value>(entry) else { return Indexed::default() };
        let terms = line["id"].as_str().map(Term::growing).into_iter().collect();
        Indexed { terms, at: line["at"].as_u64() }
    }
}

fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

fn machine(server: &NatsServer, name: &str) -> NatsStore {
    let options = NatsOptions { servers: vec![server.url()], machine: name.to_owned(), ..NatsOptions::default() };
    NatsStore::with_rules(options, Some(Arc::new(ByName)), Arc::new(Rule))
}

fn id(number: u64) -> String {
    format!("{number:012}-id")
}

async fn append(store: &NatsStore, log: &Key, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let entry = format!("{{\"id\":\"{}\",\"at\":{number}}}", id(number)).into_bytes();
        store.append(log, &[entry], Expect::Any, Durability::Synced).await.expect("appended");
    }
}

async fn count(store: &NatsStore, log: &Key, number: u64) -> usize {
    let found: Vec<Entry> = store.find(log, &[Term::growing(id(number)).since(0)]).await.expect("found");
    found.len()
}

/// The text of a machine's catalog.
async fn catalog(jetstream: &jetstream::Context, machine: &str, log: &Key) -> Option<String> {
    let bucket = jetstream.get_stream("KV_RELAY_MAP").await.expect("there");
    let subject = format!("$KV.RELAY_MAP.{machine}._catalogs.{}", log.as_str().replace('/', "."));
    let message = bucket.get_last_raw_message_by_subject(&subject).await.ok()?;
    Some(String::from_utf8_lossy(&message.payload).into_owned()).filter(|text| !text.is_empty())
}

/// The same catalog, of other ids.
fn lying(catalog: &str) -> String {
    let (_, rest) = catalog.split_once("\"catalog\":").expect("a catalog");
    let text = rest.strip_suffix('}').expect("an object").replace("\"0000000", "\"9999999");
    format!("{{\"checksum\":{},\"catalog\":{text}}}", crc32fast::hash(text.as_bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lying_machine_hides_nothing_in_the_log_of_another() {
    let server = NatsServer::start();
    let (one, other) = (machine(&server, "one"), machine(&server, "other"));
    let client = async_nats::connect(server.url()).await.expect("connected");
    let jetstream = jetstream::new(client);
    one.swap(&key("agents/bob/meta"), None, Some(b"1"), Durability::Synced).await.expect("bob is of this machine");
    for log in [key("agents/bob/inbox"), key("agents/bob/sent"), key("global")] {
        append(&one, &log, 0..300).await;
        // Each looks something up, as far as it makes catalogs.
        assert_eq!((count(&one, &log, 5).await, count(&other, &log, 5).await), (1, 1));
        let honest = catalog(&jetstream, "one", &log).await.expect("the machine of the log made it");
        assert_eq!(catalog(&jetstream, "other", &log).await.is_some(), log == key("global"), "of its own alone: {log}");
        let lie = lying(&honest);
        assert!(lie != honest && lie.len().abs_diff(honest.len()) < 10, "{lie}");
        let subject = format!("$KV.RELAY_MAP.other._catalogs.{}", log.as_str().replace('/', "."));
        jetstream.publish(subject, lie.into()).await.expect("sent").await.expect("it may write there");
        for number in [0, 5, 150, 299] {
            assert_eq!(count(&one, &log, number).await, 1, "{number} in {log}");
        }
        let at = one.seek(&log, Seek::Time(100)).await.expect("sought").expect("a position");
        let first = one.read(&log, at, 1).await.expect("read").entries.remove(0);
        let first: serde_json::Value = serde_json::from_slice(&first.bytes).expect("JSON");
        assert!(first["at"].as_u64().is_some_and(|first| first <= 100), "{first}");
        if log != key("global") {
            assert_eq!(count(&other, &log, 150).await, 1, "the other one believes the machine of the log too");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_machine_appends_is_found_beside_the_catalog() {
    let server = NatsServer::start();
    let (one, other) = (machine(&server, "one"), machine(&server, "other"));
    let log = key("agents/bob/inbox");
    one.swap(&key("agents/bob/meta"), None, Some(b"1"), Durability::Synced).await.expect("bob is of this machine");
    append(&one, &log, 0..200).await;
    assert_eq!(count(&one, &log, 5).await, 1, "it makes the catalog");
    // Whose clock is far behind.
    append(&other, &log, 5..9).await;
    for store in [&one, &other, &machine(&server, "third")] {
        assert_eq!((count(store, &log, 5).await, count(store, &log, 199).await), (2, 1));
    }
}

/// The catalog is a value of another stream, so it may outlive the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_lost_and_filled_anew_is_looked_up_as_it_is() {
    let server = NatsServer::start();
    let log = key("agents/bob/sent");
    let one = machine(&server, "one");
    append(&one, &log, 0..200).await;
    assert_eq!(count(&one, &log, 5).await, 1, "it makes the catalog");
    let client = async_nats::connect(server.url()).await.expect("connected");
    jetstream::new(client).delete_stream("RELAY_MESSAGES").await.expect("deleted");
    let again = machine(&server, "one");
    append(&again, &log, 1_000..1_200).await;
    for store in [&again, &machine(&server, "other")] {
        assert_eq!((count(store, &log, 1_005).await, count(store, &log, 5).await), (1, 0));
    }
}
