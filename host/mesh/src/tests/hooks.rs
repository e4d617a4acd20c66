//! Hooks: mail is shown where the harness has a place for it, once, and never between a session and
//! its user.

use super::World;
use crate::HookError;
use crate::agents::Presence;
use crate::names::AgentName;
use crate::ports::harness::HookCall;
use crate::sessions::Activity;
use crate::testing::{session_call, shell_call};

async fn world_with_alice() -> World {
    let world = World::new();
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    world
}

#[tokio::test]
async fn pending_mail_is_handed_over_once() {
    for did in ["stop", "tool", "prompt"] {
        let world = world_with_alice().await;
        let id = world.say("alice", "hello").await;
        assert_eq!(world.history(id).await, "stored, notified by wake-file");
        assert_eq!(world.shown("s1", did).await, "hello");
        assert_eq!(world.history(id).await, format!("stored, notified by wake-file, accepted by hook:{did}"));
        assert_eq!(world.shown("s1", did).await, "");
        assert_eq!(world.fetch("alice").await, "", "what was handed over is not fetched again");
    }
}

#[tokio::test]
async fn a_user_who_sees_nothing_of_the_hook_that_woke_their_session_is_told_with_the_next_one() {
    let world = world_with_alice().await;
    let told = |did: &'static str, shows: Option<bool>| {
        let world = &world;
        async move {
            *world.harnesses.0.shows.lock().expect("no test panics while it holds this") = shows;
            world.hook("s1", did).await;
            std::mem::take(&mut *world.harnesses.0.told.lock().expect("no test panics while it holds this"))
        }
    };
    let (here, later) = (Some(true), Some(false));
    let first = "relay-mesh: mail from shell: \u{201c}the build is red\u{201d}".to_owned();
    let second = first.replace("red", "green");
    world.say("alice", "the build is red").await;
    assert_eq!(told("nothing", later).await, [""; 0], "the wake");
    assert_eq!(told("ask", here).await, [""; 0], "no turn goes on with this");
    assert_eq!(told("few-bytes", later).await, [""; 0]);
    world.say("alice", "the build is green").await;
    assert_eq!(told("tool", here).await, [format!("{first}\n{second}")], "both, each on its line");
    assert_eq!(told("tool", here).await, [""; 0], "once");
    // A harness that has no place for it is given none to keep.
    world.say("alice", "the build is red").await;
    assert_eq!(told("nothing", None).await, [""; 0]);
    assert_eq!(told("tool", here).await, [""; 0]);
}

#[tokio::test]
async fn a_session_that_waits_for_its_person_gets_nothing_until_they_answered() {
    let world = world_with_alice().await;
    world.say("alice", "hello").await;
    assert_eq!(world.shown("s1", "ask").await, "");
    assert_eq!(world.shown("s1", "tool").await, "hello");
}

#[tokio::test]
async fn mail_for_nobody_we_know_is_not_shown_to_a_stranger() {
    let world = world_with_alice().await;
    world.say("alice", "hello").await;
    assert_eq!(world.shown("s2", "stop").await, "");
    assert_eq!(world.shown("s1", "stop").await, "hello");
}

#[tokio::test]
async fn a_subagent_that_has_not_registered_takes_no_mail_of_its_window() {
    let world = world_with_alice().await;
    world.say("alice", "hello").await;
    assert_eq!(world.shown("s1.helper", "tool").await, "");
    assert_eq!(world.shown("s1", "tool").await, "hello");
}

#[tokio::test]
async fn protocol_comes_at_the_start_and_says_who_one_is() {
    let world = world_with_alice().await;
    let text = world.hook("s1", "start").await.stderr.unwrap_or_default();
    assert!(text.starts_with("You are `alice` on the relay-mesh."), "{text}");
    assert!(world.hook("s2", "start").await.stderr.unwrap_or_default().starts_with("relay-mesh connects"));
    assert_eq!(world.hook("s1", "tool").await.stderr, None);
}

#[tokio::test]
async fn a_payload_of_another_shape_costs_nothing_but_its_own_answer() {
    let world = world_with_alice().await;
    world.say("alice", "hello").await;
    for payload in ["", "[]", "{\"session\":3}", "{\"session\":\"s1\"}"] {
        let call =
            HookCall { name: "x".to_owned(), payload: payload.to_owned(), environment: Vec::new(), process: None };
        assert!(matches!(world.mesh.hook("fake", &call).await, Err(HookError::Harness(_))), "{payload}");
    }
    let call = HookCall { name: "x".to_owned(), payload: "{}".to_owned(), environment: Vec::new(), process: None };
    assert!(matches!(world.mesh.hook("nobody", &call).await, Err(HookError::UnknownHarness(_))));
    assert_eq!(world.shown("s1", "stop").await, "hello");
}

#[tokio::test]
async fn presence_follows_the_session() {
    let world = world_with_alice().await;
    let alice: AgentName = "alice".parse().expect("a name");
    let presence = async || world.mesh.agent(&alice).await.expect("read").expect("there").presence;
    assert_eq!(presence().await, Presence::Idle);
    world.hook("s1", "prompt").await;
    assert_eq!(presence().await, Presence::Busy);
    world.machine.pass(3_600_000);
    assert_eq!(presence().await, Presence::Busy, "a long turn is no absence");
    world.hook("s1", "stop").await;
    assert_eq!(presence().await, Presence::Idle);
    world.hook("s1", "end").await;
    assert_eq!(presence().await, Presence::Offline);
    world.hook("s1", "start").await;
    assert_eq!(presence().await, Presence::Idle);
    world.machine.kill(1);
    assert_eq!(presence().await, Presence::Offline);
}

#[tokio::test]
async fn a_turn_that_ended_without_a_hook_is_known_from_the_harness_itself() {
    let world = world_with_alice().await;
    let alice: AgentName = "alice".parse().expect("a name");
    let presence = async || world.mesh.agent(&alice).await.expect("read").expect("there").presence;
    let does = |activity| *world.harnesses.0.does.lock().expect("no test panics while it holds this") = activity;
    world.hook("s1", "prompt").await;
    does(Some(Activity::Idle));
    assert_eq!(presence().await, Presence::Busy, "the harness may not have noted the prompt yet");
    world.machine.pass(60_000);
    assert_eq!(presence().await, Presence::Idle);
    for (said, expected) in [
        (Some(Activity::NeedsInput), Presence::NeedsInput),
        (Some(Activity::Busy), Presence::Busy),
        (Some(Activity::Ended), Presence::Busy),
        (None, Presence::Busy),
    ] {
        does(said);
        assert_eq!(presence().await, expected, "{said:?}");
    }
}

#[tokio::test]
async fn mail_that_does_not_fit_waits_for_the_next_hook() {
    let world = world_with_alice().await;
    for number in 0..4 {
        world.say("alice", &format!("{number}{}", "x".repeat(4_000))).await;
    }
    let first = world.shown("s1", "tool").await;
    let second = world.shown("s1", "tool").await;
    let starts = |text: &str| text.split(' ').map(|body| body[..1].to_owned()).collect::<Vec<_>>().join(" ");
    assert_eq!((starts(&first).as_str(), starts(&second).as_str()), ("0 1", "2 3"));
    assert_eq!(world.send(&shell_call(None), "alice", super::draft("x")).await.expect("sent").recipients.len(), 1);
}
