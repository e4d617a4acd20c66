//! Pausing: nothing is given to a paused agent and no tool is let through, until its user resumes it.

use store::memory::Fault;

use super::{World, draft, name};
use crate::PauseError;
use crate::messages::receipt::DeliveryStatus;
use crate::ports::harness::Carries;
use crate::sessions::{SessionRef, record};
use crate::testing::{route, session_call, shell_call};

async fn alice_in_a_session() -> World {
    let world = World::new();
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("s1", "s1"), "alice").await, "alice new");
    world
}

async fn pause(world: &World) {
    assert_eq!(world.mesh.pause(Some(&[name("alice")])).await.expect("paused"), [name("alice")]);
}

#[tokio::test]
async fn mail_waits_for_a_paused_agent_and_comes_in_order() {
    let world = alice_in_a_session().await;
    pause(&world).await;
    assert!(world.mesh.is_paused(&name("alice")).await.expect("readable"));
    assert!(world.mesh.pause(Some(&[name("alice")])).await.expect("stored").is_empty(), "it was paused before");
    for body in ["one", "two"] {
        world.say("alice", body).await;
        world.machine.pass(1);
    }
    for did in ["tool", "stop", "prompt", "resume"] {
        let shown = world.shown("s1", did).await;
        assert!(!shown.contains("one") && !shown.contains("two"), "{did}: {shown}");
    }
    let seen = world.mesh.agents().await.expect("listed");
    assert!(seen[0].paused && seen[0].waiting == 2, "{seen:?}");
    // Another process, started since, knows it too; and so does a session that begins anew.
    let other = world.another_process();
    assert!(!other.shown("s1", "prompt").await.contains("one"));
    assert_eq!(other.mesh.resume(None).await.expect("resumed"), [name("alice")]);
    assert!(other.mesh.resume(None).await.expect("resumed").is_empty());
    assert_eq!(world.shown("s1", "tool").await, "one two");
}

#[tokio::test]
async fn a_tool_of_a_paused_agent_is_refused_with_the_reason() {
    let world = alice_in_a_session().await;
    let edit = async || world.hook("s1", "edit:/work/a.rs").await.stdout.unwrap_or_default();
    assert_eq!(edit().await, "");
    pause(&world).await;
    assert!(edit().await.contains("your user has paused you, `alice`"), "{}", edit().await);
    world.mesh.resume(Some(&[name("alice")])).await.expect("resumed");
    assert_eq!(edit().await, "");
}

// Paused time: what would happen within a minute has happened when the first wait ends.
#[tokio::test(start_paused = true)]
async fn no_route_is_tried_for_a_paused_agent() {
    let world = alice_in_a_session().await;
    let fake = &world.harnesses.0;
    *fake.routes.lock().expect("unpoisoned") = vec![route("push", Carries::Message, DeliveryStatus::Shown, 1_000)];
    world.hook("s1", "stop").await;
    pause(&world).await;
    let id = world.send(&shell_call(None), "alice", draft("hello")).await.expect("sent").id;
    let stop = tokio_util::sync::CancellationToken::new();
    let delivering = tokio::spawn(std::sync::Arc::clone(&world.mesh).deliver(crate::Served::Everyone, stop.clone()));
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(fake.delivered.lock().expect("unpoisoned").is_empty());
    assert_eq!(world.history(id).await, "stored");
    world.mesh.resume(None).await.expect("resumed");
    while fake.delivered.lock().expect("unpoisoned").is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    stop.cancel();
    delivering.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_is_decides_and_not_what_its_session_is_noted_as() {
    for (is_paused, expected) in [(true, "stored"), (false, "stored, notified by wake-file, shown by push")] {
        let world = alice_in_a_session().await;
        *world.harnesses.0.routes.lock().expect("unpoisoned") =
            vec![route("push", Carries::Message, DeliveryStatus::Shown, 1_000)];
        world.hook("s1", "stop").await;
        if is_paused {
            pause(&world).await;
        }
        // As a new session of hers is noted, or one that was missed when she was resumed.
        let session = SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
        let noted = (!is_paused).then(|| world.mesh.core.machine.now());
        let note = record::change_session(&world.mesh.core, &session, |record| record.paused = noted);
        note.await.expect("noted");
        let id = world.say("alice", "hello").await;
        let stop = tokio_util::sync::CancellationToken::new();
        let deliver = std::sync::Arc::clone(&world.mesh).deliver(crate::Served::Everyone, stop.clone());
        let delivering = tokio::spawn(deliver);
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        assert_eq!(world.history(id).await, expected, "paused: {is_paused}");
        stop.cancel();
        delivering.await.expect("it ends");
    }
}

#[tokio::test]
async fn an_agent_of_another_machine_is_paused_there() {
    let world = alice_in_a_session().await;
    let other = World { machine: std::sync::Arc::new(crate::testing::FakeMachine::named("there")), ..World::new() };
    let mesh = World::mesh_over(&world.store, &other.machine, &world.harnesses, crate::Limits::default());
    let refused = mesh.pause(Some(&[name("alice")])).await.expect_err("refused");
    assert!(matches!(refused, PauseError::Elsewhere { .. }), "{refused}");
    assert!(mesh.pause(None).await.expect("paused").is_empty(), "none of them is its own");
}

#[tokio::test]
async fn a_resume_that_broke_off_wakes_the_session_when_it_is_asked_for_again() {
    let alice = [name("alice")];
    for names in [None, Some(alice.as_slice())] {
        for nth in 1..=5 {
            let world = alice_in_a_session().await;
            pause(&world).await;
            world.say("alice", "one").await;
            let before = world.wake_lines("s1").await;
            world.store.fail_at(nth, Fault::Fail);
            let _either_way = world.mesh.resume(names).await;
            world.mesh.resume(names).await.expect("resumed");
            assert!(!world.mesh.is_paused(&name("alice")).await.expect("readable"));
            let after = world.wake_lines("s1").await;
            assert!(after > before, "{names:?}, write {nth}");
            world.mesh.resume(names).await.expect("resumed");
            assert_eq!(world.wake_lines("s1").await, after, "{names:?}, write {nth}: once is enough");
        }
    }
}

/// As while the servers are out of reach, which hold the mail.
#[tokio::test]
async fn a_session_that_cannot_be_woken_keeps_no_other_one_paused() {
    let mut went_on = false;
    for nth in 1..=5 {
        let world = alice_in_a_session().await;
        world.hook("s2", "start").await;
        assert_eq!(world.register(&session_call("s2", "s2"), "bob").await, "bob new");
        world.mesh.pause(None).await.expect("paused");
        for to in ["alice", "bob"] {
            world.say(to, "one").await;
        }
        let before = [world.wake_lines("s1").await, world.wake_lines("s2").await];
        world.store.fail_at(nth, Fault::Fail);
        let resumed = world.mesh.resume(None).await;
        let after = [world.wake_lines("s1").await, world.wake_lines("s2").await];
        went_on |= resumed.is_err() && after[0] == before[0] && after[1] > before[1];
        world.mesh.resume(None).await.expect("resumed");
        assert!(world.wake_lines("s1").await > before[0], "write {nth}");
    }
    assert!(went_on, "no write was that which wakes the first session");
}
