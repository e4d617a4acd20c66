//! Presence events: going offline and coming back are each told once, by whichever process notices.

use std::sync::Arc;

use store::files::{FilesOptions, FilesStore};
use store::{Durability, Position, Store};

use super::counted::Counted;
use super::machines::two;
use super::{World, name};
use crate::agents::presence_events::OfflineAgents;
use crate::ports::machine::Machine;
use crate::testing::{FakeHarnesses, FakeMachine, session_call, shell_call};
use crate::{DryRun, Limits, Mesh, MeshIndexRule, Parts, Scope};

const SILENCE: u64 = 600_000;

/// A long-lived process that watches presence.
struct Resident {
    world: World,
    known: Option<OfflineAgents>,
}

impl Resident {
    fn of(world: &World) -> Resident {
        Resident { world: world.another_process(), known: None }
    }

    async fn looks(&mut self) {
        crate::agents::presence_events::notice_silence(&self.world.mesh.core, &mut self.known).await.expect("looked");
        self.world.mesh.send_offline_notices().await.expect("told");
    }
}

impl World {
    async fn beats(&self, agent: &str) {
        let caller = self.mesh.identify(&shell_call(Some(agent))).await.expect("identified");
        self.mesh.heartbeat(&caller, None).await.expect("noted");
    }

    /// The presence events in the event log, in order.
    async fn silences(&self) -> Vec<String> {
        let stretch = self.mesh.event_log(Position::START).await.expect("readable");
        let word = |event: &crate::Event, field: &str| event.details[field].as_str().expect("a word").to_owned();
        let of_silence = stretch.events.iter().filter(|event| event.details.contains_key("because"));
        of_silence
            .map(|event| {
                let (agent, presence) = (word(event, "agent"), word(event, "presence"));
                format!("{agent} {} ({presence}: {})", event.kind, word(event, "because"))
            })
            .collect()
    }
}

#[tokio::test]
async fn a_fall_and_a_return_are_told_once_each() {
    let world = World::new();
    world.register(&shell_call(None), "alice").await;
    let (mut one, mut other) = (Resident::of(&world), Resident::of(&world));
    let mut told: Vec<String> = Vec::new();
    for _ in 0..2 {
        one.looks().await;
        other.looks().await;
        assert_eq!(world.silences().await, told, "who is here is no news");
        world.machine.pass(SILENCE);
        one.looks().await;
        other.looks().await;
        one.looks().await;
        told.push("alice agent-offline (away: nothing heard for 10 min)".to_owned());
        assert_eq!(world.silences().await, told);
        // A process that begins to watch later finds it told.
        Resident::of(&world).looks().await;
        world.beats("alice").await;
        other.looks().await;
        one.looks().await;
        told.push("alice agent-online (idle: heard 0 s ago)".to_owned());
        assert_eq!(world.silences().await, told);
    }
}

#[tokio::test]
async fn whoever_registers_again_is_back_and_whoever_is_let_go_is_nobody_any_more() {
    let world = World::new();
    let mut resident = Resident::of(&world);
    let session = session_call("c1", "s1");
    world.register(&session, "bob").await;
    world.register(&shell_call(None), "alice").await;
    world.machine.pass(SILENCE);
    resident.looks().await;
    assert_eq!(world.silences().await.len(), 2);
    world.register(&shell_call(None), "alice").await;
    resident.looks().await;
    let told = world.silences().await;
    assert_eq!((told.len(), told.last().map(String::as_str)), (3, Some("alice agent-online (idle: heard 0 s ago)")));
    world.machine.pass(30 * 24 * 3_600_000);
    resident.looks().await;
    world.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleanup");
    resident.looks().await;
    assert!(world.mesh.agent(&name("alice")).await.expect("readable").is_none(), "it was deleted");
    world.register(&shell_call(None), "alice").await;
    resident.looks().await;
    let told = world.silences().await;
    world.machine.pass(SILENCE);
    Resident::of(&world).looks().await;
    assert_eq!(world.silences().await.len(), told.len() + 1, "a new agent of that name falls for the first time");
}

#[tokio::test]
async fn of_many_who_look_at_once_one_tells() {
    let world = World::new();
    for number in 0..10 {
        world.register(&shell_call(None), &format!("agent-{number}")).await;
    }
    world.machine.pass(SILENCE);
    world.store.give_way();
    let looking: Vec<_> = (0..8)
        .map(|_| {
            let mut resident = Resident::of(&world);
            tokio::spawn(async move { resident.looks().await })
        })
        .collect();
    for one in looking {
        one.await.expect("no panic");
    }
    let mut told = world.silences().await;
    told.sort();
    told.dedup();
    assert_eq!((world.silences().await.len(), told.len()), (10, 10));
}

#[tokio::test]
async fn each_who_asks_gets_one_message_for_each_request() {
    let world = World::new();
    for agent in ["alice", "bob", "carol"] {
        world.register(&shell_call(None), agent).await;
    }
    let alice = world.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
    let (mut one, mut other) = (Resident::of(&world), Resident::of(&world));
    for round in 1..=2 {
        // Two requests count as one.
        for _ in 0..2 {
            world.mesh.notify_when_offline(&alice, &[name("bob"), name("carol")]).await.expect("noted");
        }
        world.machine.pass(SILENCE / 2);
        world.beats("carol").await;
        one.looks().await;
        assert_eq!(
            crate::agents::presence::waiting(&world.mesh.core, &world.mesh.inboxes, &name("alice"))
                .await
                .expect("readable"),
            2 * (round - 1)
        );
        world.machine.pass(SILENCE / 2);
        one.looks().await;
        other.looks().await;
        assert_eq!(
            crate::agents::presence::waiting(&world.mesh.core, &world.mesh.inboxes, &name("alice"))
                .await
                .expect("readable"),
            2 * round - 1,
            "bob fell"
        );
        world.machine.pass(SILENCE);
        other.looks().await;
        one.looks().await;
        assert_eq!(
            crate::agents::presence::waiting(&world.mesh.core, &world.mesh.inboxes, &name("alice"))
                .await
                .expect("readable"),
            2 * round,
            "carol fell too"
        );
        for agent in ["bob", "carol"] {
            world.beats(agent).await;
        }
        one.looks().await;
    }
    let all = crate::messages::kept::oldest(&world.mesh.core, &name("alice"), &crate::tests::everything())
        .await
        .expect("readable");
    let first = &all.first().expect("a message").message;
    assert_eq!(
        (first.from.as_str(), first.body.as_str()),
        ("shell", "bob is away: nothing heard for 10 min. You asked to be told when it is no longer here.")
    );
    let nobody = world.mesh.identify(&shell_call(None)).await.expect("identified");
    let refused = world.mesh.notify_when_offline(&nobody, &[name("bob")]).await.map_err(|error| error.to_string());
    assert_eq!(refused, Err("you have not registered".to_owned()));
}

#[tokio::test]
async fn what_is_kept_of_it_is_a_hint() {
    let world = World::new();
    world.register(&shell_call(None), "alice").await;
    world.machine.pass(SILENCE);
    Resident::of(&world).looks().await;
    let told = world.silences().await;
    let key = "offline".parse().expect("a key");
    // The stored state is lost, too old, of another event log, or invalid: the event log decides.
    for kept in [None, Some(r#"{"at":0,"silent":[]}"#), Some(r#"{"at":99999999999,"silent":[]}"#), Some("[7]")] {
        let found = world.store.get(&key).await.expect("readable");
        let store = Arc::clone(&world.store) as Arc<dyn Store>;
        let revision = found.map(|found| found.revision);
        store.swap(&key, revision, kept.map(str::as_bytes), store::Durability::Process).await.expect("swapped");
        Resident::of(&world).looks().await;
        assert_eq!(world.silences().await, told, "{kept:?}");
    }
}

#[tokio::test]
async fn a_machine_that_is_new_reads_nothing_that_others_told_before_and_tells_of_its_own_once() {
    let (one, other) = two().await;
    for _ in 0..3 {
        one.say("bob", "It is in the event log.").await;
    }
    let end = one.mesh.event_log_end().await.expect("readable");
    crate::agents::presence_events::notice_silence(&other.mesh.core, &mut None).await.expect("looked");
    let key = "offline".parse().expect("a key");
    let kept = other.local.get(&key).await.expect("readable").expect("it is kept where it began");
    assert_eq!(String::from_utf8_lossy(&kept.bytes), format!(r#"{{"at":{},"silent":[]}}"#, end.0));
    other.machine.pass(SILENCE);
    // Each of these processes knows of the others only through the stored state.
    for _ in 0..3 {
        crate::agents::presence_events::notice_silence(&other.mesh.core, &mut None).await.expect("looked");
    }
    let told = one.mesh.event_log(Position::START).await.expect("readable").events;
    assert_eq!(told.iter().filter(|event| event.kind == "agent-offline").count(), 1);
}

#[tokio::test]
async fn a_process_that_knows_nothing_reads_no_event_that_a_cleanup_would_delete() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = FilesOptions {
        rotate_at: 2_000,
        rule: Some(Arc::new(MeshIndexRule)),
        durability: Durability::Process,
        ..FilesOptions::default()
    };
    let counted = Counted::new(Arc::new(FilesStore::open(folder.path(), options).expect("a store")));
    let machine = Arc::new(FakeMachine::default());
    let mesh = Mesh::new(Parts {
        shared: Arc::clone(&counted) as Arc<dyn Store>,
        local: Arc::clone(&counted) as Arc<dyn Store>,
        machine: Arc::clone(&machine) as Arc<dyn Machine>,
        harnesses: Arc::new(FakeHarnesses::default()),
        limits: Limits::default(),
    });
    let mut read = Vec::new();
    for events in [10, 1_000] {
        for _ in 0..events {
            machine.pass(1);
            mesh.core.event_log.note("woke", serde_json::json!({ "agent": "bob" })).await;
        }
        // The cleanup is switched off, and a week goes by.
        machine.pass(Limits::default().keep + 1);
        mesh.core.event_log.note("woke", serde_json::json!({ "agent": "bob" })).await;
        counted.take();
        crate::agents::presence_events::notice_silence(&mesh.core, &mut None).await.expect("looked");
        read.push(counted.take().entries);
    }
    // The segment in which the time falls is read whole.
    assert!(read[1] < read[0] + 40, "events read after 10 and after 1,000 old ones: {read:?}");
}
