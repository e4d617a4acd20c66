//! Leases: even with several presenters of an agent's mail, each message is presented once.

use std::sync::Arc;

use super::counted::Counted;
use super::{World, draft, name};
use crate::messages::receipt::DeliveryStatus;
use crate::sessions::Activity;
use crate::testing::{FakeHarnesses, call, shell_call};
use crate::{Fetch, Limits, Mesh, Parts, Registration};

#[tokio::test]
async fn eight_that_fetch_at_once_share_the_mail_and_none_comes_twice() {
    let world = Arc::new(World::new());
    world.joined("bob").await;
    for number in 0..100 {
        world.say("bob", &format!("m{number}")).await;
    }
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let process = world.another_process();
        tasks.spawn(async move {
            let mut all = Vec::new();
            loop {
                let batch = Fetch { limit: 3, ..Fetch::default() };
                let fetched = process.mesh.fetch(&name("bob"), &batch).await.expect("fetched");
                let Some(lease) = fetched.lease else { return all };
                all.extend(fetched.messages.into_iter().map(|fetched| fetched.message.body));
                process.mesh.confirm(&lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
            }
        });
    }
    let mut all: Vec<String> = tasks.join_all().await.into_iter().flatten().collect();
    all.sort_by_key(|body| body[1..].parse::<u32>().expect("a number"));
    assert_eq!(all, (0..100).map(|number| format!("m{number}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_end_that_never_fits_is_an_error_and_no_endless_loop() {
    let world = World::new();
    let counted = Counted::new(Arc::clone(&world.store) as Arc<dyn store::Store>);
    let mesh = Mesh::new(Parts {
        shared: Arc::clone(&counted) as Arc<dyn store::Store>,
        local: Arc::clone(&world.store) as Arc<dyn store::Store>,
        machine: Arc::clone(&world.machine) as Arc<dyn crate::ports::machine::Machine>,
        harnesses: Arc::new(FakeHarnesses::default()),
        limits: Limits::default(),
    });
    let bob = mesh.identify(&call("c1")).await.expect("identified");
    let registration = Registration { name: Some(name("bob")), ..Registration::default() };
    mesh.register(&bob, registration).await.expect("registered");
    let person = mesh.identify(&shell_call(None)).await.expect("identified");
    let to = ["bob".to_owned()];
    let keyed = || crate::messages::Draft { idempotency_key: Some("k".to_owned()), ..draft("keyed") };
    mesh.send(&person, &to, draft("hello")).await.expect("sent");
    counted.end_elsewhere(true);
    mesh.fetch(&name("bob"), &Fetch::default()).await.expect_err("nothing can be leased");
    mesh.send(&person, &to, keyed()).await.expect_err("it cannot be stored once");
    counted.end_elsewhere(false);
    mesh.send(&person, &to, keyed()).await.expect("sent");
    let fetched = mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
    let bodies: Vec<&str> = fetched.messages.iter().map(|fetched| fetched.message.body.as_str()).collect();
    assert_eq!(bodies, ["hello", "keyed"]);
}

#[tokio::test]
async fn what_is_leased_and_not_confirmed_is_presented_again_after_a_while() {
    let world = World::new();
    world.joined("bob").await;
    world.say("bob", "hello").await;
    let leased = world.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
    assert_eq!(world.fetch("bob").await, "", "somebody else is presenting it");
    world.machine.pass(Limits::default().lease);
    assert_eq!(world.fetch("bob").await, "hello");
    world.say("bob", "again").await;
    let second = world.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
    world.mesh.release(leased.lease.expect("a lease")).await.expect("released");
    assert_eq!(world.fetch("bob").await, "", "an older lease's release frees nothing of a younger one");
    world.mesh.release(second.lease.expect("a lease")).await.expect("released");
    assert_eq!(world.fetch("bob").await, "again");
}

#[tokio::test]
async fn what_was_passed_on_and_never_confirmed_may_be_repeated() {
    let world = World::new();
    world.joined("bob").await;
    world.say("bob", "hello").await;
    for (passed_on, repeated) in [(false, false), (true, false), (false, true)] {
        let fetched = world.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
        assert_eq!(fetched.messages[0].history.may_repeat(), repeated);
        let lease = fetched.lease.expect("a lease");
        let released = match passed_on {
            true => world.mesh.release_passed_on(lease).await,
            false => world.mesh.release(lease).await,
        };
        released.expect("released");
    }
}

#[tokio::test]
async fn a_lease_hides_a_message_no_longer_than_it_was_asked_for_if_the_clock_steps_back() {
    let world = World::new();
    world.joined("bob").await;
    world.say("bob", "hello").await;
    let lost = world.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
    world.machine.go_back(Limits::default().lease / 2);
    assert_eq!(world.fetch("bob").await, "", "a small difference of clocks ends no lease");
    world.machine.go_back(24 * 3_600_000);
    assert_eq!(world.fetch("bob").await, "hello", "its end is a day away");
    drop(lost);
}

#[tokio::test]
async fn a_peek_changes_nothing() {
    let world = World::new();
    world.joined("bob").await;
    let id = world.say("bob", "hello").await;
    let peek = Fetch { peek: true, ..Fetch::default() };
    for include_settled in [false, true, false] {
        let peek = Fetch { include_settled, ..peek.clone() };
        let fetched = world.mesh.fetch(&name("bob"), &peek).await.expect("fetched");
        assert_eq!((fetched.messages.len(), fetched.waiting, fetched.lease), (1, 0, None));
    }
    assert_eq!(world.history(id).await, "stored");
}

#[tokio::test]
async fn what_was_shown_is_left_out_unless_it_is_asked_for() {
    let world = World::new();
    world.joined("bob").await;
    for body in ["one", "two", "three"] {
        world.say("bob", body).await;
    }
    let one = Fetch { limit: 1, ..Fetch::default() };
    let fetched = world.mesh.fetch(&name("bob"), &one).await.expect("fetched");
    assert_eq!((fetched.messages[0].message.body.as_str(), fetched.waiting), ("one", 2));
    world.mesh.confirm(&fetched.lease.expect("a lease"), DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
    assert_eq!(world.fetch("bob").await, "two three");
    let all = Fetch { include_settled: true, ..Fetch::default() };
    let fetched = world.mesh.fetch(&name("bob"), &all).await.expect("fetched");
    assert_eq!((fetched.messages.len(), fetched.lease, fetched.waiting), (3, None, 0));
    let last = Fetch { include_settled: true, newest: true, limit: 1, ..Fetch::default() };
    let fetched = world.mesh.fetch(&name("bob"), &last).await.expect("fetched");
    assert_eq!(fetched.messages[0].message.body, "three");
}

#[tokio::test]
async fn a_fresh_process_reads_on_from_the_cursor_and_misses_nothing() {
    let world = World::new();
    world.joined("bob").await;
    world.say("bob", "old").await;
    assert_eq!(world.fetch("bob").await, "old");
    let kept = world.say("bob", "kept").await;
    let leased = world.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched");
    world.say("bob", "new").await;
    world.mesh.release(leased.lease.expect("a lease")).await.expect("released");
    assert_eq!(world.another_process().fetch("bob").await, "kept new");
    assert_eq!(world.another_process().fetch("bob").await, "");
    world.mesh.acknowledge(&name("bob"), &[kept]).await.expect("acknowledged");
    assert_eq!(world.history(kept).await, "stored, read by fetch, acknowledged by acknowledge");
}

#[tokio::test]
async fn only_ones_own_mail_can_be_acknowledged_and_all_of_it_or_none() {
    let world = World::new();
    world.joined("bob").await;
    world.joined("carol").await;
    let of_bob = world.say("bob", "for bob").await;
    let of_carol = world.say("carol", "for carol").await;
    assert!(world.mesh.acknowledge(&name("carol"), &[of_carol, of_bob]).await.is_err());
    assert_eq!(world.history(of_carol).await, "stored");
    assert!(!world.mesh.acknowledge(&name("carol"), &[of_carol]).await.expect("acknowledged")[0].again);
    assert!(world.mesh.acknowledge(&name("carol"), &[of_carol]).await.expect("acknowledged")[0].again);
}

#[tokio::test]
async fn long_bodies_are_cut_at_a_character_and_say_so() {
    let world = World::new();
    world.joined("bob").await;
    world.say("bob", "üüü").await;
    let short = Fetch { max_length: 3, peek: true, ..Fetch::default() };
    let fetched = world.mesh.fetch(&name("bob"), &short).await.expect("fetched");
    assert_eq!(
        (fetched.messages[0].message.body.as_str(), fetched.messages[0].part.map(|part| part.of)),
        ("ü", Some(6))
    );
}

#[tokio::test]
async fn the_most_urgent_comes_first() {
    let world = World::new();
    world.joined("bob").await;
    for (body, priority) in [("low", "low"), ("normal", "normal"), ("urgent", "urgent"), ("high", "high")] {
        let priority = serde_json::from_value(priority.into()).expect("a priority");
        let draft = crate::messages::Draft { priority, ..super::draft(body) };
        world.send(&crate::testing::shell_call(None), "bob", draft).await.expect("sent");
    }
    assert_eq!(world.fetch("bob").await, "urgent high normal low");
}

#[tokio::test]
async fn whoever_waits_for_mail_hears_of_it() {
    let world = Arc::new(World::new());
    world.joined("bob").await;
    let waiting = tokio::spawn({
        let process = world.another_process();
        async move {
            process.mesh.mail_waits(&name("bob")).await.expect("waited");
            process.fetch("bob").await
        }
    });
    tokio::task::yield_now().await;
    world.say("bob", "wake up").await;
    assert_eq!(waiting.await.expect("no panic"), "wake up");
}

#[tokio::test]
async fn what_may_interrupt_depends_on_what_the_session_does() {
    let world = World::new();
    world.joined("bob").await;
    for priority in ["low", "normal", "urgent"] {
        let draft = crate::messages::Draft {
            priority: serde_json::from_value(priority.into()).expect("a priority"),
            ..super::draft(priority)
        };
        world.send(&crate::testing::shell_call(None), "bob", draft).await.expect("sent");
    }
    for (activity, expected) in [
        (Activity::Idle, "urgent normal"),
        (Activity::Busy, "urgent"),
        (Activity::NeedsInput, ""),
        (Activity::Ended, ""),
    ] {
        let ask = Fetch { interrupting: Some(activity), peek: true, ..Fetch::default() };
        let fetched = world.mesh.fetch(&name("bob"), &ask).await.expect("fetched");
        let bodies: Vec<&str> = fetched.messages.iter().map(|fetched| fetched.message.body.as_str()).collect();
        assert_eq!(bodies.join(" "), expected, "{activity:?}");
    }
}

#[tokio::test]
async fn a_receipt_that_comes_late_settles_what_was_not_settled() {
    let world = World::new();
    world.joined("bob").await;
    let id = world.say("bob", "hello").await;
    let lost = world.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched").lease.expect("a lease");
    let again = world.another_process();
    let late =
        async || again.mesh.confirm_late(&name("bob"), id, DeliveryStatus::Shown, "listen", None).await.expect("noted");
    assert!(late().await, "whoever leased it is gone, and what it showed was shown");
    assert!(!late().await, "and is not said twice");
    drop(lost);
    assert_eq!(world.history(id).await, "stored, shown by listen");
}

#[tokio::test]
async fn a_lease_can_be_settled_message_by_message() {
    let world = World::new();
    world.joined("bob").await;
    let (one, two) = (world.say("bob", "one").await, world.say("bob", "two").await);
    let lease = world.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("fetched").lease.expect("a lease");
    let mut each = lease.each().into_iter();
    world.mesh.confirm(&each.next().expect("the first"), DeliveryStatus::Shown, "hook", None).await.expect("confirmed");
    world.mesh.release(each.next().expect("the second")).await.expect("released");
    assert_eq!(world.history(one).await, "stored, shown by hook");
    assert_eq!((world.history(two).await.as_str(), world.fetch("bob").await.as_str()), ("stored", "two"));
}

#[tokio::test]
async fn the_rest_of_a_cut_message_is_given_by_its_id_and_its_status_says_how_much_went_out() {
    let world = World::new();
    world.joined("alice").await;
    let id = world.say("alice", &format!("{}{}", "a".repeat(3_000), "b".repeat(3_000))).await;
    let cut = async || {
        let person = world.mesh.identify(&crate::testing::shell_call(None)).await.expect("identified");
        world.mesh.message_status(&person, id).await.expect("known").recipients[0].history.cut
    };
    let take = async |ask: Fetch| {
        let fetched = world.mesh.fetch(&name("alice"), &ask).await.expect("fetched");
        if let Some(lease) = &fetched.lease {
            world.mesh.confirm(lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
        }
        fetched.messages.into_iter().map(|fetched| fetched.message.body).collect::<String>()
    };
    assert_eq!(take(Fetch { max_length: 3_000, ..Fetch::default() }).await, "a".repeat(3_000));
    assert_eq!(cut().await.map(|cut| (cut.shown, cut.of)), Some((3_000, 6_000)));
    assert_eq!(take(Fetch::default()).await, "", "it is settled");
    let rest = |offset, peek| Fetch { one: Some(id), offset, peek, ..Fetch::default() };
    assert_eq!(take(rest(3_000, true)).await, "b".repeat(3_000));
    assert_eq!(cut().await.map(|cut| cut.shown), Some(3_000), "a peek changes nothing");
    assert_eq!(take(rest(3_000, false)).await, "b".repeat(3_000));
    assert_eq!(cut().await, None);
    assert_eq!(take(rest(9_000, false)).await, "", "beyond its end");
    let unknown = Fetch { one: Some(crate::tests::leases::other_id()), ..Fetch::default() };
    assert!(matches!(world.mesh.fetch(&name("alice"), &unknown).await, Err(crate::FetchError::Unknown { .. })));
}

fn other_id() -> crate::names::MessageId {
    "01JD8Z3K5V0000000000000000".parse().expect("an id")
}

#[tokio::test]
async fn what_one_sender_wrote_is_shown_in_order_also_while_a_reader_is_dead() {
    let world = World::new();
    world.joined("bob").await;
    world.joined("alice").await;
    let first = Fetch { limit: 1, ..Fetch::default() };
    world.say("bob", "one").await;
    let dead = world.mesh.fetch(&name("bob"), &first).await.expect("fetched");
    assert_eq!(dead.messages.len(), 1, "its reader is killed now");
    world.say("bob", "two").await;
    let from_alice = crate::testing::call("connection-of-alice");
    world.send(&from_alice, "bob", super::draft("another's")).await.expect("sent");
    let urgent = crate::messages::Draft { priority: crate::messages::Priority::Urgent, ..super::draft("urgent") };
    world.send(&crate::testing::shell_call(None), "bob", urgent).await.expect("sent");
    assert_eq!(world.fetch("bob").await, "urgent another's");
    assert_eq!(world.fetch("bob").await, "", "`two` waits behind `one`");
    world.machine.pass(Limits::default().lease);
    assert_eq!(world.fetch("bob").await, "one two");
}
