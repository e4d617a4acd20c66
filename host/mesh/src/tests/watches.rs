//! Watching and searching: no awaited change is missed, and damage affects only the damaged entry.

use std::time::Duration;

use store::{Store as _, Watch};

use super::{World, name};
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
