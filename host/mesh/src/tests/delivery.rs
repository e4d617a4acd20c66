//! Delivery: the routes beyond the wake file, in order, in one process at a time, with truthful receipts.

use std::sync::Arc;

use store::{Durability, Store as _};
use tokio_util::sync::CancellationToken;

use super::{World, name};
use crate::Served;
use crate::messages::receipt::{Awaits, DeliveryStatus};
use crate::names::MessageId;
use crate::ports::harness::{Carries, Delivered, HarnessError};
use crate::storage::keys;
use crate::testing::{route, session_call};

/// A world in which `alice` is an idle session, and two processes deliver.
async fn delivering(routes: Vec<crate::ports::harness::Route>) -> (World, CancellationToken) {
    let world = World::new();
    *world.harnesses.0.routes.lock().expect("unpoisoned") = routes;
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    let stop = CancellationToken::new();
    for mesh in [Arc::clone(&world.mesh), world.another_process().mesh] {
        tokio::spawn(mesh.deliver(Served::Everyone, stop.clone()));
    }
    (world, stop)
}

/// Advances the test's clock and the mesh's until a message's history reads as expected.
pub(super) async fn until(world: &World, id: MessageId, expected: &str) {
    let mut last = String::new();
    for _ in 0..500 {
        last = world.history(id).await;
        if last == expected {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        world.machine.pass(20);
    }
    assert_eq!(last, expected);
}

async fn until_carried(world: &World) {
    for _ in 0..500 {
        if !carried(world).is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        world.machine.pass(20);
    }
    panic!("no route was tried");
}

fn carried(world: &World) -> Vec<String> {
    let delivered = world.harnesses.0.delivered.lock().expect("unpoisoned");
    delivered.iter().map(|(route, session, _)| format!("{route} to {session}")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_that_proves_itself_is_carried_once_by_one_of_two_processes() {
    let (world, stop) = delivering(vec![route("turn", Carries::Message, DeliveryStatus::Shown, 1_000)]).await;
    let id = world.say("alice", "hello").await;
    until(&world, id, "stored, notified by wake-file, shown by turn").await;
    assert_eq!(carried(&world), ["turn to s1"]);
    assert_eq!(world.fetch("alice").await, "");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_of_one_agent_stops_nobody_elses_mail() {
    let world = World::new();
    for (session, agent, pid) in [("s1", "alice", 1), ("s2", "bob", 2)] {
        world.machine.start(pid);
        world.hook_of(session, "start", Some(pid)).await;
        world.register(&session_call(session, session), agent).await;
    }
    // Her session was handed this: what becomes of it depends on her record.
    world.say("alice", "hello").await;
    world.hook("s1", "tool").await;
    let meta = keys::meta(&name("alice"));
    let record = world.store.get(&meta).await.expect("read").expect("a record");
    world.store.swap(&meta, Some(record.revision), Some(b"[]"), Durability::Process).await.expect("written");
    *world.harnesses.0.routes.lock().expect("unpoisoned") =
        vec![route("turn", Carries::Message, DeliveryStatus::Shown, 1_000)];
    let stop = CancellationToken::new();
    tokio::spawn(Arc::clone(&world.mesh).deliver(Served::Everyone, stop.clone()));
    let id = world.say("bob", "hello").await;
    until(&world, id, "stored, notified by wake-file, shown by turn").await;
    assert_eq!(carried(&world), ["turn to s2"]);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_route_is_believed_no_more_than_it_proves() {
    for (carries, proves, expected) in [
        (Carries::Message, DeliveryStatus::Accepted, "stored, notified by wake-file, accepted by turn"),
        (Carries::Message, DeliveryStatus::Notified, "stored, notified by wake-file"),
        (Carries::Notification, DeliveryStatus::Shown, "stored, notified by wake-file"),
    ] {
        let (world, stop) = delivering(Vec::new()).await;
        let shown = Delivered { status: DeliveryStatus::Shown, evidence: None };
        *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Ok(shown));
        *world.harnesses.0.routes.lock().expect("unpoisoned") = vec![route("turn", carries, proves, 1_000)];
        let id = world.say("alice", "hello").await;
        until_carried(&world).await;
        until(&world, id, expected).await;
        world.machine.pass(120_000);
        assert_eq!(world.fetch("alice").await, "hello", "{carries:?}, {proves:?}: it still waits");
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_notification_says_from_whom_and_nothing_of_what() {
    let (world, stop) =
        delivering(vec![route("notification", Carries::Notification, DeliveryStatus::Notified, 1_000)]).await;
    let id = world.say("alice", "secret").await;
    until(&world, id, "stored, notified by wake-file").await;
    for _ in 0..50 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let texts: Vec<String> =
        world.harnesses.0.delivered.lock().expect("unpoisoned").iter().map(|(.., text)| text.clone()).collect();
    assert_eq!(texts, ["A relay-mesh message from shell waits. Call fetch_messages to read it."]);
    assert_eq!(world.fetch("alice").await, "secret", "the text is still to be fetched");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_route_that_refuses_gives_way_to_the_next() {
    let routes = vec![
        route("socket", Carries::Message, DeliveryStatus::Shown, 60_000),
        route("wake-file-two", Carries::Notification, DeliveryStatus::Notified, 0),
    ];
    let (world, stop) = delivering(routes).await;
    *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Err(HarnessError::Denied("no grant".to_owned())));
    let id = world.say("alice", "hello").await;
    until(&world, id, "stored, notified by wake-file, refused by socket, refused by wake-file-two").await;
    assert_eq!(carried(&world), ["socket to s1", "wake-file-two to s1"]);
    assert_eq!(world.fetch("alice").await, "hello", "a refused message is free to be fetched");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_route_that_refuses_takes_back_no_notice_but_its_own() {
    let (world, stop) = delivering(vec![route("turn", Carries::Message, DeliveryStatus::Shown, 1_000)]).await;
    *world.harnesses.0.shows.lock().expect("unpoisoned") = Some(false);
    let [red, green, blue] = ["red", "green", "blue"].map(|colour| format!("the build is {colour}"));
    for text in [&red, &green] {
        let id = world.say("alice", text).await;
        until(&world, id, "stored, notified by wake-file, shown by turn").await;
    }
    *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Err(HarnessError::Denied("no grant".to_owned())));
    let refused = world.say("alice", &blue).await;
    until(&world, refused, "stored, notified by wake-file, refused by turn").await;
    *world.harnesses.0.shows.lock().expect("unpoisoned") = Some(true);
    world.hook("s1", "prompt").await;
    let told = std::mem::take(&mut *world.harnesses.0.told.lock().expect("unpoisoned")).join("\n");
    let lines: Vec<String> =
        [&red, &green, &blue].map(|text| format!("relay-mesh: mail from shell: \u{201c}{text}\u{201d}")).into();
    assert_eq!(told.lines().collect::<Vec<_>>(), lines, "two waited, and the hook itself brought the third");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_route_that_is_busy_is_tried_again_further_and_further_apart_and_has_refused_nothing() {
    let (world, stop) = delivering(vec![route("turn", Carries::Message, DeliveryStatus::Shown, 1_000)]).await;
    stop.cancel();
    *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Err(HarnessError::Busy(2_000)));
    let stop = CancellationToken::new();
    tokio::spawn(world.another_process().mesh.deliver(Served::Everyone, stop.clone()));
    let id = world.say("alice", "hello").await;
    for _ in 0..650 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        world.machine.pass(20);
    }
    // At once, and after 2, 6 and 14 seconds.
    assert_eq!(carried(&world).len(), 3, "within 13 seconds");
    assert_eq!(world.history(id).await, "stored, notified by wake-file");
    *world.harnesses.0.answer.lock().expect("unpoisoned") = None;
    until(&world, id, "stored, notified by wake-file, shown by turn").await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn while_another_process_brings_a_session_its_mail_nobody_else_does() {
    let (world, stop) =
        delivering(vec![route("notification", Carries::Notification, DeliveryStatus::Notified, 1_000)]).await;
    let session = crate::sessions::SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
    let another = world.mesh.hold_delivery(&session).await.expect("asked").expect("nobody has it");
    let id = world.say("alice", "hello").await;
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        world.machine.pass(20);
    }
    assert_eq!(carried(&world), Vec::<String>::new());
    drop(another);
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        world.machine.pass(20);
    }
    assert_eq!(carried(&world), ["notification to s1"]);
    assert_eq!(world.history(id).await, "stored, notified by wake-file");
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn low_and_held_mail_is_not_carried() {
    let (world, stop) = delivering(vec![route("turn", Carries::Message, DeliveryStatus::Shown, 1_000)]).await;
    let low = crate::messages::Draft { priority: crate::messages::Priority::Low, ..super::draft("no hurry") };
    world.send(&crate::testing::shell_call(None), "alice", low).await.expect("sent");
    let id = world.say("alice", "hello").await;
    until(&world, id, "stored, notified by wake-file, shown by turn").await;
    let delivered = world.harnesses.0.delivered.lock().expect("unpoisoned").clone();
    assert!(delivered.iter().all(|(.., text)| !text.contains("no hurry")), "{delivered:?}");
    assert_eq!(world.mesh.agent(&name("alice")).await.expect("read").expect("there").waiting, 1);
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn what_no_route_takes_is_undeliverable_until_it_is_fetched() {
    let world = World::new();
    *world.harnesses.0.routes.lock().expect("unpoisoned") = vec![
        route("turn", Carries::Message, DeliveryStatus::Shown, 1_000),
        route("queue", Carries::Notification, DeliveryStatus::Notified, 1_000),
    ];
    *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Err(HarnessError::Denied("no grant".to_owned())));
    // No hook of this session ever ran, so its harness does not watch a wake file.
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    let stop = CancellationToken::new();
    tokio::spawn(Arc::clone(&world.mesh).deliver(Served::Everyone, stop.clone()));
    let id = world.say("alice", "hello").await;
    let why = "no route took it: turn (denied: no grant); queue (denied: no grant)";
    until(&world, id, &format!("stored, refused by turn, refused by queue, undeliverable: {why}")).await;
    let undeliverable = async || world.mesh.status().await.expect("read").undeliverable;
    let stuck = undeliverable().await;
    let in_short: Vec<_> = stuck.iter().map(|mail| (mail.to.as_str(), mail.messages, mail.reason.as_str())).collect();
    assert_eq!(in_short, [("alice", 1, why)]);
    assert_eq!(world.fetch("alice").await, "hello", "it waits in the inbox all the same");
    until(&world, id, "stored, read by fetch, refused by turn, refused by queue").await;
    assert_eq!(undeliverable().await, []);
    stop.cancel();
}

/// Hooks of this session carry mail, so what no route takes comes with its user's next prompt.
#[tokio::test(start_paused = true)]
async fn what_no_route_takes_waits_for_the_next_prompt_where_hooks_carry_mail() {
    for routes in [vec![route("queue", Carries::Notification, DeliveryStatus::Notified, 1_000)], Vec::new()] {
        let world = World::new();
        let refused = if routes.is_empty() { "" } else { ", refused by queue" };
        *world.harnesses.0.routes.lock().expect("unpoisoned") = routes;
        *world.harnesses.0.answer.lock().expect("unpoisoned") = Some(Err(HarnessError::Denied("no grant".to_owned())));
        assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
        world.hook("s1", "prompt").await;
        world.hook("s1", "stop").await;
        let stop = CancellationToken::new();
        tokio::spawn(Arc::clone(&world.mesh).deliver(Served::Everyone, stop.clone()));
        let id = world.say("alice", "hello").await;
        until(&world, id, &format!("stored{refused}")).await;
        let person = world.mesh.identify(&crate::testing::shell_call(None)).await.expect("identified");
        let waits = async || {
            let status = world.mesh.message_status(&person, id).await.expect("known");
            status.recipients[0].awaits == Some(Awaits::NextPrompt)
        };
        assert!(waits().await);
        world.hook("s1", "prompt").await;
        assert!(!waits().await, "it has come");
        stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn mail_for_a_session_whose_adapter_is_gone_is_undeliverable_until_it_is_back() {
    let world = World::new();
    *world.harnesses.0.routes.lock().expect("unpoisoned") =
        vec![route("turn", Carries::Message, DeliveryStatus::Shown, 1_000)];
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    let id = world.say("alice", "hello").await;
    let without_adapters = crate::Mesh::new(crate::Parts {
        shared: Arc::clone(&world.store) as Arc<dyn store::Store>,
        local: Arc::clone(&world.store) as Arc<dyn store::Store>,
        machine: Arc::clone(&world.machine) as Arc<dyn crate::ports::machine::Machine>,
        harnesses: Arc::new(NoHarness),
        limits: crate::Limits::default(),
    });
    let stop = CancellationToken::new();
    let lonely = tokio::spawn(Arc::new(without_adapters).deliver(Served::Everyone, stop.clone()));
    until(&world, id, "stored, undeliverable: no adapter for `fake` is installed here").await;
    stop.cancel();
    lonely.await.expect("it stops");
    let stop = CancellationToken::new();
    tokio::spawn(Arc::clone(&world.mesh).deliver(Served::Everyone, stop.clone()));
    until(&world, id, "stored, shown by turn").await;
    stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_bare_connection_is_left_to_fetch_its_mail() {
    let world = World::new();
    world.joined("bob").await;
    let stop = CancellationToken::new();
    tokio::spawn(Arc::clone(&world.mesh).deliver(Served::Everyone, stop.clone()));
    let id = world.say("bob", "hello").await;
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        world.machine.pass(20);
    }
    assert_eq!(world.history(id).await, "stored");
    stop.cancel();
}

/// No adapter at all.
struct NoHarness;

#[async_trait::async_trait]
impl crate::ports::harness::Harnesses for NoHarness {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    async fn get(&self, _: &str) -> Result<Option<Arc<dyn crate::ports::harness::Harness>>, HarnessError> {
        Ok(None)
    }

    async fn candidates(&self, _: &crate::sessions::Caller) -> Vec<crate::ports::candidate::Candidate> {
        Vec::new()
    }
}

#[tokio::test(start_paused = true)]
async fn mail_that_waits_for_several_sessions_keeps_nobody_busy() {
    // Passes of several sessions overlap; that one was skipped must not begin the others again, for ever.
    let (world, stop) = delivering(vec![route("turn", Carries::Notification, DeliveryStatus::Notified, 1_000)]).await;
    for (connection, session, agent) in [("c2", "s2", "bob"), ("c3", "s3", "carol")] {
        world.hook(session, "start").await;
        assert_eq!(world.register(&session_call(connection, session), agent).await, format!("{agent} new"));
    }
    world.store.give_way();
    for agent in ["alice", "bob", "carol"] {
        world.say(agent, "hello").await;
    }
    let mut asked = Vec::new();
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        world.machine.pass(1_000);
        asked.push(world.harnesses.0.asked_for_routes.load(std::sync::atomic::Ordering::Relaxed));
    }
    // Two processes deliver: the one without a session's lease tries again every two seconds.
    assert!(asked[0] > 0 && asked[19] < 100, "once every route was tried it is quiet: {asked:?}");
    stop.cancel();
}

/// Its sender sees why a message goes no further.
#[tokio::test(start_paused = true)]
async fn what_a_message_waits_for_is_said() {
    let world = World::new();
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    assert_eq!(world.register(&crate::testing::call("c2"), "bob").await, "bob new");
    let (to_alice, to_bob) = (world.say("alice", "hello").await, world.say("bob", "hello").await);
    let person = world.mesh.identify(&crate::testing::shell_call(None)).await.expect("identified");
    let awaits = async |id| world.mesh.message_status(&person, id).await.expect("known").recipients[0].awaits;
    assert_eq!(awaits(to_bob).await, Some(Awaits::Fetch));
    world.mesh.pause(Some(&[name("alice")])).await.expect("paused");
    assert_eq!(awaits(to_alice).await, Some(Awaits::Resume));
    world.mesh.resume(Some(&[name("alice")])).await.expect("resumed");
    assert_ne!(awaits(to_alice).await, Some(Awaits::Resume));
    world.hook("s1", "end").await;
    assert_eq!(awaits(to_alice).await, Some(Awaits::Return));
    assert_eq!(world.fetch("bob").await, "hello");
    assert_eq!(awaits(to_bob).await, None, "it has come");
}
