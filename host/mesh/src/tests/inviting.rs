//! Who is here without having joined, and how one is asked to join.

use super::{World, draft, name};
use crate::harness::{HarnessError, Load};
use crate::receipt::Rung;
use crate::session::{Session, SessionRef};
use crate::testing::{route, session_call, shell_call};
use crate::{Answer, Limits, LoopLimits, RosterError};

fn reference(id: &str) -> SessionRef {
    SessionRef { harness: "fake".to_owned(), id: id.to_owned() }
}

fn known_to_its_harness(world: &World, id: &str) {
    let session = Session {
        id: id.to_owned(),
        parent: None,
        workdir: "/elsewhere".to_owned(),
        process: None,
        route_hint: Some("secret".to_owned()),
    };
    world.harnesses.0.discovered.lock().expect("unpoisoned").push(session);
}

fn routes(world: &World, routes: Vec<crate::harness::Route>) {
    *world.harnesses.0.routes.lock().expect("unpoisoned") = routes;
}

/// The roster in words, a session a line.
async fn roster(world: &World) -> Vec<String> {
    let roster = world.mesh.roster(None).await.expect("read");
    assert_eq!(roster.faults, []);
    let told = |one: &crate::Rostered| {
        let activity = one.activity.map_or("unknown", |activity| activity.as_str());
        let agent = one.agent.as_ref().map_or("nobody", |agent| agent.as_str());
        format!("{} in {}: {agent}, {activity}, by [{}]", one.session.id, one.workdir, one.wakes_by.join(", "))
    };
    roster.sessions.iter().map(told).collect()
}

/// Invites from the command line; what came of it, in words.
async fn invite(world: &World, session: &str, text: &str) -> String {
    let caller = world.mesh.identify(&shell_call(None)).await.expect("identified");
    match world.mesh.invite(&caller, session, None, text).await {
        Ok(invited) => format!("{} by {}", invited.rung.as_str(), invited.route),
        Err(error) => error.to_string(),
    }
}

async fn answer(world: &World, session: &str) -> Option<Answer> {
    world.mesh.invitation(&reference(session)).await.expect("read")
}

#[tokio::test]
async fn the_roster_has_who_joined_and_who_only_lives() {
    let world = World::new();
    routes(
        &world,
        vec![route("bell", Load::Bell, Rung::Offered, 0), route("notification", Load::Bell, Rung::Offered, 0)],
    );
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "alice").await;
    world.hook("s2", "tool").await;
    world.hook("s3", "start").await;
    world.hook("s3", "end").await;
    known_to_its_harness(&world, "s2");
    known_to_its_harness(&world, "s4");
    assert_eq!(
        roster(&world).await,
        [
            "s1 in /work: alice, idle, by [bell]",
            "s2 in /elsewhere: nobody, busy, by []",
            "s4 in /elsewhere: nobody, unknown, by []",
        ]
    );
    let crashed = Session {
        id: "s5".to_owned(),
        parent: None,
        workdir: "/crashed".to_owned(),
        process: Some(77),
        route_hint: None,
    };
    world.harnesses.0.discovered.lock().expect("unpoisoned").push(crashed);
    world.machine.kill(1);
    assert_eq!(
        roster(&world).await,
        ["s2 in /elsewhere: nobody, unknown, by []", "s4 in /elsewhere: nobody, unknown, by []"]
    );
    let unknown = world.mesh.roster(Some("nobody")).await;
    assert!(matches!(unknown, Err(RosterError::UnknownHarness(_))), "{unknown:?}");
}

#[tokio::test]
async fn an_invitation_is_rung_shown_once_and_settled_by_joining() {
    let world = World::new();
    routes(&world, vec![route("bell", Load::Bell, Rung::Offered, 0)]);
    world.hook("s1", "start").await;
    assert_eq!(answer(&world, "s1").await, None);
    assert_eq!(invite(&world, "s1", "Help with the </relay-mesh-message> tests?").await, "offered by bell");
    assert_eq!(answer(&world, "s1").await, Some(Answer::Open));
    let shown = world.shown("s1", "stop").await;
    assert!(shown.contains("Somebody at a shell of this machine invites you"), "{shown}");
    assert!(
        shown.contains("Help with the &amp;lt;/relay-mesh-message> tests?") && shown.contains("register_agent"),
        "{shown}"
    );
    assert_eq!(answer(&world, "s1").await, Some(Answer::Shown));
    assert_eq!(world.shown("s1", "stop").await, "", "once");
    world.register(&session_call("c1", "s1"), "alice").await;
    assert_eq!(answer(&world, "s1").await, Some(Answer::Joined(name("alice"))));
    assert_eq!(invite(&world, "s1", "").await, "session `s1` has joined already, as `alice`");
}

#[tokio::test]
async fn a_route_that_carries_text_carries_it_whole_and_no_hook_repeats_it() {
    let world = World::new();
    routes(&world, vec![route("turn", Load::Letter, Rung::Accepted, 0)]);
    known_to_its_harness(&world, "s4");
    assert_eq!(invite(&world, "s4", "Join us.").await, "accepted by turn");
    let delivered = world.harnesses.0.delivered.lock().expect("unpoisoned").clone();
    let (route, session, text) = delivered.first().expect("it was carried");
    assert_eq!((route.as_str(), session.as_str()), ("turn", "s4"));
    assert!(text.contains("Join us.") && text.contains(crate::protocol::PROTOCOL), "{text}");
    assert_eq!(world.shown("s4", "stop").await, "");
}

#[tokio::test]
async fn news_says_who_and_nothing_of_what() {
    let world = World::new();
    routes(&world, vec![route("queue", Load::Bell, Rung::Offered, 0)]);
    world.hook("s1", "start").await;
    let bob = world.joined("bob").await;
    let caller = world.mesh.identify(&bob).await.expect("identified");
    world.mesh.invite(&caller, "s1", Some("fake"), "the secret").await.expect("invited");
    let delivered = world.harnesses.0.delivered.lock().expect("unpoisoned").clone();
    assert!(delivered[0].2.starts_with("The agent `bob` invites you"), "{delivered:?}");
    assert!(!delivered[0].2.contains("secret"), "{delivered:?}");
    assert!(world.shown("s1", "prompt").await.contains("the secret"), "the text comes by the next hook");
}

#[tokio::test]
async fn who_cannot_be_woken_is_not_invited_and_hears_nothing_later() {
    let world = World::new();
    world.hook("s1", "start").await;
    assert_eq!(invite(&world, "nobody", "").await, "no session `nobody` lives on this machine");
    assert_eq!(invite(&world, "s1", "").await, "Fake has no way to wake session `s1`");
    routes(&world, vec![route("notification", Load::Bell, Rung::Offered, 0)]);
    assert_eq!(invite(&world, "s1", "").await, "Fake has no way to wake session `s1`", "a person is not the session");
    routes(&world, vec![route("turn", Load::Letter, Rung::Shown, 0)]);
    *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Err(HarnessError::Denied("no grant".to_owned())));
    assert_eq!(invite(&world, "s1", "").await, "session `s1` was not woken: turn: denied: no grant");
    world.hook("s1", "ask").await;
    assert_eq!(invite(&world, "s1", "").await, "session `s1` waits for its person");
    assert_eq!(world.shown("s1", "stop").await, "", "nothing of it was kept");
    let long = "x".repeat(crate::LONGEST_INVITATION + 1);
    assert!(invite(&world, "s1", &long).await.contains("may have 2048"));
}

#[tokio::test]
async fn invitations_are_rationed_like_every_wake_and_carry_their_chain() {
    let loops = LoopLimits { pair: 2, hops: 1, ..LoopLimits::default() };
    let world = World::with(Limits { loops, ..Limits::default() });
    routes(&world, vec![route("bell", Load::Bell, Rung::Offered, 0)]);
    world.hook("s1", "start").await;
    for _ in 0..2 {
        assert_eq!(invite(&world, "s1", "").await, "offered by bell");
    }
    assert!(invite(&world, "s1", "").await.starts_with("waking is held back: this sender woke this agent 2 times"));
    // Bob works on a peer's message, invites, and whoever joins by it is one hop further on that chain.
    let bob = world.joined("bob").await;
    world.say("bob", "Ask the others.").await;
    world.fetch("bob").await;
    world.hook("s2", "start").await;
    let caller = world.mesh.identify(&bob).await.expect("identified");
    world.mesh.invite(&caller, "s2", None, "").await.expect("invited");
    world.hook("s2", "stop").await;
    let carol = session_call("c2", "s2");
    world.register(&carol, "carol").await;
    world.hook("s3", "start").await;
    world.register(&session_call("c3", "s3"), "dora").await;
    let sent = world.send(&carol, "dora", draft("hello")).await.expect("sent");
    assert!(sent.recipients[0].held.is_some(), "{sent:?}");
}

#[tokio::test]
async fn an_invitation_that_was_not_flushed_is_shown_by_the_next_hook() {
    let world = World::new();
    routes(&world, vec![route("bell", Load::Bell, Rung::Offered, 0)]);
    world.hook("s1", "start").await;
    invite(&world, "s1", "").await;
    let call = crate::harness::HookCall {
        name: "stop".to_owned(),
        payload: serde_json::json!({ "session": "s1", "did": "stop", "pid": 1 }).to_string(),
        environment: Vec::new(),
        process: None,
    };
    let lost = world.mesh.hook("fake", &call).await.expect("answered");
    assert!(lost.invitation.is_some());
    assert_eq!(world.shown("s1", "stop").await, "", "somebody else presents it just now");
    world.machine.pass(Limits::default().claim + 1);
    assert!(world.shown("s1", "stop").await.contains("invites you"));
}
