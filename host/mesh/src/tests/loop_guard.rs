//! The loop guard: it stops two agents that wake each other, until a user writes.

use std::sync::Arc;
use std::time::Duration;

use store::Store as _;
use store::memory::Fault;
use tokio_util::sync::CancellationToken;

use super::{World, draft, name};
use crate::asks::AskKind;
use crate::messages::receipt::DeliveryStatus;
use crate::messages::{Draft, Trace};
use crate::names::MessageId;
use crate::ports::driver::UserAnswer;
use crate::ports::harness::{Carries, Delivered};
use crate::sessions::{Call, Principal};
use crate::testing::{route, session_call};
use crate::{Fetch, Limits, LoopLimits, SendError, Sent, Served};

async fn two_sessions(loops: LoopLimits) -> (World, Call, Call) {
    let world = World::with(Limits { loops, ..Limits::default() });
    let mut calls = Vec::new();
    for (session, agent) in [("s1", "alice"), ("s2", "bob")] {
        world.hook(session, "start").await;
        let call = session_call(session, session);
        assert_eq!(world.register(&call, agent).await, format!("{agent} new"));
        calls.push(call);
    }
    let bob = calls.pop().expect("two");
    let alice = calls.pop().expect("two");
    (world, alice, bob)
}

/// A quick model answers before it is noted that its harness has the message.
#[tokio::test]
async fn what_is_answered_at_once_goes_on_with_the_chain_of_its_message() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 0, ..LoopLimits::default() }).await;
    world.send(&bob, "alice", draft("a question")).await.expect("sent");
    let unconfirmed = world.answered_hook("s1", "tool", Some(1)).await;
    assert!(unconfirmed.lease.is_some(), "the hook carries it");
    let answer = world.send(&alice, "bob", draft("an answer")).await.expect("sent");
    assert!(answer.recipients[0].held.is_some(), "it is one message further");
}

#[tokio::test]
async fn a_chain_without_a_person_ends_at_the_hop_limit_and_a_person_frees_it() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 3, ..LoopLimits::default() }).await;
    let mut held_at = None;
    for hop in 0..10 {
        let (sender, to, session) = if hop % 2 == 0 { (&alice, "bob", "s2") } else { (&bob, "alice", "s1") };
        let sent = world.send(sender, to, draft(&format!("hop {hop}"))).await.expect("sent");
        if sent.recipients[0].held.is_some() {
            held_at = Some((hop, session, sent.id));
            break;
        }
        assert_eq!(world.shown(session, "stop").await, format!("hop {hop}"));
    }
    let (hop, session, id) = held_at.expect("the guard stops the loop");
    assert_eq!(hop, 4, "hops 0 to 3 wake");
    assert_eq!(world.history(id).await, "stored, held");
    assert_eq!(world.shown(session, "stop").await, "", "a turn's end does not keep the loop going");
    let status = world.mesh.status().await.expect("read");
    assert_eq!(status.held.len(), 1);
    assert_eq!(world.shown(session, "prompt").await, "hop 4", "nothing is lost: the person's prompt brings it");
    let held = async |from: &Call, to: &str| {
        world.send(from, to, draft("fresh")).await.expect("sent").recipients[0].held.is_some()
    };
    assert!(held(&alice, "bob").await, "where no person spoke the chain goes on");
    world.hook("s1", "prompt").await;
    assert!(!held(&alice, "bob").await, "where a person spoke another one begins");
}

/// What the users are told in their sessions, since this was last asked.
fn told(world: &World) -> Vec<String> {
    let told = std::mem::take(&mut *world.harnesses.0.told.lock().expect("unpoisoned"));
    told.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_screens_of_both_say_once_why_a_loop_has_stopped() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 0, ..LoopLimits::default() }).await;
    *world.harnesses.0.shows.lock().expect("unpoisoned") = Some(true);
    world.send(&alice, "bob", draft("a question")).await.expect("sent");
    world.hook("s2", "tool").await;
    told(&world);
    for _ in 0..2 {
        let answer = world.send(&bob, "alice", draft("an answer")).await.expect("sent");
        assert!(answer.recipients[0].held.is_some());
        world.hook("s2", "tool").await;
    }
    let why = "1 message since the user's last prompt, and the limit is 0";
    let to_sender = format!("relay-mesh: mail to alice waits: {why}. To let them go on: relay-mesh asks");
    assert_eq!(told(&world), [to_sender], "once, however much is held");
    world.hook("s1", "prompt").await;
    let to_recipient = format!("relay-mesh: mail from bob was held: {why}");
    assert_eq!(told(&world)[0], to_recipient);
}

/// The open questions about held messages: whom they do not wake.
async fn asked(world: &World) -> Vec<String> {
    let asks = world.mesh.asks().await.expect("readable");
    let held = asks.iter().filter_map(|ask| match &ask.what {
        AskKind::HeldLoop(held) => Some(format!("{} to {}", held.from, held.to)),
        AskKind::Approval(_) | AskKind::Question(_) | AskKind::Consent(_) => None,
    });
    held.collect()
}

async fn answers(world: &World, answer: UserAnswer) {
    let ask = world.mesh.asks().await.expect("readable").remove(0);
    world.mesh.answer_ask(ask.id, answer, "here").await.expect("answered");
}

#[tokio::test]
async fn the_user_is_asked_about_a_held_loop_and_can_free_it() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 1, ..LoopLimits::default() }).await;
    for (sender, to, session) in [(&alice, "bob", "s2"), (&bob, "alice", "s1")] {
        world.send(sender, to, draft("x")).await.expect("sent");
        world.shown(session, "stop").await;
    }
    assert_eq!(asked(&world).await, Vec::<String>::new());
    let sent = world.send(&alice, "bob", draft("held")).await.expect("sent");
    world.send(&alice, "bob", draft("held too")).await.expect("sent");
    assert_eq!(world.history(sent.id).await, "stored, held");
    assert_eq!(asked(&world).await, ["alice to bob"], "once, however many are held");
    answers(&world, UserAnswer::Allow).await;
    assert_eq!(world.history(sent.id).await, "stored", "as if the user had spoken");
    assert_eq!(world.shown("s2", "stop").await, "held held too");
}

/// Bob's answer to Alice is held, and one of the writes of sending it may fail. Returns him, and what sending it got.
async fn held_chain(key: Option<&str>, fault_at: Option<u64>) -> (World, Principal, Result<Sent, SendError>) {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 0, ..LoopLimits::default() }).await;
    world.send(&alice, "bob", draft("x")).await.expect("sent");
    world.shown("s2", "stop").await;
    let caller = world.mesh.identify(&bob).await.expect("identified");
    if let Some(nth) = fault_at {
        world.store.fail_at(nth, Fault::Fail);
    }
    let sent = world.mesh.send(&caller, &["alice".to_owned()], held(key)).await;
    (world, caller, sent)
}

fn held(key: Option<&str>) -> Draft {
    Draft { idempotency_key: key.map(str::to_owned), ..draft("held") }
}

#[tokio::test]
async fn an_answer_that_broke_off_can_be_given_again_and_frees_what_is_held() {
    for nth in 1..=8 {
        let (world, _, sent) = held_chain(None, None).await;
        let held = sent.expect("sent").id;
        let id = world.mesh.asks().await.expect("readable")[0].id;
        world.store.fail_at(nth, Fault::Fail);
        let first = world.mesh.answer_ask(id, UserAnswer::Allow, "here").await.is_ok();
        let again = world.mesh.answer_ask(id, UserAnswer::Allow, "here").await.is_ok();
        assert_eq!(again, !first, "write {nth}: what was done is answered already");
        assert_eq!(world.history(held).await, "stored", "write {nth}");
    }
}

#[tokio::test]
async fn a_held_message_that_is_sent_again_asks_the_user_if_the_first_try_did_not() {
    for nth in 1..=8 {
        let (world, bob, _either_way) = held_chain(Some("k"), Some(nth)).await;
        for _ in 0..2 {
            world.mesh.send(&bob, &["alice".to_owned()], held(Some("k"))).await.expect("sent");
            assert_eq!(asked(&world).await, ["bob to alice"], "write {nth}");
        }
    }
}

#[tokio::test]
async fn a_loop_that_the_user_refuses_stays_held_and_is_asked_about_no_more() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 0, ..LoopLimits::default() }).await;
    world.send(&alice, "bob", draft("x")).await.expect("sent");
    world.shown("s2", "stop").await;
    let sent = world.send(&bob, "alice", draft("held")).await.expect("sent");
    assert_eq!(asked(&world).await, ["bob to alice"]);
    answers(&world, UserAnswer::Refuse(String::new())).await;
    world.send(&bob, "alice", draft("held too")).await.expect("sent");
    assert_eq!((asked(&world).await.len(), world.history(sent.id).await), (0, "stored, held".to_owned()));
    // A question that the user need not answer any more: they have spoken to the agent itself.
    world.hook("s2", "prompt").await;
    world.send(&bob, "alice", draft("new chain")).await.expect("sent");
    world.shown("s1", "prompt").await;
    world.send(&alice, "bob", draft("x")).await.expect("sent");
    world.shown("s2", "stop").await;
    world.send(&bob, "alice", draft("held again")).await.expect("sent");
    assert_eq!(asked(&world).await, ["bob to alice"], "another chain");
    world.hook("s1", "prompt").await;
    assert_eq!(asked(&world).await.len(), 0);
}

#[tokio::test]
async fn held_mail_can_always_be_fetched() {
    let (world, alice, _) = two_sessions(LoopLimits { pair: 0, ..LoopLimits::default() }).await;
    let sent = world.send(&alice, "bob", draft("hello")).await.expect("sent");
    assert_eq!(sent.recipients[0].held.as_deref(), Some("this sender woke this agent 0 times within 10 min"));
    assert_eq!(world.fetch("bob").await, "hello");
    assert_eq!(world.history(sent.id).await, "stored, read by fetch");
}

#[tokio::test]
async fn waking_is_rationed_by_time() {
    let limits = LoopLimits { pair: 2, window: 60_000, ..LoopLimits::default() };
    let (world, alice, _) = two_sessions(limits).await;
    let held = async || {
        world.machine.pass(2_000);
        world.send(&alice, "bob", draft("x")).await.expect("sent").recipients[0].held.is_some()
    };
    assert_eq!([held().await, held().await, held().await], [false, false, true]);
    world.machine.pass(60_000);
    assert!(!held().await);
}

#[tokio::test]
async fn what_wakes_once_counts_once_and_the_user_counts_for_nothing() {
    let limits = LoopLimits { pair: 2, window: 60_000, ..LoopLimits::default() };
    let (world, alice, _) = two_sessions(limits).await;
    for number in 0..5 {
        world.say("bob", &format!("from the shell {number}")).await;
        let sent = world.send(&alice, "bob", draft("at once")).await.expect("sent");
        assert_eq!(sent.recipients[0].held, None, "{number}: the session is woken once for all of these");
    }
    world.hook("s2", "prompt").await;
    world.machine.pass(5_000);
    for _ in 0..5 {
        world.machine.pass(2_000);
        let sent = world.send(&alice, "bob", draft("while it works")).await.expect("sent");
        assert_eq!(sent.recipients[0].held, None, "a session that works is not woken");
    }
}

#[tokio::test]
async fn a_hold_by_time_ends_by_itself() {
    let limits = LoopLimits { pair: 1, window: 60_000, ..LoopLimits::default() };
    let (world, alice, _) = two_sessions(limits).await;
    world.send(&alice, "bob", draft("one")).await.expect("sent");
    assert_eq!(world.shown("s2", "stop").await, "one");
    world.hook("s2", "stop").await;
    world.machine.pass(5_000);
    let held = world.send(&alice, "bob", draft("two")).await.expect("sent");
    assert_eq!(world.history(held.id).await, "stored, held", "and no reader has seen it otherwise");
    assert_eq!(world.shown("s2", "stop").await, "");
    world.machine.pass(55_000);
    assert_eq!(world.shown("s2", "stop").await, "two");
}

#[tokio::test]
async fn a_person_restarts_a_loop_that_was_held() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 0, ..LoopLimits::default() }).await;
    world.send(&alice, "bob", draft("one")).await.expect("sent");
    assert_eq!(world.shown("s2", "stop").await, "one");
    let held = world.send(&bob, "alice", draft("two")).await.expect("sent");
    assert!(held.recipients[0].held.is_some());
    assert_eq!(world.shown("s1", "prompt").await, "two", "the person's prompt brings it");
    let reply = world.send(&alice, "bob", draft("three")).await.expect("sent");
    assert_eq!(reply.recipients[0].held, None, "and what she answers now she answers for them");
}

/// A model may answer before its harness has shown that a request held the message.
#[tokio::test]
async fn what_is_answered_before_it_is_known_to_be_shown_goes_on_with_the_chain() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 0, ..LoopLimits::default() }).await;
    world.send(&alice, "bob", draft("one")).await.expect("sent");
    let fetched = world.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
    let lease = fetched.lease.expect("a lease");
    world.mesh.confirm(&lease, DeliveryStatus::Accepted, "listen", None).await.expect("confirmed");
    let answer = world.send(&bob, "alice", draft("two")).await.expect("sent");
    assert!(answer.recipients[0].held.is_some(), "{answer:?}");
}

#[tokio::test]
async fn what_a_route_gave_is_answered_in_its_chain_before_there_is_proof() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 0, ..LoopLimits::default() }).await;
    let turn = route("turn", Carries::Message, DeliveryStatus::Shown, 60_000);
    *world.harnesses.0.routes.lock().expect("unpoisoned") = vec![turn];
    let taken = Delivered { status: DeliveryStatus::Accepted, evidence: None };
    *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Ok(taken));
    let stop = CancellationToken::new();
    tokio::spawn(Arc::clone(&world.mesh).deliver(Served::Everyone, stop.clone()));
    world.send(&alice, "bob", draft("one")).await.expect("sent");
    for _ in 0..500 {
        if !world.harnesses.0.delivered.lock().expect("unpoisoned").is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let answer = world.send(&bob, "alice", draft("two")).await.expect("sent");
    assert!(answer.recipients[0].held.is_some(), "{answer:?}");
    stop.cancel();
}

#[tokio::test]
async fn a_chain_that_rested_is_over() {
    let (world, alice, bob) = two_sessions(LoopLimits { hops: 0, ..LoopLimits::default() }).await;
    world.send(&alice, "bob", draft("one")).await.expect("sent");
    assert_eq!(world.shown("s2", "stop").await, "one");
    let held = async || world.send(&bob, "alice", draft("two")).await.expect("sent").recipients[0].held.is_some();
    assert!(held().await);
    world.machine.pass(LoopLimits::default().rest);
    assert!(!held().await);
}

#[tokio::test]
async fn an_older_message_makes_no_chain_shorter_and_a_newer_chain_takes_its_place() {
    let world = World::new();
    let alice = name("alice");
    let chain = |root: u128, hops| Trace { root: MessageId(ulid::Ulid(root)), hops };
    for (given, works_on) in
        [(chain(1, 2), chain(1, 2)), (chain(1, 0), chain(1, 2)), (chain(1, 3), chain(1, 3)), (chain(2, 0), chain(2, 0))]
    {
        crate::delivery::chain::works_on(&world.mesh.core, &alice, given).await.expect("noted");
        assert_eq!(
            crate::delivery::chain::working_on(&world.mesh.core, &alice).await.expect("read"),
            Some(works_on),
            "after {given:?}"
        );
    }
}

#[tokio::test]
async fn a_damaged_note_of_what_an_agent_works_on_stops_neither_its_mail_nor_its_user() {
    let (world, alice, _) = two_sessions(LoopLimits::default()).await;
    let key = crate::storage::keys::work(&name("bob"));
    world.store.swap(&key, None, Some(b"[7]"), store::Durability::Process).await.expect("written");
    world.send(&alice, "bob", draft("hello")).await.expect("sent");
    assert_eq!(world.shown("s2", "prompt").await, "hello");
    world.send(&session_call("s2", "s2"), "alice", draft("and back")).await.expect("sent");
    assert_eq!(world.fetch("alice").await, "and back");
}
