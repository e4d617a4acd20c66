//! Sessions that clear, compact, resume, fork, close or crash: which one keeps the agent, and where mail waits.

use std::sync::Arc;

use store::{Durability, Store};
use tokio_util::sync::CancellationToken;

use super::delivery::until;
use super::{World, name};
use crate::Served;
use crate::delivery::serve;
use crate::messages::receipt::DeliveryStatus;
use crate::ports::harness::Carries;
use crate::sessions::{Call, ConnectionId};
use crate::storage::keys;
use crate::testing::{route, session_call};

/// `alice` is the agent of session `s1`, whose process is 1.
async fn alice() -> World {
    let world = World::new();
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    world
}

async fn presence(world: &World, agent: &str) -> String {
    let seen = world.mesh.agent(&name(agent)).await.expect("read").expect("there");
    format!("{}: {}", seen.presence.as_str(), seen.evidence)
}

async fn agent_of(world: &World, call: &Call) -> Option<String> {
    let caller = world.mesh.identify(call).await.expect("identified");
    caller.agent().map(ToString::to_string)
}

#[tokio::test]
async fn compaction_keeps_agent_and_mail() {
    let world = alice().await;
    world.say("alice", "before").await;
    world.hook("s1", "compact").await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice same");
    assert_eq!(world.shown("s1", "tool").await, "before");
}

#[tokio::test]
async fn a_crashed_session_that_is_resumed_is_the_same_agent_and_finds_its_mail() {
    let world = alice().await;
    world.machine.kill(1);
    assert_eq!(presence(&world, "alice").await, "offline: its process no longer runs");
    let id = world.say("alice", "while you were down").await;
    assert_eq!(world.history(id).await, "stored", "nobody was notified");
    assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice-2 numbered", "mail waits for alice");
    world.machine.start(2);
    world.hook_of("s1", "resume", Some(2)).await;
    assert!(presence(&world, "alice").await.starts_with("idle: "));
    assert_eq!(world.shown_by("s1", "prompt", Some(2)).await, "while you were down");
    assert_eq!(world.register(&session_call("c3", "s1"), "alice").await, "alice same");
}

#[tokio::test]
async fn what_a_crashed_session_had_asked_its_person_is_forgotten() {
    let world = alice().await;
    world.hook("s1", "ask").await;
    world.machine.kill(1);
    world.say("alice", "hello").await;
    world.machine.start(2);
    world.hook_of("s1", "resume", Some(2)).await;
    assert_eq!(world.shown_by("s1", "nothing", Some(2)).await, "hello", "it waits for nobody's answer any more");
}

#[tokio::test]
async fn a_crashed_session_whose_new_process_nobody_names_lives_all_the_same() {
    let world = alice().await;
    world.machine.kill(1);
    world.hook_of("s1", "resume", None).await;
    assert!(presence(&world, "alice").await.starts_with("idle: "));
}

#[tokio::test]
async fn a_late_hook_of_a_dead_process_wakes_nobody_from_the_dead() {
    let world = alice().await;
    world.machine.kill(1);
    world.hook("s1", "stop").await;
    assert_eq!(presence(&world, "alice").await, "offline: its process no longer runs");
}

#[tokio::test]
async fn a_fork_in_a_window_of_its_own_is_another_agent() {
    let world = alice().await;
    world.hook("s2", "start").await;
    assert_eq!(agent_of(&world, &session_call("c2", "s2")).await, None);
    assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice-2 numbered");
    world.say("alice", "to the first").await;
    assert_eq!(world.shown("s2", "stop").await, "");
    assert_eq!(world.shown("s1", "stop").await, "to the first");
}

#[tokio::test]
async fn a_session_that_begins_in_the_same_window_takes_over_nobodys_agent() {
    for begins in ["start", "resume"] {
        let world = alice().await;
        world.hook("s2", begins).await;
        assert_eq!(agent_of(&world, &session_call("c1", "s2")).await, None, "{begins}");
        assert_eq!(world.register(&session_call("c1", "s2"), "alice").await, "alice-2 numbered", "{begins}");
        // The window goes back to the first session.
        assert_eq!(agent_of(&world, &session_call("c1", "s1")).await.as_deref(), Some("alice"), "{begins}");
    }
}

#[tokio::test]
async fn a_window_whose_session_changed_and_no_hook_said_how_keeps_its_agent() {
    let world = alice().await;
    assert_eq!(agent_of(&world, &session_call("c1", "s2")).await.as_deref(), Some("alice"));
    world.say("alice", "still you").await;
    assert_eq!(world.shown("s2", "stop").await, "still you");
}

#[tokio::test]
async fn clearing_twice_and_what_an_old_id_asks_leads_to_the_same_agent() {
    let world = alice().await;
    world.hook("s2", "clear:s1").await;
    world.hook("s3", "clear:s2").await;
    for session in ["s1", "s2", "s3"] {
        assert_eq!(agent_of(&world, &session_call("elsewhere", session)).await.as_deref(), Some("alice"), "{session}");
    }
    world.hook("s3", "end").await;
    world.say("alice", "later").await;
    world.hook("s3", "resume").await;
    assert_eq!(world.shown("s3", "prompt").await, "later");
}

#[tokio::test]
async fn a_subagents_mail_waits_for_the_subagent_and_not_for_its_root() {
    let world = alice().await;
    assert_eq!(world.register(&session_call("c1", "sub<s1"), "helper").await, "helper new");
    world.hook("sub", "end").await;
    assert!(presence(&world, "helper").await.starts_with("offline: its session ended"));
    world.say("helper", "for the helper").await;
    assert_eq!(world.shown("s1", "stop").await, "");
    assert_eq!(world.register(&session_call("c1", "sub2<s1"), "helper").await, "helper-2 numbered");
    world.hook("sub", "resume").await;
    assert_eq!(world.shown("sub", "stop").await, "for the helper");
    // After a clear the subagents of the old session still speak for the same root.
    world.hook("s2", "clear:s1").await;
    assert_eq!(agent_of(&world, &session_call("c1", "sub3<s1")).await, None, "which is not known before it is seen");
    world.register(&session_call("c1", "sub3<s1"), "third").await;
    assert_eq!(agent_of(&world, &session_call("c1", "sub3<s1")).await.as_deref(), Some("third"));
}

#[tokio::test(start_paused = true)]
async fn mail_that_came_while_a_session_was_down_wakes_it_when_it_is_back() {
    let world = alice().await;
    *world.harnesses.0.routes.lock().expect("unpoisoned") =
        vec![route("wake-file", Carries::Notification, DeliveryStatus::Notified, 1_000)];
    world.machine.kill(1);
    let id = world.say("alice", "while you were down").await;
    let stop = CancellationToken::new();
    tokio::spawn(Arc::clone(&world.mesh).deliver(Served::Everyone, stop.clone()));
    for _ in 0..50 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(world.history(id).await, "stored");
    world.machine.start(2);
    world.hook_of("s1", "resume", Some(2)).await;
    until(&world, id, "stored, notified by wake-file").await;
    stop.cancel();
}

#[tokio::test]
async fn an_agent_that_another_session_took_is_not_that_of_the_old_one_when_it_returns() {
    for ends in ["end", "kill"] {
        let world = alice().await;
        match ends {
            "end" => drop(world.hook("s1", "end").await),
            _ => world.machine.kill(1),
        }
        world.machine.start(2);
        world.hook_of("s2", "start", Some(2)).await;
        assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice reclaimed", "{ends}");
        world.say("alice", "to the new one").await;
        world.machine.start(1);
        world.hook("s1", "resume").await;
        assert_eq!(agent_of(&world, &session_call("c1", "s1")).await, None, "{ends}");
        assert_eq!(world.shown("s1", "prompt").await, "", "{ends}");
        assert_eq!(world.shown_by("s2", "prompt", Some(2)).await, "to the new one", "{ends}");
        assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice-2 numbered", "{ends}");
    }
}

#[tokio::test]
async fn no_write_that_fails_leaves_an_agent_with_two_sessions() {
    use store::memory::Fault;
    let story = async |world: &World| {
        world.machine.start(2);
        world.hook_of("s2", "start", Some(2)).await;
        let caller = world.mesh.identify(&session_call("c2", "s2")).await.expect("identified");
        let wanted = crate::Registration { name: Some(name("alice")), ..crate::Registration::default() };
        drop(world.mesh.register(&caller, wanted).await);
    };
    let begun = async || {
        let world = alice().await;
        world.hook("s1", "end").await;
        world
    };
    let writes = {
        let world = begun().await;
        let before = world.store.writes();
        story(&world).await;
        world.store.writes() - before
    };
    assert!(writes > 3, "{writes}");
    for nth in 1..=writes {
        let world = begun().await;
        world.store.fail_at(nth, Fault::Fail);
        story(&world).await;
        // Both speak: the process that took the name is gone, and nothing tidies up after it.
        let world = world.another_process();
        world.hook("s1", "resume").await;
        let [old, new] =
            [agent_of(&world, &session_call("c3", "s1")).await, agent_of(&world, &session_call("c4", "s2")).await];
        let both = old.as_deref() == Some("alice") && new.as_deref() == Some("alice");
        assert!(!both, "write {nth} of {writes}");
    }
}

#[tokio::test]
async fn a_users_stop_holds_mail_until_they_speak() {
    let world = alice().await;
    world.hook("s1", "prompt").await;
    world.hook("s1", "interrupt").await;
    assert!(presence(&world, "alice").await.starts_with("idle: its user stopped it"));
    world.say("alice", "not now").await;
    for did in ["nothing", "tool"] {
        assert_eq!(world.shown("s1", did).await, "", "{did}");
    }
    assert_eq!(world.shown("s1", "prompt").await, "not now");
    world.say("alice", "again").await;
    assert_eq!(world.shown("s1", "nothing").await, "again", "their prompt ended it");
}

#[tokio::test]
async fn a_turn_that_ends_by_itself_ends_a_stop() {
    let world = alice().await;
    world.hook("s1", "interrupt").await;
    world.say("alice", "hello").await;
    assert_eq!(world.shown("s1", "stop").await, "hello", "a turn has run since, which no prompt of ours began");
}

#[tokio::test]
async fn a_users_stop_holds_mail_no_longer_than_they_said() {
    let world = alice().await;
    world.hook("s1", "interrupt").await;
    world.say("alice", "later").await;
    world.machine.pass(crate::Limits::default().after_stop - 1);
    // The harness still says so, and the time does not begin anew.
    world.hook("s1", "interrupt").await;
    assert_eq!(world.shown("s1", "nothing").await, "");
    world.machine.pass(1);
    world.hook("s1", "interrupt").await;
    assert_eq!(world.shown("s1", "nothing").await, "later");
    // A turn that mail began can be stopped like any other.
    world.hook("s1", "tool").await;
    world.hook("s1", "interrupt").await;
    world.say("alice", "once more").await;
    assert_eq!(world.shown("s1", "nothing").await, "");
    world.machine.go_back(3_600_000);
    assert_eq!(world.shown("s1", "nothing").await, "once more", "the clock has stepped back");
}

#[tokio::test]
async fn an_interrupted_turn_proves_nothing_about_its_mail() {
    let world = alice().await;
    let id = world.say("alice", "hello").await;
    assert_eq!(world.shown("s1", "tool").await, "hello");
    world.hook("s1", "interrupt").await;
    assert_eq!(world.history(id).await, "stored, notified by wake-file, accepted by hook:tool");
}

/// Its server is another process than the one that it registered with.
#[tokio::test(start_paused = true)]
async fn a_resumed_session_is_served_by_the_process_that_it_calls() {
    let world = alice().await;
    *world.harnesses.0.routes.lock().expect("unpoisoned") =
        vec![route("socket", Carries::Message, DeliveryStatus::Shown, 1_000)];
    let resumed = world.another_process();
    let stop = CancellationToken::new();
    let connection = crate::sessions::ConnectionId("c2".to_owned());
    tokio::spawn(Arc::clone(&resumed.mesh).deliver(Served::Connection(connection), stop.clone()));
    assert_eq!(agent_of(&resumed, &session_call("c2", "s1")).await.as_deref(), Some("alice"));
    let id = world.say("alice", "hello").await;
    until(&world, id, "stored, notified by wake-file, shown by socket").await;
    stop.cancel();
}

#[tokio::test]
async fn a_damaged_record_hides_only_its_own_agent_from_the_server_of_their_connection() {
    let world = alice().await;
    world.hook("s2", "start").await;
    world.register(&session_call("c2", "s2"), "bob").await;
    let connection = ConnectionId("c1".to_owned());
    world.mesh.connections.joined(&connection, &name("bob"), false);
    let key = keys::meta(&name("alice"));
    let kept = world.store.get(&key).await.expect("read").expect("there");
    world.store.swap(&key, Some(kept.revision), Some(b"7"), Durability::Process).await.expect("damaged");
    let served = Served::Connection(connection);
    let clients = serve::clients(&world.mesh.core, &world.mesh.connections, &served).await.expect("bob is served");
    assert_eq!(clients.iter().map(|(agent, _)| agent.to_string()).collect::<Vec<_>>(), ["bob"]);
}
