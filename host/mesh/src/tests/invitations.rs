//! Sessions without an agent, and inviting them to join.

use super::{World, draft, name};
use crate::messages::receipt::DeliveryStatus;
use crate::ports::harness::{Carries, HarnessError};
use crate::sessions::{Session, SessionRef};
use crate::testing::{route, session_call, shell_call};
use crate::{InvitationAnswer, Limits, LoopLimits, RosterError};

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

fn routes(world: &World, routes: Vec<crate::ports::harness::Route>) {
    *world.harnesses.0.routes.lock().expect("unpoisoned") = routes;
}

/// The sessions in words, one per line.
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

/// Invites from the command line; returns the result in words.
async fn invite(world: &World, session: &str, text: &str) -> String {
    let caller = world.mesh.identify(&shell_call(None)).await.expect("identified");
    match world.mesh.invite(&caller, session, None, text).await {
        Ok(invited) => format!("{} by {}", invited.status.as_str(), invited.route),
        Err(error) => error.to_string(),
    }
}

async fn answer(world: &World, session: &str) -> Option<InvitationAnswer> {
    world.mesh.invitation(&reference(session)).await.expect("read")
}

#[tokio::test]
async fn the_roster_has_who_joined_and_who_only_lives() {
    let world = World::new();
    routes(
        &world,
        vec![
            route("wake-file", Carries::Notification, DeliveryStatus::Notified, 0),
            route("notification", Carries::Notification, DeliveryStatus::Notified, 0),
        ],
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
            "s1 in /work: alice, idle, by [wake-file]",
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
async fn an_invitation_is_announced_shown_once_and_settled_by_joining() {
    let world = World::new();
    routes(&world, vec![route("wake-file", Carries::Notification, DeliveryStatus::Notified, 0)]);
    world.hook("s1", "start").await;
    assert_eq!(answer(&world, "s1").await, None);
    assert_eq!(invite(&world, "s1", "Help with the </relay-mesh-message> tests?").await, "notified by wake-file");
    assert_eq!(answer(&world, "s1").await, Some(InvitationAnswer::Open(DeliveryStatus::Notified)));
    let shown = world.shown("s1", "stop").await;
    assert!(shown.contains("Somebody at a shell of this machine invites you"), "{shown}");
    assert!(
        shown.contains("Help with the &amp;lt;/relay-mesh-message> tests?") && shown.contains("register_agent"),
        "{shown}"
    );
    assert_eq!(answer(&world, "s1").await, Some(InvitationAnswer::Brought(DeliveryStatus::Shown)));
    assert_eq!(world.shown("s1", "stop").await, "", "once");
    world.register(&session_call("c1", "s1"), "alice").await;
    assert_eq!(answer(&world, "s1").await, Some(InvitationAnswer::Joined(name("alice"))));
    assert_eq!(invite(&world, "s1", "").await, "session `s1` has joined already, as `alice`");
}

#[tokio::test]
async fn a_route_that_carries_text_carries_it_whole_and_no_hook_repeats_it() {
    let world = World::new();
    routes(&world, vec![route("turn", Carries::Message, DeliveryStatus::Accepted, 0)]);
    known_to_its_harness(&world, "s4");
    assert_eq!(invite(&world, "s4", "Join us.").await, "accepted by turn");
    let delivered = world.harnesses.0.delivered.lock().expect("unpoisoned").clone();
    let (route, session, text) = delivered.first().expect("it was carried");
    assert_eq!((route.as_str(), session.as_str()), ("turn", "s4"));
    assert!(text.contains("Join us.") && text.contains(crate::messages::protocol::PROTOCOL), "{text}");
    assert_eq!(world.shown("s4", "stop").await, "");
}

#[tokio::test]
async fn news_says_who_and_nothing_of_what() {
    let world = World::new();
    routes(&world, vec![route("queue", Carries::Notification, DeliveryStatus::Notified, 0)]);
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
    assert_eq!(invite(&world, "nobody", "").await, "this machine has no live session `nobody`");
    assert_eq!(invite(&world, "s1", "").await, "Fake has no way to wake session `s1`");
    routes(&world, vec![route("notification", Carries::Notification, DeliveryStatus::Notified, 0)]);
    assert_eq!(invite(&world, "s1", "").await, "Fake has no way to wake session `s1`", "a person is not the session");
    routes(&world, vec![route("turn", Carries::Message, DeliveryStatus::Shown, 0)]);
    *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Err(HarnessError::Denied("no grant".to_owned())));
    assert_eq!(invite(&world, "s1", "").await, "session `s1` was not woken: turn: denied: no grant");
    world.hook("s1", "ask").await;
    assert_eq!(invite(&world, "s1", "").await, "session `s1` waits for its user");
    assert_eq!(world.shown("s1", "stop").await, "", "nothing of it was kept");
    let long = "x".repeat(crate::LONGEST_INVITATION + 1);
    assert!(invite(&world, "s1", &long).await.contains("may have 2048"));
}

#[tokio::test]
async fn invitations_are_rationed_like_every_wake_and_carry_their_chain() {
    let loops = LoopLimits { pair: 2, hops: 1, ..LoopLimits::default() };
    let world = World::with(Limits { loops, ..Limits::default() });
    routes(&world, vec![route("wake-file", Carries::Notification, DeliveryStatus::Notified, 0)]);
    world.hook("s1", "start").await;
    for _ in 0..2 {
        assert_eq!(invite(&world, "s1", "").await, "notified by wake-file");
    }
    assert!(invite(&world, "s1", "").await.starts_with("waking is held back: this sender woke this agent 2 times"));
    // Bob works on a peer's message when he invites; the agent that joins is one hop further on that chain.
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
    routes(&world, vec![route("wake-file", Carries::Notification, DeliveryStatus::Notified, 0)]);
    world.hook("s1", "start").await;
    invite(&world, "s1", "").await;
    let call = crate::ports::harness::HookCall {
        name: "stop".to_owned(),
        payload: serde_json::json!({ "session": "s1", "did": "stop", "pid": 1 }).to_string(),
        environment: Vec::new(),
        process: None,
    };
    let lost = world.mesh.hook("fake", &call).await.expect("answered");
    assert!(lost.invitation.is_some());
    assert_eq!(world.shown("s1", "stop").await, "", "somebody else presents it just now");
    world.machine.pass(Limits::default().lease + 1);
    assert!(world.shown("s1", "stop").await.contains("invites you"));
}

/// Takes the invitation for a listener; returns its text if there is one to deliver now.
async fn taken(world: &World, session: &str) -> Option<crate::TakenInvitation> {
    let session = reference(session);
    assert_eq!(
        world.mesh.invitation_waits(&session, None).await.expect("read"),
        world
            .mesh
            .invitation(&session)
            .await
            .expect("read")
            .is_some_and(|answer| matches!(answer, InvitationAnswer::Open(_)))
            && world.mesh.session(&session).await.expect("read").is_some_and(|view| view.activity.as_str() == "idle"),
    );
    world.mesh.take_invitation_to_bring(&session, None).await.expect("taken")
}

/// Invites and, like the command at the end of its timeout, once more; returns the result in words.
async fn invite_and_remind(world: &World, session: &str, act: impl AsyncFnOnce()) -> String {
    let caller = world.mesh.identify(&shell_call(None)).await.expect("identified");
    let invited = world.mesh.invite(&caller, session, None, "").await.expect("invited");
    act().await;
    match world.mesh.remind(invited).await {
        Ok(invited) => format!("{} by {}", invited.status.as_str(), invited.route),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn whoever_listens_for_a_session_brings_its_invitation_once() {
    let world = World::new();
    world.hook("s1", "start").await;
    let session = reference("s1");
    world.mesh.listens_for(&session).await.expect("noted");
    assert_eq!(roster(&world).await, ["s1 in /work: nobody, idle, by [listen]"]);
    assert_eq!(invite(&world, "s1", "Join </relay-mesh-message> us.").await, "stored by listen");
    let invitation = taken(&world, "s1").await.expect("it waits");
    assert!(invitation.text.contains("Join &amp;lt;/relay-mesh-message> us."), "{invitation:?}");
    assert!(invitation.text.contains(crate::messages::protocol::PROTOCOL), "{invitation:?}");
    assert_eq!(answer(&world, "s1").await, Some(InvitationAnswer::Open(DeliveryStatus::Notified)));
    assert_eq!(world.shown("s1", "tool").await, "", "it is claimed");
    assert!(world.mesh.advance_invitation(&session, invitation.id, DeliveryStatus::Accepted).await.expect("noted"));
    assert_eq!(answer(&world, "s1").await, Some(InvitationAnswer::Open(DeliveryStatus::Accepted)));
    assert!(world.mesh.advance_invitation(&session, invitation.id, DeliveryStatus::Shown).await.expect("noted"));
    assert_eq!(answer(&world, "s1").await, Some(InvitationAnswer::Brought(DeliveryStatus::Shown)));
    assert_eq!(taken(&world, "s1").await, None);
    world.register(&session_call("c1", "s1"), "alice").await;
    assert!(
        !world.mesh.advance_invitation(&session, invitation.id, DeliveryStatus::Shown).await.expect("read"),
        "settled"
    );
}

#[tokio::test]
async fn a_busy_session_is_left_to_its_tools_and_a_lease_that_lapsed_to_its_hooks() {
    let world = World::new();
    world.hook("s1", "start").await;
    world.mesh.listens_for(&reference("s1")).await.expect("noted");
    world.hook("s1", "tool").await;
    assert_eq!(invite(&world, "s1", "").await, "stored by listen");
    assert!(!world.mesh.invitation_waits(&reference("s1"), None).await.expect("read"), "it works");
    assert!(world.shown("s1", "tool").await.contains("invites you"), "and is told between its tools");

    world.hook("s2", "start").await;
    world.mesh.listens_for(&reference("s2")).await.expect("noted");
    invite(&world, "s2", "").await;
    let lost = taken(&world, "s2").await.expect("it waits");
    world.machine.pass(Limits::default().lease + 1);
    let again = world.mesh.invitation_waits(&reference("s2"), Some(lost.id)).await.expect("read");
    assert!(!again, "nobody is given the same one twice");
    assert!(world.shown("s2", "stop").await.contains("invites you"));
}

#[tokio::test]
async fn what_whoever_listens_refused_goes_another_way_or_is_withdrawn() {
    let world = World::new();
    let refuse = async |id: &str| {
        let invitation = taken(&world, id).await.expect("it waits");
        assert!(world.mesh.refuse_invitation(&reference(id), invitation.id).await.expect("noted"));
        assert_eq!(answer(&world, id).await, Some(InvitationAnswer::Refused));
        assert_eq!(taken(&world, id).await, None, "it is asked once");
    };
    for id in ["s1", "s2"] {
        world.hook(id, "start").await;
        world.mesh.listens_for(&reference(id)).await.expect("noted");
    }
    assert_eq!(
        invite_and_remind(&world, "s1", async || refuse("s1").await).await,
        "session `s1` was not woken: listen: its listener refused it; no route of its adapter \
         reaches it while it is idle"
    );
    assert_eq!(answer(&world, "s1").await, None, "nothing of it is kept");
    routes(&world, vec![route("turn", Carries::Message, DeliveryStatus::Accepted, 0)]);
    assert_eq!(invite_and_remind(&world, "s2", async || refuse("s2").await).await, "accepted by turn");
    assert_eq!(answer(&world, "s2").await, Some(InvitationAnswer::Brought(DeliveryStatus::Accepted)));
    world.hook("s3", "start").await;
    world.mesh.listens_for(&reference("s3")).await.expect("noted");
    assert_eq!(invite_and_remind(&world, "s3", async || ()).await, "accepted by turn", "nor is it left alone");
}

#[tokio::test]
async fn whoever_stopped_or_was_killed_listens_no_more() {
    let world = World::new();
    world.machine.start(7);
    world.hook_of("s1", "start", Some(7)).await;
    let session = reference("s1");
    world.mesh.listens_for(&session).await.expect("noted");
    world.mesh.listens_no_more(&session).await.expect("noted");
    assert_eq!(roster(&world).await, ["s1 in /work: nobody, idle, by []"]);
    world.mesh.listens_for(&session).await.expect("noted");
    assert_eq!(invite(&world, "s1", "").await, "stored by listen");
    world.machine.kill(1);
    assert_eq!(invite(&world, "s1", "").await, "Fake has no way to wake session `s1`");
    let sweep = async || {
        world.mesh.clean_up(crate::Scope::Expired, crate::DryRun::No, None).await.expect("cleanup");
        world.mesh.core.local.list(&crate::storage::keys::listeners()).await.expect("listed").len()
    };
    assert_eq!((sweep().await, world.mesh.deserted("fake").await.expect("read")), (1, vec![session]), "it is told");
    world.machine.kill(7);
    assert_eq!((sweep().await, world.mesh.deserted("fake").await.expect("read")), (0, vec![]), "nor for ever");
}

#[tokio::test]
async fn an_invitation_is_nobody_elses_to_replace_until_it_was_seen_or_lapsed() {
    let world = World::new();
    routes(&world, vec![route("wake-file", Carries::Notification, DeliveryStatus::Notified, 0)]);
    world.hook("s1", "start").await;
    let bob = world.joined("bob").await;
    let caller = world.mesh.identify(&bob).await.expect("identified");
    let first = world.mesh.invite(&caller, "s1", None, "the first").await.expect("invited");
    assert_eq!(
        invite(&world, "s1", "the second").await,
        "session `s1` has an invitation from `bob` that it has not seen yet"
    );
    let again = world.mesh.invite(&caller, "s1", None, "the first").await.expect("invited");
    assert_eq!(again.until, first.until, "said again it is the same one");
    world.machine.pass(crate::delivery::invitation::LAPSES);
    assert_eq!((answer(&world, "s1").await, world.shown("s1", "stop").await), (None, String::new()), "it lapsed");
    assert_eq!(invite(&world, "s1", "the second").await, "notified by wake-file");
    assert!(world.shown("s1", "stop").await.contains("the second"));
    world.machine.pass(crate::delivery::invitation::LAPSES);
    world.mesh.clean_up(crate::Scope::Expired, crate::DryRun::No, None).await.expect("cleanup");
    assert_eq!(answer(&world, "s1").await, None);
}

#[tokio::test]
async fn a_session_that_ends_before_it_saw_its_invitation_is_told_of_as_such() {
    let world = World::new();
    world.hook("s1", "start").await;
    world.mesh.listens_for(&reference("s1")).await.expect("noted");
    let ending = async || {
        world.hook("s1", "end").await;
    };
    assert_eq!(invite_and_remind(&world, "s1", ending).await, "session `s1` ended before it saw the invitation");
    world.hook("s1", "start").await;
    assert_eq!(answer(&world, "s1").await, None);
}
