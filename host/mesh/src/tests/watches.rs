//! Watching and searching: no awaited change is missed, and damage affects only the damaged entry.

use std::collections::BTreeMap;
use std::time::Duration;

use store::{Position, Store as _, Watch};

use super::{World, name};
use crate::ReceiptCounts;
use crate::names::AgentName;
use crate::storage::keys;
use crate::testing::session_call;

/// Whether the watch reported a change. A change that it has not reported by now will not be.
async fn told(watch: &mut Box<dyn Watch>) -> bool {
    tokio::time::timeout(Duration::from_secs(60), watch.changed()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn an_inbox_changes_with_each_message_and_with_what_becomes_of_it() {
    let world = World::new();
    world.joined("bob").await;
    let mut watch = world.mesh.watch_inbox(&name("bob")).await.expect("watched");
    assert!(!told(&mut watch).await, "nothing happened");
    world.say("bob", "hello").await;
    assert!(told(&mut watch).await, "it was stored");
    while told(&mut watch).await {}
    world.fetch("bob").await;
    assert!(told(&mut watch).await, "it was fetched");
}

#[tokio::test(start_paused = true)]
async fn a_status_changes_with_the_sessions_of_this_machine_too() {
    let world = World::new();
    let mut watch = world.mesh.watch_status().await.expect("watched");
    world.hook("s1", "start").await;
    assert!(told(&mut watch).await, "a session began");
    while told(&mut watch).await {}
    world.register(&session_call("c1", "s1"), "alice").await;
    assert!(told(&mut watch).await, "an agent joined");
}

#[tokio::test]
async fn who_follows_all_receipts_is_told_in_which_inboxes_there_is_more() {
    let world = World::new();
    for agent in ["alice", "bob", "carol"] {
        world.joined(agent).await;
    }
    let mut known = ReceiptCounts::default();
    let mut read = world.mesh.ends_of_receipts().await.expect("read");
    assert!(read.is_empty(), "none of them has any: {read:?}");
    let mut more = async |read: &BTreeMap<AgentName, Position>| {
        let grown = world.mesh.grown_receipts(read, &mut known).await.expect("read");
        let more: Vec<String> = grown.more.iter().map(|(agent, from)| format!("{agent} {}", from.0)).collect();
        (more.join(", "), grown.gone)
    };
    for agent in ["alice", "bob"] {
        world.say(agent, "hello").await;
        world.fetch(agent).await;
    }
    assert_eq!(more(&read).await, ("alice 0, bob 0".to_owned(), Vec::new()));
    read = world.mesh.ends_of_receipts().await.expect("read");
    assert_eq!(read.keys().map(AgentName::as_str).collect::<Vec<_>>(), ["alice", "bob"]);
    assert_eq!(more(&read).await, (String::new(), Vec::new()));
    // What is shorter than what was read is another log; what is gone altogether need not be remembered.
    read.insert(name("bob"), Position(u64::MAX));
    read.insert(name("carol"), Position(7));
    read.insert(name("dave"), Position(7));
    assert_eq!(more(&read).await, ("bob 0".to_owned(), vec![name("dave"), name("carol")]));
    let meta = keys::meta(&name("alice"));
    let revision = world.store.get(&meta).await.expect("read").map(|value| value.revision);
    world.store.swap(&meta, revision, None, store::Durability::Process).await.expect("removed");
    let read = BTreeMap::from([(name("alice"), read[&name("alice")])]);
    assert_eq!(more(&read).await, ("bob 0".to_owned(), Vec::new()), "who is forgotten has receipts until they are old");
}

#[tokio::test]
async fn who_is_looked_for_is_found_best_first_and_without_what_is_damaged() {
    let world = World::new();
    for agent in ["b-x-o-x-b", "bob", "carol", "rob"] {
        world.joined(agent).await;
    }
    let found = async |query: &str, limit: usize| {
        let found = world.mesh.find(query, limit).await.expect("looked");
        found.iter().map(|found| found.seen.agent.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found("bob", 5).await, "bob b-x-o-x-b");
    assert_eq!(found("bob", 1).await, "bob", "the best of them");
    assert_eq!(found("", 9).await, "b-x-o-x-b bob carol rob", "everybody, by name");
    let meta = keys::meta(&name("carol"));
    let revision = world.store.get(&meta).await.expect("read").map(|value| value.revision);
    world.store.swap(&meta, revision, Some(b"[]"), store::Durability::Process).await.expect("written");
    assert_eq!(found("", 9).await, "b-x-o-x-b bob rob");
}
