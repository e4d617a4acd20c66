//! Processes of several PID namespaces share one data folder, such as a devcontainer's and the machine's own. Each side
//! sees only its own processes, and process ids mean others there.

use store::{Durability, Store as _};

use super::{World, draft, name};
use crate::delivery::serve::Served;
use crate::ports::machine::Machine as _;
use crate::reservations::repository::Repository;
use crate::reservations::{Mode, Ttl};
use crate::sessions::heartbeat;
use crate::storage::keys;
use crate::testing::{call, session_call, shell_call};
use crate::{DryRun, Others, Own, Reserve, Scope};

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// Alice is idle in the session `s1`, in process 7 of the namespace 1.
async fn alice() -> World {
    let world = World::new();
    world.machine.start(7);
    world.hook_of("s1", "start", Some(7)).await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    world
}

async fn presence(world: &World, agent: &str) -> String {
    let seen = world.mesh.agent(&name(agent)).await.expect("readable").expect("an agent");
    format!("{}: {}", seen.presence.as_str(), seen.evidence)
}

/// What a process that serves every session does each minute.
async fn beat(world: &World) {
    heartbeat::beat_all(&world.mesh.core, &world.mesh.connections, &Served::Everyone).await.expect("noted");
}

const ELSEWHERE: &str = "its process is in another PID namespace, such as a container's";

#[tokio::test]
async fn neither_side_takes_the_others_agent_for_gone_or_its_mail() {
    let world = alice().await;
    world.say("alice", "for the first").await;
    // Whether its number is somebody's here or nobody's.
    for (space, has_its_number) in [(2, true), (3, false)] {
        world.machine.enter_space(space);
        if !has_its_number {
            world.machine.kill(7);
        }
        assert_eq!(presence(&world, "alice").await, "idle: waits, heard 0 s ago");
        let (connection, session) = (format!("c{space}"), format!("s{space}"));
        let outcome = world.register(&session_call(&connection, &session), "alice").await;
        assert_eq!(outcome, format!("alice-{space} numbered"));
        assert_eq!(world.fetch(&format!("alice-{space}")).await, "");
        world.machine.start(7);
    }
    world.machine.enter_space(1);
    assert_eq!(presence(&world, "alice").await, "idle: waits, heard 0 s ago");
    assert_eq!(world.fetch("alice").await, "for the first");
    world.machine.kill(7);
    assert_eq!(presence(&world, "alice").await, "offline: its process no longer runs", "its own side knows");
}

#[tokio::test]
async fn an_idle_session_is_here_to_other_namespaces_while_its_heartbeat_is_fresh() {
    let world = alice().await;
    for _ in 0..30 {
        world.machine.pass(MINUTE);
        beat(&world).await;
    }
    assert_eq!(presence(&world, "alice").await, "idle: waits, heard 30 min ago", "what its own side says is unchanged");
    world.machine.enter_space(2);
    assert_eq!(presence(&world, "alice").await, "idle: waits, heard 0 s ago");
    world.machine.pass(11 * MINUTE);
    beat(&world).await;
    let away = format!("away: nothing heard for 11 min, and {ELSEWHERE}");
    assert_eq!(presence(&world, "alice").await, away, "this side says nothing of it");
    assert_eq!(
        world.register(&session_call("c2", "s2"), "alice").await,
        "alice-2 numbered",
        "it is not known to be over"
    );
    world.machine.enter_space(1);
    assert_eq!(presence(&world, "alice").await, "idle: waits, heard 41 min ago");
}

#[tokio::test]
async fn a_heartbeat_costs_one_write_a_minute_and_none_while_the_session_speaks() {
    let world = alice().await;
    let session = keys::session(&crate::sessions::SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() });
    let revision = async || world.store.get(&session).await.expect("read").expect("a record").revision.0;
    let before = revision().await;
    beat(&world).await;
    assert_eq!(revision().await, before, "it was heard of just now");
    for _ in 0..10 {
        world.machine.pass(MINUTE);
        beat(&world).await;
        beat(&world).await;
    }
    assert_eq!(revision().await, before + 10);
}

#[tokio::test]
async fn an_agent_of_a_container_that_is_gone_waits_for_adopt_or_for_its_own_client() {
    let world = alice().await;
    world.joined("zed").await;
    world.say("zed", "for the editor").await;
    world.machine.enter_space(2);
    assert_eq!(world.register(&call("c9"), "zed").await, "zed-2 numbered", "its heartbeat is fresh");
    world.machine.pass(11 * MINUTE);
    assert_eq!(world.register(&call("c10"), "zed").await, "zed reclaimed", "the same program in the same project");
    assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice-2 numbered");
    world.mesh.adopt(&name("alice")).await.expect("adopted");
    assert_eq!(world.register(&session_call("c3", "s3"), "alice").await, "alice reclaimed");
}

#[tokio::test]
async fn what_ran_before_the_system_was_started_again_has_ended() {
    let world = alice().await;
    world.machine.reboot();
    assert_eq!(presence(&world, "alice").await, "offline: its process no longer runs", "although its number is taken");
    assert_eq!(world.register(&session_call("c2", "s2"), "alice").await, "alice reclaimed");
}

#[tokio::test]
async fn what_an_agent_of_another_namespace_has_reserved_stays_refused() {
    let world = alice().await;
    let caller = world.mesh.identify(&session_call("c1", "s1")).await.expect("identified");
    let wanted = Reserve {
        repository: Repository::named("/work"),
        patterns: vec!["src/**".parse().expect("a pattern")],
        mode: Mode::Exclusive,
        ttl: Ttl::new(60 * MINUTE).expect("an hour"),
        reason: None,
        others: Others::Respect,
        own: Own::Keep,
    };
    world.mesh.reserve(&caller, wanted).await.expect("reserved");
    world.machine.enter_space(2);
    world.machine.kill(7);
    world.machine.start(8);
    world.hook_of("s2", "start", Some(8)).await;
    world.register(&session_call("c2", "s2"), "bob").await;
    let edit = async || world.hook_of("s2", "edit:/work/src/a.rs", Some(8)).await.stdout.unwrap_or_default();
    assert!(edit().await.contains("held by alice"));
    world.machine.pass(11 * MINUTE);
    assert!(edit().await.contains("held by alice"), "it is away and not known to be gone");
}

#[tokio::test]
async fn the_end_of_a_session_here_is_not_that_of_the_same_number_elsewhere() {
    let world = alice().await;
    world.machine.enter_space(2);
    world.hook_of("s1", "start", Some(7)).await;
    world.hook_of("s1", "end", Some(7)).await;
    assert!(presence(&world, "alice").await.starts_with("idle"), "it is open in the other container still");
    world.machine.enter_space(1);
    assert!(presence(&world, "alice").await.starts_with("idle"));
    world.hook_of("s1", "end", Some(7)).await;
    assert!(presence(&world, "alice").await.starts_with("offline: its session ended"));
}

#[tokio::test]
async fn a_process_above_this_one_is_found_among_those_of_this_namespace() {
    let world = alice().await;
    let above = async || world.mesh.session_of_process(&[7]).await.expect("read").and_then(|(_, agent)| agent);
    assert_eq!(above().await, Some(name("alice")));
    world.machine.enter_space(2);
    assert_eq!(above().await, None, "process 7 is another one here");
}

#[tokio::test]
async fn a_listener_of_another_namespace_listens_while_its_heartbeat_is_fresh() {
    let world = alice().await;
    let session = crate::sessions::SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
    world.mesh.listens_for(&session).await.expect("noted");
    let other = world.another_process();
    other.machine.enter_space(2);
    let is_deserted = async || !other.mesh.deserted("fake").await.expect("read").is_empty();
    assert!(!is_deserted().await);
    other.mesh.listens_for(&session).await.expect("noted");
    other.mesh.listens_no_more(&session).await.expect("noted");
    assert!(!is_deserted().await, "it was not this one's to remove");
    world.machine.pass(9 * MINUTE);
    world.machine.enter_space(1);
    world.mesh.listens_for(&session).await.expect("noted");
    world.machine.enter_space(2);
    world.machine.pass(9 * MINUTE);
    assert!(!is_deserted().await, "it said so nine minutes ago");
    world.machine.pass(2 * MINUTE);
    assert!(is_deserted().await);
    other.mesh.listens_for(&session).await.expect("noted");
    assert!(!is_deserted().await, "another one took its place");
}

#[tokio::test]
async fn the_cleanup_leaves_what_another_namespace_says_lives() {
    let world = alice().await;
    for day in 1..=40 {
        world.machine.enter_space(1);
        world.machine.pass(DAY);
        beat(&world).await;
        world.machine.enter_space(2);
        world.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleanup");
        assert!(presence(&world, "alice").await.starts_with("idle"), "after {day} days");
    }
    world.say("alice", "still here?").await;
    world.machine.enter_space(1);
    assert_eq!(world.fetch("alice").await, "still here?");
}

#[tokio::test]
async fn records_of_earlier_versions_are_read_as_they_are() {
    let world = alice().await;
    let key = keys::session(&crate::sessions::SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() });
    let found = world.store.get(&key).await.expect("read").expect("a record");
    let mut record: serde_json::Value = serde_json::from_slice(&found.bytes).expect("JSON");
    let put = async |record: &serde_json::Value| {
        let revision = world.store.get(&key).await.expect("read").map(|found| found.revision);
        let bytes = serde_json::to_vec(record).expect("JSON");
        world.store.swap(&key, revision, Some(&bytes), Durability::Process).await.expect("written");
    };
    record["process"].as_object_mut().expect("a process").remove("space").expect("today's");
    put(&record).await;
    assert!(presence(&world, "alice").await.starts_with("idle"), "its number counts wherever it is read");
    world.machine.kill(7);
    assert!(presence(&world, "alice").await.starts_with("offline"));
    // With the namespace beside the process, as it was noted for a while.
    record["process_space"] = serde_json::json!(1);
    put(&record).await;
    assert!(presence(&world, "alice").await.starts_with("offline"));
    world.machine.enter_space(2);
    assert!(presence(&world, "alice").await.starts_with("idle"), "nothing is known of it here");
    world.machine.enter_space(1);
    world.machine.start(7);
    world.hook_of("s1", "start", Some(7)).await;
    let found = world.store.get(&key).await.expect("read").expect("a record");
    let record: serde_json::Value = serde_json::from_slice(&found.bytes).expect("JSON");
    assert!(record["process"]["space"].is_object() && record["process_space"].is_null(), "{record}");
    let sent = world.send(&shell_call(None), "alice", draft("hello")).await;
    assert!(sent.is_ok() && world.machine.process(7).is_some());
}
