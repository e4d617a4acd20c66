//! Messages when servers die: nothing acknowledged is lost, and nothing is doubled.

#![expect(clippy::print_stdout, reason = "each fault reports its figures")]

#[path = "../../../tests/support/src/nats_server.rs"]
mod nats_server;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nats_server::NatsServer;
use store::{Durability, Expect, Key, Position, Store};
use store_nats::{NatsOptions, NatsStore};
use tokio::task::JoinSet;

/// Number of machines that send at once, and of messages of each.
const MACHINES: u64 = 4;
const EACH: u64 = 150;

fn log() -> Key {
    "agents/bob/inbox".parse().expect("a key")
}

fn open(servers: &[String], replicas: usize, machine: &str) -> Arc<dyn Store> {
    open_with(servers, replicas, machine, Duration::from_secs(2))
}

fn open_with(servers: &[String], replicas: usize, machine: &str, timeout: Duration) -> Arc<dyn Store> {
    Arc::new(NatsStore::new(NatsOptions {
        servers: servers.to_vec(),
        machine: machine.to_owned(),
        replicas,
        timeout,
        ..NatsOptions::default()
    }))
}

/// The results of sending.
struct Figures {
    acknowledged: Vec<u64>,
    sent: u64,
}

/// Sends from several machines at once while something happens to the servers.
async fn send_while(servers: &[String], replicas: usize, happens: impl FnOnce() + Send + 'static) -> Figures {
    // The first append creates the stream, and must succeed.
    let first = open_with(servers, replicas, "first", Duration::from_secs(30));
    let entry = |number: u64| vec![format!("{{\"n\":{number}}}").into_bytes()];
    first.append(&log(), &entry(0), Expect::Any, Durability::Synced).await.expect("appended");
    let mut senders = JoinSet::new();
    let (tell, mut half) = tokio::sync::mpsc::channel::<()>(1);
    for machine in 0..MACHINES {
        let store = open(servers, replicas, &format!("machine-{machine}"));
        let tell = tell.clone();
        senders.spawn(async move {
            let mut acknowledged = Vec::new();
            for index in 0..EACH {
                let number = 1 + machine * EACH + index;
                if index == EACH / 3 {
                    // The receiver may be gone; that does not matter here.
                    let _told = tell.try_send(());
                }
                if store.append(&log(), &entry(number), Expect::Any, Durability::Synced).await.is_ok() {
                    acknowledged.push(number);
                }
            }
            acknowledged
        });
    }
    half.recv().await.expect("some were sent");
    tokio::task::spawn_blocking(happens).await.expect("it happened");
    let mut acknowledged = vec![0];
    while let Some(of_one) = senders.join_next().await {
        acknowledged.extend(of_one.expect("a sender"));
    }
    Figures { acknowledged, sent: 1 + MACHINES * EACH }
}

/// Reads everything back and compares.
async fn check(what: &str, servers: &[String], replicas: usize, figures: Figures) {
    let store = open(servers, replicas, "reader");
    let mut found: BTreeMap<u64, u32> = BTreeMap::new();
    let mut from = Position::START;
    loop {
        // A cluster whose leader was killed may take longer than one timeout to elect another.
        let read = tokio::time::timeout(Duration::from_secs(40), async {
            loop {
                match store.read(&log(), from, 1 << 16).await {
                    Err(error) if error.is_out_of_reach() => {}
                    outcome => return outcome,
                }
            }
        });
        let batch = read.await.expect("somebody leads").expect("read");
        assert_eq!(batch.damage, []);
        for entry in &batch.entries {
            let value: serde_json::Value = serde_json::from_slice(&entry.bytes).expect("JSON");
            *found.entry(value["n"].as_u64().expect("a number")).or_default() += 1;
        }
        from = batch.next;
        if batch.at_end {
            break;
        }
    }
    let lost: Vec<_> = figures.acknowledged.iter().filter(|number| !found.contains_key(number)).collect();
    let twice: Vec<_> = found.iter().filter(|(_, times)| **times > 1).collect();
    println!(
        "{what}: sent {}, acknowledged {}, found {}, lost {}, twice {}",
        figures.sent,
        figures.acknowledged.len(),
        found.len(),
        lost.len(),
        twice.len()
    );
    assert!(figures.acknowledged.len() as u64 > figures.sent / 2, "most of it was acknowledged");
    assert!(lost.is_empty(), "{lost:?}");
    assert!(twice.is_empty(), "{twice:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_is_killed_and_started_again_loses_nothing() {
    let mut server = NatsServer::start();
    let servers = [server.url()];
    let (give_back, given_back) = std::sync::mpsc::channel();
    let figures = send_while(&servers, 1, move || {
        server.restart();
        give_back.send(server).expect("somebody waits");
    });
    let figures = figures.await;
    let server = given_back.recv().expect("the server");
    check("server killed and started again", &servers, 1, figures).await;
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_that_loses_its_leader_loses_nothing() {
    let mut cluster = NatsServer::cluster(3);
    let servers: Vec<String> = cluster.iter().map(NatsServer::url).collect();
    let leader_of = |servers: Vec<String>| async move {
        let client = async_nats::connect(servers).await.expect("connected");
        let stream = async_nats::jetstream::new(client).get_stream("RELAY_MESSAGES").await.expect("a stream");
        stream.cached_info().cluster.as_ref().and_then(|cluster| cluster.leader.clone()).expect("a leader")
    };
    // A cluster takes a while to elect its leader; the first append is retried until it has.
    let patient = open(&servers, 3, "patient");
    let begun = tokio::time::timeout(Duration::from_secs(60), async {
        let entries = [b"{\"n\":1000000}".to_vec()];
        while patient.append(&log(), &entries, Expect::Any, Durability::Synced).await.is_err() {
            tokio::task::yield_now().await;
        }
    });
    begun.await.expect("the cluster works");
    let leader = leader_of(servers.clone()).await;
    let (give_back, given_back) = std::sync::mpsc::channel();
    let figures = send_while(&servers, 3, move || {
        let index = cluster.iter().position(|node| node.name() == leader).expect("one of ours");
        cluster[index].kill();
        give_back.send(cluster).expect("somebody waits");
    });
    let figures = figures.await;
    let cluster = given_back.recv().expect("the cluster");
    check("leader killed", &servers, 3, figures).await;
    drop(cluster);
}

/// Copies a folder that no server uses.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder is writable");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let copied = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &copied);
        } else {
            fs::copy(entry.path(), copied).expect("copied");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_running_reader_notices_that_the_server_lost_the_end_of_its_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, kept) = (folder.path().join("server"), folder.path().join("kept"));
    let mut server = NatsServer::kept_in(&data);
    let (reader, sender) = (open(&[server.url()], 1, "reader"), open(&[server.url()], 1, "sender"));
    let append = async |number: u64| {
        let entry = [format!("{{\"n\":{number}}}").into_bytes()];
        patiently(async || sender.append(&log(), &entry, Expect::Any, Durability::Synced).await.ok()).await
    };
    let read = async |from: Position| {
        let batch = patiently(async || reader.read(&log(), from, 1 << 16).await.ok()).await;
        (batch.entries.len(), batch.next)
    };
    let first = append(0).await;
    server.kill();
    copy(&data, &kept);
    server.restart();
    append(1).await;
    let last = append(2).await;
    assert_eq!(read(Position::START).await, (3, last));
    assert_eq!(read(last).await, (0, last), "nothing is new, and nothing is lost");

    server.kill();
    fs::remove_dir_all(&data).expect("removed");
    copy(&kept, &data);
    server.restart();
    assert_eq!(read(last).await, (0, first), "the log ends where it ended before");
    let again = append(3).await;
    assert!(again < last, "it gets a position that was read already");
    assert_eq!(read(first).await, (1, again));
}

/// What a store answers once its connection stands again.
async fn patiently<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let answer = async {
        loop {
            match ask().await {
                Some(answer) => return answer,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(40), answer).await.expect("the server answers")
}
