//! The outbox of a machine that cannot reach its servers: each waiting message is stored once, for the recipients that
//! do not have it, and stays until then.

use std::sync::Arc;
use std::time::Duration;

use store::{Durability, Position, Store as _};

use super::machines::{Host, LinkState, Servers, two};
use super::{draft, name};
use crate::messages::Draft;
use crate::messages::outbox::Outbox;
use crate::storage::keys;
use crate::testing::{FakeHarnesses, session_call, shell_call};
use crate::{Limits, Mesh, Parts, StatusError, WaitsFor};

#[tokio::test]
async fn what_cannot_be_handed_over_waits_and_is_stored_once_and_in_order() {
    for line in [LinkState::Cut, LinkState::LosesAnswers] {
        for key in [None, Some("key".to_owned())] {
            let (one, other) = two().await;
            one.line(line);
            let first = Draft { idempotency_key: key, ..draft("one") };
            assert_eq!(one.send("bob", first).await, "queued", "{line:?}");
            assert_eq!(one.say("bob", "two").await, "queued", "{line:?}");
            assert_eq!(one.outbox().await, "one waits for bob; two waits for bob", "{line:?}");
            one.line(LinkState::Good);
            assert_eq!(one.say("bob", "three").await, "stored", "{line:?}");
            assert_eq!(one.outbox().await, "", "{line:?}");
            assert_eq!(other.read("bob").await, "one, two, three", "{line:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_lived_process_sends_what_waits_by_itself() {
    let (one, other) = two().await;
    one.line(LinkState::Cut);
    assert_eq!(one.say("bob", "one").await, "queued");
    one.line(LinkState::Good);
    let stop = tokio_util::sync::CancellationToken::new();
    let mut watch = other.mesh.watch_inbox(&name("bob")).await.expect("watched");
    let serving = tokio::spawn(Arc::clone(&one.mesh).deliver(crate::Served::Everyone, stop.clone()));
    let mut until = async |expected: &[&str]| loop {
        let mailed = other.mesh.mailed(&name("bob"), Position::START, 1 << 20).await.expect("looked");
        if mailed.messages.iter().map(|(message, _)| message.body.as_str()).eq(expected.iter().copied()) {
            return;
        }
        watch.changed().await.expect("it comes");
    };
    until(&["one"]).await;
    // Also for a message that has to wait later.
    one.line(LinkState::Cut);
    assert_eq!(one.say("bob", "two").await, "queued");
    one.line(LinkState::Good);
    until(&["one", "two"]).await;
    stop.cancel();
    serving.await.expect("it ends");
}

#[tokio::test]
async fn a_message_that_can_be_sent_to_nobody_comes_back_with_the_reason() {
    let (one, _) = two().await;
    one.line(LinkState::Cut);
    assert_eq!(one.say("nobody", "hello").await, "queued");
    assert!(one.say("No Body!", "hello").await.contains("is not a name"), "what can never be sent is refused at once");
    let person = one.mesh.identify(&shell_call(None)).await.expect("identified");
    let id = one.mesh.queued().await.expect("listed")[0].id;
    let status = |status: crate::MessageStatus| {
        let history = &status.recipients[0].history;
        format!("{} {}", history.status().as_str(), history.undeliverable.clone().unwrap_or_default())
    };
    let told = one.mesh.message_status(&person, id).await.expect("known");
    assert_eq!(status(told), "queued ");
    one.line(LinkState::Good);
    assert_eq!(one.say("bob", "something else").await, "stored");
    assert_eq!(one.outbox().await, "hello came back from nobody: no agent named `nobody` has joined");
    let told = one.mesh.message_status(&person, id).await.expect("known");
    assert_eq!(status(told), "queued no agent named `nobody` has joined");
    one.machine.pass(Limits::default().keep - 1);
    assert_eq!(one.say("bob", "and more").await, "stored");
    assert!(one.outbox().await.starts_with("hello came back from nobody"), "its sender may still look");
    one.machine.pass(1);
    assert_eq!(one.say("bob", "and more").await, "stored");
    assert_eq!(one.outbox().await, "", "for as long as settled mail stays");
}

#[tokio::test]
async fn who_has_got_it_is_not_sent_it_again_when_the_line_is_cut_in_between() {
    let (one, other) = two().await;
    assert_eq!(other.register(&shell_call(None), "carol").await, "carol");
    one.line(LinkState::TakesOneMessage);
    assert_eq!(one.send("bob carol", draft("one")).await, "stored queued");
    assert_eq!(one.outbox().await, "one waits for carol");
    one.line(LinkState::Good);
    assert_eq!(one.say("bob", "two").await, "stored");
    assert_eq!((other.read("bob").await, other.read("carol").await), ("one, two".to_owned(), "one".to_owned()));
}

#[tokio::test]
async fn a_damaged_message_stays_where_it_is_and_stands_in_nobodys_way() {
    let (one, other) = two().await;
    let damaged = keys::outbox().child("000000000000-damaged");
    one.local.swap(&damaged, None, Some(b"{}"), Durability::Synced).await.expect("written");
    one.line(LinkState::Cut);
    assert_eq!(one.say("bob", "one").await, "queued");
    assert_eq!(one.outbox().await, "one waits for bob");
    one.line(LinkState::Good);
    assert_eq!(one.say("bob", "two").await, "stored");
    assert_eq!((one.outbox().await, other.read("bob").await), (String::new(), "one, two".to_owned()));
    assert_eq!(one.local.list(&keys::outbox()).await.expect("listed"), [damaged]);
}

#[tokio::test]
async fn an_empty_message_keeps_nobody_busy() {
    let (one, _) = two().await;
    // So that a round without end is noticed.
    one.local.give_way();
    let empty = keys::outbox().child("000000000000-empty");
    let mesh = Mesh::new(Parts {
        shared: one.servers.clone(),
        local: Arc::new(Servers::of(&one.local, Some(empty))),
        machine: one.machine.clone(),
        harnesses: Arc::new(FakeHarnesses::default()),
        limits: Limits::default(),
    });
    let round = tokio::time::timeout(Duration::from_secs(10), mesh.send_what_waits()).await;
    assert_eq!(round.expect("it ends").expect("sent"), Outbox::Done);
}

/// Bob and carol, on the other machine, are in `#audit`.
async fn two_with_a_channel() -> (Host, Host) {
    let (one, other) = two().await;
    assert_eq!(other.register(&shell_call(None), "carol").await, "carol");
    let audit = "#audit".parse().expect("a channel");
    for member in ["bob", "carol"] {
        assert!(other.mesh.join_channel(&name(member), &audit).await.expect("joined"));
    }
    (one, other)
}

#[tokio::test]
async fn who_of_a_channel_has_it_not_is_queued_for_when_the_line_is_cut_in_between() {
    let (one, other) = two_with_a_channel().await;
    one.line(LinkState::TakesOneMessage);
    assert_eq!(one.send("#audit", draft("one")).await, "stored queued");
    assert_eq!(one.outbox().await, "one waits for carol");
    one.line(LinkState::Good);
    assert_eq!(one.say("bob", "two").await, "stored");
    assert_eq!((other.read("bob").await, other.read("carol").await), ("one, two".to_owned(), "one".to_owned()));
}

#[tokio::test]
async fn a_channel_is_sent_to_behind_what_waits_and_not_at_all_while_its_members_are_unknown() {
    let (one, other) = two_with_a_channel().await;
    one.line(LinkState::Cut);
    let refused = "nothing was sent: the servers hold the members of `#audit`, and they cannot be reached";
    assert_eq!(one.say("#audit", "lost").await, refused);
    assert_eq!(one.say("bob", "one").await, "queued");
    assert_eq!(one.say("alice #audit", "lost").await, refused, "also behind another one");
    one.line(LinkState::Good);
    let another = one.local.hold(&keys::draining()).await.expect("asked").expect("nobody has it");
    assert_eq!(one.say("#audit", "two").await, "queued queued");
    assert_eq!(one.outbox().await, "one waits for bob; two waits for bob waits for carol");
    drop(another);
    assert_eq!(one.say("bob", "three").await, "stored");
    assert_eq!((other.read("bob").await, other.read("carol").await), ("one, two, three".to_owned(), "two".to_owned()));
}

#[tokio::test]
async fn what_was_stored_is_stored_also_where_its_recipient_cannot_be_looked_at_any_more() {
    let (one, other) = two().await;
    one.line(LinkState::TakesOneMessage);
    assert_eq!(one.say("bob", "one").await, "stored");
    assert_eq!(one.outbox().await, "");
    assert_eq!(other.read("bob").await, "one");
}

#[tokio::test]
async fn what_waits_is_known_by_its_key_and_by_itself() {
    let (one, other) = two().await;
    let keyed = |body: &str| Draft { idempotency_key: Some("key".to_owned()), ..draft(body) };
    assert_eq!(one.send("bob", keyed("one")).await, "stored");
    one.line(LinkState::Cut);
    assert_eq!(one.send("bob", keyed("one")).await, "queued");
    assert_eq!(one.say("bob", "two").await, "queued");
    // Its first try, whose result is unknown, arrives after the log was searched.
    one.line(LinkState::BringsItTwice);
    assert_eq!(one.say("bob", "three").await, "stored");
    assert_eq!(other.read("bob").await, "one, two, three");
}

#[tokio::test]
async fn what_waits_under_a_key_of_another_text_comes_back_and_nothing_is_dropped() {
    let (one, other) = two().await;
    let keyed = |body: &str| Draft { idempotency_key: Some("key".to_owned()), ..draft(body) };
    assert_eq!(one.send("bob", keyed("one")).await, "stored");
    one.line(LinkState::Cut);
    assert_eq!(one.send("bob", keyed("another")).await, "queued");
    one.line(LinkState::Good);
    assert_eq!(one.say("bob", "two").await, "stored");
    let kept = one.mesh.queued().await.expect("listed");
    let [(to, why)] = kept[0].returned.as_slice() else { panic!("{kept:?}") };
    assert_eq!(to, "bob");
    assert!(why.starts_with("the idempotency key `key` stands for another message to `bob`"), "{why}");
    assert_eq!(other.read("bob").await, "one, two");
}

#[tokio::test]
async fn what_the_servers_never_take_comes_back_and_stands_in_nobodys_way() {
    let (one, other) = two().await;
    one.line(LinkState::Cut);
    let long = Draft { subject: Some("long".to_owned()), ..draft(&"x".repeat(4_000)) };
    assert_eq!(one.send("bob", long).await, "queued");
    assert_eq!(one.say("bob", "short").await, "queued");
    one.line(LinkState::TakesNoLonger(2_000));
    assert_eq!(one.say("bob", "last").await, "stored");
    let why = "could not append to agents/bob/inbox: the message is too long";
    assert_eq!(one.outbox().await, format!("long came back from bob: {why}"));
    assert_eq!(other.read("bob").await, "short, last");
}

#[tokio::test]
async fn what_the_servers_do_not_take_now_holds_up_what_its_sender_says_next_and_nobody_else() {
    let (one, other) = two().await;
    assert_eq!(one.register(&shell_call(None), "carol").await, "carol");
    one.line(LinkState::Cut);
    assert_eq!(one.say("bob", "one").await, "queued");
    assert_eq!(one.say("alice", "to herself").await, "queued");
    assert_eq!(one.say_as("carol", "alice", "hers").await, "queued");
    one.line(LinkState::HasNoBytesFor("bob"));
    assert_eq!(one.say("alice", "two").await, "queued", "it overtakes nothing");
    let why = "could not append to agents/bob/inbox: the stream is full";
    let expected = format!("one waits for bob ({why}); to herself waits for alice; two waits for alice");
    assert_eq!(one.outbox().await, expected);
    assert_eq!(one.read("alice").await, "hers");
    one.line(LinkState::Good);
    assert_eq!(one.say("alice", "three").await, "stored");
    assert_eq!(one.outbox().await, "");
    assert_eq!(
        (other.read("bob").await, one.read("alice").await.as_str()),
        ("one".to_owned(), "hers, to herself, two, three")
    );
}

#[tokio::test]
async fn one_process_at_a_time_sends_what_waits() {
    let (one, other) = two().await;
    one.line(LinkState::Cut);
    assert_eq!(one.say("bob", "one").await, "queued");
    one.line(LinkState::Good);
    assert_eq!(one.register(&session_call("c", "s1"), "carol").await, "carol");
    let another = one.local.hold(&keys::draining()).await.expect("asked").expect("nobody has it");
    assert_eq!(one.say("bob", "two").await, "queued");
    let everyone = one.broadcast("three").await;
    assert_eq!(everyone, "bob queued, carol queued", "to whomever it goes, it was said after the others");
    assert_eq!(one.outbox().await, "one waits for bob; two waits for bob; three waits for bob waits for carol");
    let carol = one.mesh.identify(&session_call("c", "s1")).await.expect("identified");
    let sent = one.mesh.send(&carol, &["bob".to_owned()], draft("from carol")).await.expect("sent");
    assert_eq!(
        sent.recipients[0].status,
        crate::messages::receipt::DeliveryStatus::Stored,
        "she has said nothing before"
    );
    drop(another);
    assert_eq!(one.say("bob", "four").await, "stored");
    let there = (one.outbox().await, other.read("bob").await);
    assert_eq!(there, (String::new(), "from carol, one, two, three, four".to_owned()));
    assert_eq!(one.read("carol").await, "three");
}

#[tokio::test]
async fn who_speaks_while_another_process_sends_what_waits_overtakes_nothing_and_leaves_nothing_behind() {
    for turns in 0..120 {
        let (one, other) = two().await;
        one.line(LinkState::Cut);
        for body in ["one", "two", "three"] {
            assert_eq!(one.say("bob", body).await, "queued");
        }
        one.line(LinkState::Good);
        one.local.give_way();
        one.servers.store.give_way();
        let another = one.another_process();
        let (sent, said) = tokio::join!(another.mesh.send_what_waits(), async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            one.say("bob", "four").await
        });
        sent.expect("sent");
        assert_eq!(said, "stored", "it waited for its turn, after {turns} turns");
        let there = (one.outbox().await, other.read("bob").await);
        assert_eq!(there, (String::new(), "one, two, three, four".to_owned()), "after {turns} turns");
    }
}

#[tokio::test]
async fn what_waits_outlasts_a_loss_of_power_and_is_for_its_senders_eyes() {
    let (one, other) = two().await;
    let call = session_call("c", "s1");
    assert_eq!(one.register(&call, "carol").await, "carol");
    let carol = one.mesh.identify(&call).await.expect("identified");
    one.line(LinkState::Cut);
    assert_eq!(one.say("bob", "one").await, "queued");
    let id = one.mesh.queued().await.expect("listed")[0].id;
    assert!(matches!(one.mesh.message_status(&carol, id).await, Err(StatusError::Store(_))), "it is not hers");
    let one = one.after_a_loss_of_power();
    assert_eq!(one.outbox().await, "one waits for bob");
    one.line(LinkState::Good);
    one.mesh.send_what_waits().await.expect("sent");
    assert_eq!((one.outbox().await, other.read("bob").await), (String::new(), "one".to_owned()));
}

#[tokio::test]
async fn a_queued_message_says_what_it_waits_for() {
    let (one, _other) = two().await;
    let caller = one.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
    let waits_for = async || {
        let sent = one.mesh.send(&caller, &["bob".to_owned()], draft("one")).await.expect("queued");
        sent.waits_for.map(WaitsFor::as_str)
    };
    assert_eq!(waits_for().await, None, "it is stored");
    // The servers are there and give no answer.
    one.line(LinkState::Cut);
    assert_eq!(waits_for().await, Some("the servers have elected a leader"));
    assert_eq!(waits_for().await, Some("the servers have elected a leader"), "also behind another one");
}
