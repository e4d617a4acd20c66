//! The name and the mail of an agent whose session ended: who gets them, by one verb.

use super::{World, name};
use crate::testing::{call, session_call, shell_call};
use crate::{AdoptError, IdentifyError, Registration};

/// alice's session has ended, and one message waits for her. Another session asked for her name.
async fn stranded() -> World {
    let world = World::new();
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "alice").await;
    world.hook("s1", "end").await;
    world.say("alice", "for alice").await;
    world.hook("s2", "start").await;
    assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice-2 numbered");
    world
}

async fn adopted(world: &World, agent: &str) -> String {
    match world.mesh.adopt(&name(agent)).await {
        Ok(adopted) => format!("{} of {} with {}", adopted.agent, adopted.from, adopted.waiting),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn registering_a_name_whose_mail_waits_says_so() {
    let world = stranded().await;
    let adoptable = async |call, wanted: &str| {
        let caller = world.mesh.identify(&call).await.expect("identified");
        let registration = Registration { name: Some(name(wanted)), ..Registration::default() };
        let adoptable = world.mesh.register(&caller, registration).await.expect("registered").adoptable;
        adoptable.map(|found| format!("{} {} {}", found.agent, found.presence.as_str(), found.waiting))
    };
    assert_eq!(adoptable(session_call("c3", "s3"), "alice").await.as_deref(), Some("alice offline 1"));
    world.register(&call("c4"), "bob").await;
    assert_eq!(adoptable(session_call("c5", "s5"), "bob").await, None, "bob is here");
}

#[tokio::test]
async fn after_adopt_the_next_one_to_register_gets_the_name_and_the_mail() {
    let world = stranded().await;
    assert_eq!(adopted(&world, "alice").await, "alice of here with 1");
    assert_eq!(adopted(&world, "alice").await, "alice of here with 1", "again changes nothing");
    assert_eq!(world.register(&session_call("c3", "s3"), "alice").await, "alice reclaimed");
    assert_eq!(world.fetch("alice").await, "for alice");
    assert_eq!(world.register(&session_call("c4", "s4"), "alice").await, "alice-3 numbered", "only one gets it");
}

#[tokio::test]
async fn a_session_that_got_another_name_changes_to_the_adopted_one() {
    let world = stranded().await;
    world.say("alice-2", "for alice-2").await;
    assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice-2 same", "it is not free");
    adopted(&world, "alice").await;
    assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice reclaimed");
    assert_eq!(world.shown("s2", "prompt").await, "for alice");
    // What was sent to its other name waits for the next one of that name.
    assert_eq!(world.register(&session_call("c3", "s3"), "alice-2").await, "alice-2 reclaimed");
    assert_eq!(world.fetch("alice-2").await, "for alice-2");
}

#[tokio::test]
async fn the_command_line_speaks_as_an_adopted_agent_until_one_registers() {
    let world = stranded().await;
    let refused = || async { world.mesh.identify(&shell_call(Some("alice"))).await.map(|_| ()) };
    assert!(matches!(refused().await, Err(IdentifyError::NotYours(_))));
    adopted(&world, "alice").await;
    refused().await.expect("the command line is alice");
    world.register(&session_call("c3", "s3"), "alice").await;
    assert!(matches!(refused().await, Err(IdentifyError::NotYours(_))));
}

#[tokio::test]
async fn the_session_that_an_agent_was_taken_from_is_that_agent_no_more() {
    let world = stranded().await;
    adopted(&world, "alice").await;
    assert_eq!(world.register(&session_call("c3", "s3"), "alice").await, "alice reclaimed");
    // Its user opens it again.
    world.hook("s1", "resume").await;
    assert_eq!(world.shown("s1", "prompt").await, "");
    let caller = world.mesh.identify(&session_call("c1", "s1")).await.expect("identified");
    assert_eq!(caller.agent(), None, "its connection remembers alice, and it is not she");
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice-3 numbered");
    assert_eq!(world.fetch("alice").await, "for alice");
}

#[tokio::test]
async fn a_client_without_sessions_that_fell_silent_is_taken_over_too() {
    let world = World::new();
    world.joined("dora").await;
    world.say("dora", "for dora").await;
    assert!(adopted(&world, "dora").await.starts_with("`dora` is idle on this machine: "));
    world.machine.kill(1);
    assert_eq!(adopted(&world, "dora").await, "dora of here with 1");
    let stale = world.mesh.identify(&call("connection-of-dora")).await.expect("identified");
    assert_eq!(stale.agent(), None, "the silent client comes back, and is dora no more");
    assert_eq!(world.register(&session_call("c1", "s1"), "dora").await, "dora reclaimed");
}

#[tokio::test]
async fn an_agent_that_is_alive_or_the_command_lines_own_is_not_taken() {
    let world = World::new();
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "alice").await;
    assert!(matches!(world.mesh.adopt(&name("alice")).await, Err(AdoptError::Alive { .. })));
    world.register(&shell_call(None), "carol").await;
    assert!(matches!(world.mesh.adopt(&name("carol")).await, Err(AdoptError::Here(_))));
}
