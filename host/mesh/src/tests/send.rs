//! Sending: exact addresses, one message per idempotency key, and replies that acknowledge.

use std::sync::Arc;

use store::memory::Fault;

use super::{World, draft, name};
use crate::messages::receipt::DeliveryStatus;
use crate::messages::{Draft, LONGEST_BODY, Priority};
use crate::testing::{call, session_call, shell_call};
use crate::{Audience, SendError};

async fn error(world: &World, to: &str, message: Draft) -> String {
    match world.send(&call("connection-of-alice"), to, message).await {
        Ok(sent) => panic!("{sent:?} was sent"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn an_answer_that_its_recipient_has_is_sent_also_where_no_receipt_can_be_written() {
    let answered = async |fails: Option<u64>| {
        let world = World::new();
        let (alice, bob) = (world.joined("alice").await, world.joined("bob").await);
        let asked = world.send(&bob, "alice", draft("question")).await.expect("sent").id;
        let caller = world.mesh.identify(&alice).await.expect("identified");
        let before = world.store.writes();
        if let Some(nth) = fails {
            world.store.fail_at(nth, Fault::Fail);
        }
        let answer = Draft { reply_to: Some(asked), ..draft("answer") };
        let is_sent = world.mesh.send(&caller, &["bob".to_owned()], answer).await.is_ok();
        let writes = world.store.writes() - before;
        (writes, is_sent, world.fetch("bob").await)
    };
    let (writes, is_sent, _) = answered(None).await;
    assert!(is_sent && writes > 1, "it and its receipt: {writes}");
    for nth in 1..=writes {
        let (_, is_sent, got) = answered(Some(nth)).await;
        assert_eq!(is_sent, got == "answer", "write {nth} failed");
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_with_a_reason_and_nothing_is_stored() {
    let world = World::new();
    world.joined("alice").await;
    world.joined("bob").await;
    assert_eq!(error(&world, "bop", draft("x")).await, "no agent named `bop` has joined");
    assert!(error(&world, "Bob!", draft("x")).await.contains("is not a name"));
    assert_eq!(error(&world, "bob", draft(" \n")).await, "the message is empty");
    let no_key = Draft { idempotency_key: Some(" ".to_owned()), ..draft("x") };
    assert_eq!(error(&world, "bob", no_key).await, "the idempotency key is empty");
    let long = draft(&"x".repeat(LONGEST_BODY + 1));
    assert_eq!(error(&world, "bob", long).await, "the body has 262145 bytes and a message carries at most 262144");
    let unknown = Draft { reply_to: Some("01JD8Z3K5V0000000000000000".parse().expect("an id")), ..draft("x") };
    assert!(error(&world, "bob", unknown).await.starts_with("no message `01JD8Z3K5V0000000000000000`"));
    assert!(matches!(world.send(&call("stranger"), "bob", draft("x")).await, Err(SendError::NotRegistered)));
    assert_eq!(world.fetch("bob").await, "");
}

#[tokio::test]
async fn all_addresses_are_good_or_nobody_is_sent_anything() {
    let world = World::new();
    let alice = world.joined("alice").await;
    world.joined("bob").await;
    let caller = world.mesh.identify(&alice).await.expect("identified");
    let to = ["bob".to_owned(), "nobody".to_owned()];
    assert!(matches!(world.mesh.send(&caller, &to, draft("x")).await, Err(SendError::Address(_))));
    assert_eq!(world.fetch("bob").await, "");
    let sent = world.mesh.send(&caller, &["bob".to_owned(), "bob".to_owned()], draft("once")).await.expect("sent");
    assert_eq!(sent.recipients.len(), 1);
    assert_eq!(world.fetch("bob").await, "once");
}

#[tokio::test]
async fn a_name_without_a_team_means_ones_own_team_and_never_a_guess() {
    let world = World::new();
    world.joined("alice@red").await;
    world.joined("bob@red").await;
    world.joined("carol").await;
    world.joined("carol@red").await;
    let resolve = async |address: &str, asker: &str| {
        let asker = name(asker);
        match world.mesh.resolve(address, Some(&asker)).await {
            Ok(found) => found.to_string(),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(resolve("bob", "alice@red").await, "bob@red");
    assert_eq!(resolve("bob", "carol").await, "no agent named `bob` has joined");
    assert_eq!(resolve("carol", "alice@red").await, "`carol` may mean several agents");
    assert_eq!(resolve("carol@red", "alice@red").await, "carol@red");
    assert_eq!(resolve("carol", "bob@blue").await, "carol");
}

#[tokio::test]
async fn a_longest_body_arrives_whole() {
    let world = World::new();
    world.joined("bob").await;
    let body = "ü\n".repeat(LONGEST_BODY / 3);
    world.say("bob", &body).await;
    let whole = crate::Fetch { max_length: usize::MAX, ..crate::Fetch::default() };
    let fetched = world.mesh.fetch(&name("bob"), &whole).await.expect("fetched");
    assert_eq!(fetched.messages[0].message.body, body);
}

#[tokio::test]
async fn one_key_from_many_senders_at_once_is_stored_once_per_sender() {
    let world = Arc::new(World::new());
    let alice = world.joined("alice").await;
    let carol = world.joined("carol").await;
    world.joined("bob").await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20 {
        let process = world.another_process();
        let world = Arc::clone(&world);
        let sender = if number % 2 == 0 { alice.clone() } else { carol.clone() };
        tasks.spawn(async move {
            // The connections belong to the first process; both processes share the store.
            let caller = world.mesh.identify(&sender).await.expect("identified");
            let keyed = Draft { idempotency_key: Some("k".to_owned()), ..draft("once") };
            let sent = process.mesh.send(&caller, &["bob".to_owned()], keyed).await.expect("sent");
            (number % 2, sent.id, sent.recipients[0].duplicate)
        });
    }
    let outcomes = tasks.join_all().await;
    for sender in [0, 1] {
        let ids: std::collections::BTreeSet<_> =
            outcomes.iter().filter(|(of, ..)| *of == sender).map(|(_, id, _)| id.to_string()).collect();
        assert_eq!(ids.len(), 1, "every sending of one sender gives the id of the first");
    }
    assert_eq!(outcomes.iter().filter(|(.., duplicate)| !duplicate).count(), 2);
    assert_eq!(world.fetch("bob").await, "once once");
}

#[tokio::test]
async fn what_is_left_blank_was_not_said() {
    let world = World::new();
    let alice = world.joined("alice").await;
    world.joined("bob").await;
    let blank = || Draft {
        subject: Some(String::new()),
        thread: Some(" ".to_owned()),
        tags: vec![String::new(), "review".to_owned()],
        ..draft("hello\nBob")
    };
    let first = world.send(&alice, "bob", blank()).await.expect("sent");
    let second = world.send(&alice, "bob", blank()).await.expect("sent");
    assert_eq!((&first.thread, &second.thread), (&first.id.to_string(), &second.id.to_string()), "two conversations");
    let kept = crate::messages::kept::oldest(&world.mesh.core, &name("bob"), &crate::tests::everything())
        .await
        .expect("readable");
    let said = |kept: &crate::messages::kept::KeptMessage| (kept.message.subject.clone(), kept.message.tags.clone());
    assert_eq!(said(&kept[0]), ("hello".to_owned(), vec!["review".to_owned()]));
}

#[tokio::test]
async fn a_keyed_sending_that_broke_off_is_completed_under_one_id_and_noted_once() {
    let world = World::new();
    let alice = world.joined("alice").await;
    world.joined("bob").await;
    world.joined("carol").await;
    let keyed = || Draft { idempotency_key: Some("k".to_owned()), ..draft("once") };
    let first = world.send(&alice, "bob", keyed()).await.expect("sent");
    let caller = world.mesh.identify(&alice).await.expect("identified");
    let to = ["bob".to_owned(), "carol".to_owned()];
    for _ in 0..2 {
        let again = world.mesh.send(&caller, &to, keyed()).await.expect("sent");
        assert_eq!((again.id, &again.thread), (first.id, &first.thread));
    }
    for recipient in ["bob", "carol"] {
        let kept = crate::messages::kept::oldest(&world.mesh.core, &name(recipient), &crate::tests::everything())
            .await
            .expect("readable");
        let kept: Vec<_> = kept.iter().map(|kept| (kept.message.id, kept.message.thread.clone())).collect();
        assert_eq!(kept, [(first.id, first.thread.clone())], "{recipient}");
    }
    let event_log = world.mesh.event_log(store::Position::START).await.expect("readable");
    let told: Vec<_> =
        event_log.events.iter().filter(|event| event.kind == "sent").map(|event| &event.details["to"]).collect();
    assert_eq!(told, [&serde_json::json!(["bob"]), &serde_json::json!(["carol"])]);
}

#[tokio::test]
async fn a_key_stands_for_what_was_said_under_it_and_for_nothing_else() {
    let world = World::new();
    let alice = world.joined("alice").await;
    for recipient in ["bob", "carol", "dave"] {
        world.joined(recipient).await;
    }
    let keyed = |said: Draft| Draft { idempotency_key: Some("k".to_owned()), ..said };
    let first = world.send(&alice, "bob", keyed(draft("one"))).await.expect("sent");
    let same = [draft("one"), Draft { subject: Some("one".to_owned()), tags: vec![" ".to_owned()], ..draft("one") }];
    for said in same {
        let again = world.send(&alice, "bob", keyed(said)).await.expect("sent");
        assert_eq!((again.id, again.recipients[0].duplicate), (first.id, true));
    }
    let others = [
        draft("two"),
        Draft { subject: Some("another".to_owned()), ..draft("one") },
        Draft { thread: Some("another".to_owned()), ..draft("one") },
        Draft { tags: vec!["review".to_owned()], ..draft("one") },
        Draft { priority: Priority::Urgent, ..draft("one") },
        Draft { reply_to: Some(first.id), ..draft("one") },
    ];
    let refusal = format!("the idempotency key `k` stands for another message to `bob`, `{}`", first.id);
    for said in others {
        for process in [&world, &world.another_process()] {
            let caller = world.mesh.identify(&alice).await.expect("identified");
            let sent = process.mesh.send(&caller, &["bob".to_owned()], keyed(said.clone())).await;
            assert_eq!(sent.expect_err("refused").to_string(), refusal, "{said:?}");
        }
    }
    let caller = world.mesh.identify(&alice).await.expect("identified");
    let to = ["carol", "bob", "dave"].map(str::to_owned);
    let half = world.mesh.send(&caller, &to, keyed(draft("two"))).await;
    let Err(SendError::OtherUnderKey { to, older, stored, .. }) = half else { panic!("{half:?}") };
    assert_eq!((to, older, stored), (name("bob"), first.id, vec![name("carol")]), "who has it is said");
    let read = (world.fetch("bob").await, world.fetch("carol").await, world.fetch("dave").await);
    assert_eq!(read, ("one".to_owned(), "two".to_owned(), String::new()));
}

#[tokio::test]
async fn a_reply_acknowledges_what_it_answers_and_keeps_its_thread() {
    let world = World::new();
    let alice = world.joined("alice").await;
    let bob = world.joined("bob").await;
    let first = world.send(&alice, "bob", draft("question")).await.expect("sent");
    assert_eq!(world.fetch("bob").await, "question");
    assert_eq!(world.history(first.id).await, "stored, read by fetch");
    let answer = Draft { reply_to: Some(first.id), ..draft("answer") };
    let reply = world.send(&bob, "alice", answer).await.expect("sent");
    assert_eq!(reply.thread, first.thread);
    assert_eq!(world.history(first.id).await, "stored, read by fetch, acknowledged by reply");
    assert_eq!(world.history(reply.id).await, "stored");
}

#[tokio::test]
async fn a_history_is_shown_to_its_sender_and_its_recipient_alone() {
    let world = World::new();
    let alice = world.joined("alice").await;
    let bob = world.joined("bob").await;
    let eve = world.joined("eve").await;
    let sent = world.send(&alice, "bob", draft("secret")).await.expect("sent");
    for (who, may) in [(&alice, true), (&bob, true), (&eve, false)] {
        let caller = world.mesh.identify(who).await.expect("identified");
        assert_eq!(world.mesh.message_status(&caller, sent.id).await.is_ok(), may);
        let sneaky = Draft { reply_to: Some(sent.id), ..draft("me too") };
        assert_eq!(world.mesh.send(&caller, &["bob".to_owned()], sneaky).await.is_ok(), may);
    }
}

#[tokio::test]
async fn a_broadcast_reaches_everyone_but_its_sender_and_the_gone() {
    let world = World::new();
    let alice = world.joined("alice").await;
    for agent in ["bob", "carol@red", "dora"] {
        world.joined(agent).await;
    }
    world.mesh.disconnect(&crate::sessions::ConnectionId("connection-of-dora".to_owned())).await.expect("disconnected");
    let caller = world.mesh.identify(&alice).await.expect("identified");
    let to = async |audience: Audience| match world.mesh.broadcast(&caller, &audience, draft("all")).await {
        Ok(sent) => sent.recipients.iter().map(|sent| sent.to.to_string()).collect::<Vec<_>>().join(" "),
        Err(error) => error.to_string(),
    };
    assert_eq!(to(Audience::default()).await, "bob carol@red");
    assert_eq!(to(Audience { team: Some("red".to_owned()), harness: None }).await, "carol@red");
    assert_eq!(
        to(Audience { team: Some("blue".to_owned()), harness: None }).await,
        "there is no other agent to send it to"
    );
}

#[tokio::test]
async fn stored_is_not_called_notified_if_nobody_watches_the_wake_file() {
    let world = World::new();
    world.joined("bob").await;
    let sent = world.send(&shell_call(None), "bob", draft("x")).await.expect("sent");
    assert_eq!(sent.recipients[0].status, DeliveryStatus::Stored);
    world.hook("s1", "start").await;
    world.register(&session_call("c1", "s1"), "carol").await;
    let sent = world.send(&shell_call(None), "carol", draft("x")).await.expect("sent");
    assert_eq!(sent.recipients[0].status, DeliveryStatus::Notified);
    let low = Draft { priority: crate::messages::Priority::Low, ..draft("no hurry") };
    let sent = world.send(&shell_call(None), "carol", low).await.expect("sent");
    assert_eq!(sent.recipients[0].status, DeliveryStatus::Stored);
}

#[tokio::test]
async fn a_client_that_fetches_by_itself_is_sent_any_number_and_nothing_is_held() {
    let world = World::new();
    let alice = world.joined("alice").await;
    world.joined("bob").await;
    for _ in 0..crate::LoopLimits::default().pair + 1 {
        let sent = world.send(&alice, "bob", draft("x")).await.expect("sent");
        assert_eq!((sent.recipients[0].status, sent.recipients[0].held.as_deref()), (DeliveryStatus::Stored, None));
    }
}

#[tokio::test]
async fn keys_that_a_process_holds_in_memory_are_those_of_a_day() {
    let world = World::new();
    world.joined("bob").await;
    let keyed = |key: u32| Draft { idempotency_key: Some(format!("k{key}")), ..draft("x") };
    for day in 0..3 {
        for key in 0..10 {
            world.send(&shell_call(None), "bob", keyed(day * 10 + key)).await.expect("sent");
        }
        let again = world.send(&shell_call(None), "bob", keyed(day * 10)).await.expect("sent");
        assert!(again.recipients[0].duplicate, "a key of today is known");
        assert_eq!(world.mesh.inboxes.keyed(&name("bob")).lock().await.len(), 10);
        world.machine.pass(25 * 3_600_000);
    }
}

#[tokio::test]
async fn the_beginning_of_an_id_is_enough_if_only_one_begins_so() {
    let world = World::new();
    let alice = world.joined("alice").await;
    let carol = world.joined("carol").await;
    world.joined("bob").await;
    let first = world.say("alice", "one").await;
    let second = world.say("alice", "two").await;
    let id_of = async |who: &crate::sessions::Call, typed: &str| {
        let asker = world.mesh.identify(who).await.expect("identified");
        world.mesh.id_of(&asker, typed).await.map_or_else(|error| error.to_string(), |id| id.to_string())
    };
    let (first, second) = (first.to_string(), second.to_string());
    assert_eq!(id_of(&alice, &first).await, first);
    assert_eq!(id_of(&alice, &first.to_lowercase()).await, first);
    // They were made at one time of the fake clock, so they differ in what follows it.
    let common = first.chars().zip(second.chars()).take_while(|(a, b)| a == b).count();
    assert!(common >= 10, "{first} {second}");
    assert_eq!(id_of(&alice, &first[..=common]).await, first);
    assert_eq!(id_of(&shell_call(None), &second.to_lowercase()[..=common]).await, second);
    let (earlier, later) = if first < second { (&first, &second) } else { (&second, &first) };
    assert_eq!(id_of(&alice, &first[..common]).await, format!("`{}` may mean {earlier}, {later}", &first[..common]));
    assert!(id_of(&alice, &first[..5]).await.contains("is not an id"), "too short to say when it was made");
    // What concerns others is not for an agent to learn.
    assert_eq!(
        id_of(&carol, &first[..=common]).await,
        format!("no message or command that you know of begins with `{}`", &first[..=common])
    );
    assert!(id_of(&alice, "no-id!").await.contains("is not an id"));
}
