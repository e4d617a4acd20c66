//! Faults: a store that fails or loses power at any write loses nothing that was answered.

use store::memory::{Fault, Tail};

use super::{World, draft, name};
use crate::Fetch;
use crate::messages::receipt::DeliveryStatus;
use crate::names::MessageId;
use crate::testing::{call, session_call, shell_call};

/// What the mesh confirmed, and so must keep.
#[derive(Default)]
struct Promised {
    sent: Vec<(MessageId, String)>,
    acknowledged: Vec<MessageId>,
    registered: Vec<String>,
}

/// A day in the life of two agents. Failures are skipped: the caller is told of them.
async fn day(world: &World) -> Promised {
    let mut promised = Promised::default();
    let mut register = async |call: crate::sessions::Call, wanted: &str| {
        let Ok(caller) = world.mesh.identify(&call).await else { return };
        let registration = crate::Registration { name: Some(name(wanted)), ..crate::Registration::default() };
        if let Ok(registered) = world.mesh.register(&caller, registration).await {
            promised.registered.push(registered.agent.name.to_string());
        }
    };
    register(call("c1"), "bob").await;
    register(session_call("c2", "s1"), "alice").await;
    for number in 0..6 {
        let Ok(caller) = world.mesh.identify(&shell_call(None)).await else { continue };
        let body = format!("m{number}");
        let keyed = crate::messages::Draft { idempotency_key: (number % 2 == 0).then(|| body.clone()), ..draft(&body) };
        let to = ["bob".to_owned()];
        let sent = match world.mesh.send(&caller, &to, keyed.clone()).await {
            // A failed message with a key is sent again, as its sender would do.
            Err(_) if keyed.idempotency_key.is_some() => world.mesh.send(&caller, &to, keyed).await,
            sent => sent,
        };
        if let Ok(sent) = sent {
            promised.sent.push((sent.id, body));
        }
        let take = Fetch { limit: 1, ..Fetch::default() };
        if let Ok(fetched) = world.mesh.fetch(&name("bob"), &take).await
            && let Some(lease) = fetched.lease
            && world.mesh.confirm(&lease, DeliveryStatus::Read, "fetch", None).await.is_ok()
            && world.mesh.acknowledge(&name("bob"), &lease.messages).await.is_ok()
        {
            promised.acknowledged.extend(lease.messages);
        }
    }
    // Nothing of this is old enough to go.
    let _either_way = world.mesh.clean_up(crate::Scope::Everything, crate::DryRun::No, None).await;
    promised
}

async fn check(fault: Option<(u64, Fault)>, tail: Option<Tail>) {
    let mut world = World::new();
    if let Some((nth, fault)) = fault {
        world.store.fail_at(nth, fault);
    }
    let promised = day(&world).await;
    if let Some(tail) = tail {
        world.store = std::sync::Arc::new(world.store.crash(tail));
    }
    let after = world.another_process();
    for registered in &promised.registered {
        let found = after.mesh.agent(&name(registered)).await.expect("readable");
        assert!(found.is_some(), "{fault:?} {tail:?}: {registered} is gone");
    }
    let kept = crate::messages::kept::oldest(&after.mesh.core, &name("bob"), &crate::tests::everything())
        .await
        .expect("readable");
    for (id, body) in &promised.sent {
        let copies: Vec<_> = kept.iter().filter(|kept| kept.message.body == *body).collect();
        assert!(
            copies.iter().any(|kept| kept.message.id == *id),
            "{fault:?} {tail:?}: {body} was answered and is gone"
        );
        // A failed message may be stored too: its sender was told that this is unknown.
        assert_eq!(copies.len(), 1, "{fault:?} {tail:?}: {body} is there twice");
    }
    // A message whose sync failed may have been read and acknowledged before the power failed; its
    // sender was told that it is not safe.
    let answered = |id: &&MessageId| promised.sent.iter().any(|(sent, _)| sent == *id);
    for id in promised.acknowledged.iter().filter(answered) {
        let kept = kept.iter().find(|kept| kept.message.id == *id).expect("an acknowledged message is kept");
        assert_eq!(
            kept.history.status(),
            DeliveryStatus::Acknowledged,
            "{fault:?} {tail:?}: an acknowledgement is gone"
        );
    }
}

#[tokio::test]
async fn a_write_that_fails_costs_only_what_was_not_answered() {
    let world = World::new();
    let whole = day(&world).await;
    assert_eq!((whole.sent.len(), whole.acknowledged.len(), whole.registered.len()), (6, 6, 2));
    for nth in 1..=world.store.writes() {
        for fault in [Fault::Fail, Fault::FailToSync, Fault::Tear] {
            for tail in [None, Some(Tail::Lost), Some(Tail::Torn), Some(Tail::Kept)] {
                check(Some((nth, fault)), tail).await;
            }
        }
    }
}

#[tokio::test]
async fn a_cleanup_that_fails_at_any_write_costs_nothing_that_is_still_unread() {
    let prepared = async || {
        let world = World::new();
        day(&world).await;
        world.machine.pass(8 * 24 * 3_600_000);
        let sent = world.send(&shell_call(None), "bob", draft("new")).await.expect("sent");
        (world, sent.id)
    };
    let writes = {
        let (world, _) = prepared().await;
        let before = world.store.writes();
        let cleaned = world.mesh.clean_up(crate::Scope::Everything, crate::DryRun::No, None).await.expect("cleaned up");
        assert!(world.store.writes() > before, "it deletes something: {cleaned:?}");
        world.store.writes() - before
    };
    for nth in 1..=writes {
        for fault in [Fault::Fail, Fault::FailToSync, Fault::Tear, Fault::Forget] {
            for tail in [None, Some(Tail::Lost), Some(Tail::Torn), Some(Tail::Kept)] {
                let (mut world, unread) = prepared().await;
                world.store.fail_at(nth, fault);
                let _either_way = world.mesh.clean_up(crate::Scope::Everything, crate::DryRun::No, None).await;
                if let Some(tail) = tail {
                    world.store = std::sync::Arc::new(world.store.crash(tail));
                }
                let after = world.another_process();
                let again = after.mesh.clean_up(crate::Scope::Everything, crate::DryRun::No, None).await;
                again.unwrap_or_else(|error| panic!("{fault:?} at {nth}, {tail:?}: {error}"));
                let fetched = after.mesh.fetch(&name("bob"), &Fetch::default()).await.expect("readable");
                let ids: Vec<_> = fetched.messages.iter().map(|message| message.message.id).collect();
                assert_eq!(ids, [unread], "{fault:?} at {nth}, {tail:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_loss_of_power_costs_nothing_that_was_answered() {
    for tail in [Tail::Lost, Tail::Torn, Tail::Kept] {
        check(None, Some(tail)).await;
    }
}

#[tokio::test]
async fn a_keyed_message_that_is_sent_again_is_on_disk_before_it_is_called_a_duplicate() {
    for (fault, stored_by) in
        [(Fault::Fail, "the second"), (Fault::FailToSync, "the first"), (Fault::Tear, "the second")]
    {
        let world = World::new();
        world.joined("bob").await;
        let keyed = || crate::messages::Draft { idempotency_key: Some("k".to_owned()), ..draft("once") };
        world.store.fail_at(1, fault);
        world.send(&shell_call(None), "bob", keyed()).await.expect_err("the first try fails");
        // A second failed sync is an error too.
        if fault == Fault::FailToSync {
            world.store.fail_at(1, fault);
            world.send(&shell_call(None), "bob", keyed()).await.expect_err("the second try cannot sync it");
        }
        let sent = world.send(&shell_call(None), "bob", keyed()).await.expect("sent");
        let found = if sent.recipients[0].duplicate { "the first" } else { "the second" };
        assert_eq!(found, stored_by, "{fault:?}");
        let after = World { store: std::sync::Arc::new(world.store.crash(Tail::Lost)), ..world }.another_process();
        let kept = crate::messages::kept::oldest(&after.mesh.core, &name("bob"), &crate::tests::everything())
            .await
            .expect("readable");
        let kept: Vec<_> = kept.iter().map(|kept| kept.message.id).collect();
        assert_eq!(kept, [sent.id], "{fault:?}: what was answered outlasts the loss of power");
    }
}

#[tokio::test]
async fn a_keyed_message_that_is_sent_again_wakes_a_session_that_the_first_try_did_not_wake() {
    for nth in 1..=6 {
        let world = World::new();
        world.hook("s1", "start").await;
        world.register(&session_call("c1", "s1"), "alice").await;
        let caller = world.mesh.identify(&shell_call(None)).await.expect("identified");
        let send = async || {
            let keyed = crate::messages::Draft { idempotency_key: Some("k".to_owned()), ..draft("once") };
            world.mesh.send(&caller, &["alice".to_owned()], keyed).await
        };
        let before = world.wake_lines("s1").await;
        world.store.fail_at(nth, Fault::Fail);
        let _either_way = send().await;
        send().await.expect("sent");
        let after = world.wake_lines("s1").await;
        assert!(after > before, "write {nth}: {before} lines, and then {after}");
        send().await.expect("sent");
        assert_eq!(world.wake_lines("s1").await, after, "write {nth}: it wakes once, however often it is sent");
    }
}
