//! What the processes of a client show of its sessions: which are opened again, and which are on no screen any more.

use std::sync::Arc;

use super::{World, name};
use crate::ports::harness::{ClientTraces, RecordName};
use crate::sessions::{ConnectionId, Transport};
use crate::testing::session_call;
use crate::{Limits, Mesh};

/// A harness whose sessions run in process 1, and are on screen in terminals.
async fn alice(world: World) -> World {
    *world.harnesses.0.traces.lock().expect("unpoisoned") = ClientTraces {
        record: Some(RecordName { begins: "record-".to_owned(), ends: ".log".to_owned(), id_length: 2 }),
        terminal: Some("fake".to_owned()),
    };
    world.machine.start_terminal(11, &[]);
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    world.hook("s1", "prompt").await;
    world.hook("s1", "stop").await;
    world
}

async fn presence(world: &World, agent: &str) -> String {
    let seen = world.mesh.agent(&name(agent)).await.expect("read").expect("there");
    format!("{}: {}", seen.presence.as_str(), seen.evidence)
}

#[tokio::test]
async fn a_session_whose_terminal_was_closed_is_offline() {
    let world = alice(World::new()).await;
    assert!(presence(&world, "alice").await.starts_with("idle: waits"));
    world.machine.kill(11);
    assert_eq!(presence(&world, "alice").await, "offline: no terminal shows it");
    let id = world.say("alice", "do it").await;
    assert_eq!(world.history(id).await, "stored", "nobody was notified");
    assert_eq!(world.shown("s1", "stop").await, "", "its turn ends unseen");
    // Its user opens it in another terminal, and types.
    world.machine.start_terminal(12, &[]);
    assert_eq!(world.shown("s1", "prompt").await, "do it");
    assert!(presence(&world, "alice").await.starts_with("busy: "));
}

/// The first hook of a session that was opened again gives it its mail, and the next one does not take it back.
#[tokio::test]
async fn what_a_session_was_given_as_it_was_opened_again_stays_given() {
    let world = alice(World::new()).await;
    world.machine.kill(11);
    world.say("alice", "do it").await;
    world.machine.start_terminal(12, &[]);
    world.hook("s1", "resume").await;
    assert!(presence(&world, "alice").await.starts_with("idle: waits"));
    assert_eq!(world.shown("s1", "tool").await, "do it");
    assert_eq!(world.shown("s1", "tool").await, "");
}

#[tokio::test]
async fn a_user_may_have_sessions_work_in_the_background() {
    let world = alice(World::with(Limits { background: true, ..Limits::default() })).await;
    world.machine.kill(11);
    assert_eq!(presence(&world, "alice").await, "idle: waits in the background: no terminal shows it");
}

#[tokio::test]
async fn a_terminal_shows_one_session_at_a_time() {
    let world = alice(World::new()).await;
    world.machine.start_terminal(12, &[]);
    world.hook("s2", "start").await;
    assert_eq!(world.register(&session_call("c2", "s2"), "bob").await, "bob new");
    world.hook("s2", "prompt").await;
    world.machine.kill(12);
    assert!(presence(&world, "alice").await.starts_with("idle: "), "bob was in the other one");
    assert_eq!(presence(&world, "bob").await, "offline: no terminal shows it");
    // A third session in the terminal of the first.
    world.hook("s3", "start").await;
    world.hook("s3", "prompt").await;
    assert_eq!(presence(&world, "alice").await, "offline: no terminal shows it");
}

#[tokio::test]
async fn processes_of_another_container_are_not_looked_up() {
    let world = alice(World::new()).await;
    world.machine.kill(11);
    world.machine.enter_space(2);
    assert!(!presence(&world, "alice").await.contains("screen"));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_opened_again_is_here_before_its_user_types() {
    let world = alice(World::new()).await;
    world.hook("s1", "end").await;
    world.machine.kill(11);
    assert!(presence(&world, "alice").await.starts_with("offline: its session ended"));
    let seen = session_call("c2", "s1").caller;
    assert_eq!(seen.transport, Transport::Stdio);
    let find = |mesh: Arc<Mesh>, client| {
        let seen = seen.clone();
        async move { mesh.find_reopened(&seen, &ConnectionId("c2".to_owned()), client).await }
    };
    world.machine.start(20);
    world.machine.opens(20, &["record-a-s2.log", "other-s1.log"]);
    find(Arc::clone(&world.mesh), 20).await;
    assert!(presence(&world, "alice").await.starts_with("offline: "), "another session was opened");
    world.machine.start_terminal(21, &["resume", "s1"]);
    world.machine.opens(21, &["record-a-s1.log"]);
    find(Arc::clone(&world.mesh), 21).await;
    assert!(presence(&world, "alice").await.starts_with("idle: waits"));
    assert_eq!(world.register(&session_call("c3", "s4"), "alice").await, "alice-2 numbered", "her name is not free");
    world.machine.kill(21);
    assert_eq!(presence(&world, "alice").await, "offline: its process no longer runs");
}

#[tokio::test]
async fn a_session_in_two_terminals_ends_with_the_last_of_them() {
    let world = World::new();
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    world.machine.start(2);
    world.hook_of("s1", "resume", Some(2)).await;
    world.hook_of("s1", "end", Some(2)).await;
    assert!(presence(&world, "alice").await.starts_with("idle: "), "it is open in the first one");
    world.hook_of("s1", "end", Some(1)).await;
    assert!(presence(&world, "alice").await.starts_with("offline: its session ended"));
}
