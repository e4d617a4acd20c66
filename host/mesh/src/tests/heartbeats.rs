//! Heartbeats that agents send, and waiting for agents.

use super::{World, name};
use crate::HeartbeatError;
use crate::testing::{call, session_call, shell_call};

impl World {
    async fn beat_of(&self, call: &crate::sessions::Call, task: Option<&str>) -> String {
        let caller = self.mesh.identify(call).await.expect("identified");
        match self.mesh.heartbeat(&caller, task).await {
            Ok(seen) => {
                let task = seen.agent.profile.task.unwrap_or_else(|| "nothing".to_owned());
                format!("{}, does {task}", seen.presence.as_str())
            }
            Err(error) => error.to_string(),
        }
    }

    async fn presence_of(&self, agent: &str) -> &'static str {
        self.mesh.agent(&name(agent)).await.expect("readable").expect("there").presence.as_str()
    }
}

#[tokio::test]
async fn a_heartbeat_keeps_an_agent_here_and_says_what_it_does() {
    let world = World::new();
    world.register(&shell_call(None), "alice").await;
    let alice = shell_call(Some("alice"));
    assert_eq!(world.beat_of(&alice, Some("the parser")).await, "idle, does the parser");
    for _ in 0..3 {
        world.machine.pass(590_000);
        assert_eq!(world.beat_of(&alice, None).await, "idle, does the parser");
    }
    world.machine.pass(600_000);
    assert_eq!(world.presence_of("alice").await, "away");
    assert_eq!(world.beat_of(&alice, Some("")).await, "idle, does nothing");
    let long = "x".repeat(201);
    assert_eq!(world.beat_of(&alice, Some(&long)).await, "the task has 201 bytes and may have 200");
    let nobody = world.mesh.identify(&call("c9")).await.expect("identified");
    assert!(matches!(world.mesh.heartbeat(&nobody, None).await, Err(HeartbeatError::NotRegistered)));
}

#[tokio::test]
async fn a_heartbeat_is_noted_however_soon_it_follows_another() {
    let world = World::new();
    world.register(&shell_call(None), "alice").await;
    let alice = world.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
    for _ in 0..3 {
        world.machine.pass(1_000);
        let seen = world.mesh.heartbeat(&alice, None).await.expect("noted");
        assert_eq!(seen.last_heard, Some(crate::ports::machine::Machine::now(world.machine.as_ref())));
    }
}

#[tokio::test]
async fn a_session_gives_a_sign_of_life_too() {
    let world = World::new();
    let session = session_call("c1", "s1");
    world.register(&session, "bob").await;
    world.machine.pass(600_000);
    assert_eq!(world.presence_of("bob").await, "away");
    assert_eq!(world.beat_of(&session, None).await, "idle, does nothing");
}

#[tokio::test]
async fn who_is_waited_for_is_here_when_they_join() {
    let world = World::new();
    world.register(&shell_call(None), "alice").await;
    let waiting = tokio::spawn({
        let other = world.another_process();
        async move { other.mesh.here(&[name("alice"), name("bob")]).await.expect("readable") }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    world.register(&shell_call(None), "bob").await;
    let here: Vec<String> = waiting.await.expect("no panic").iter().map(|seen| seen.agent.name.to_string()).collect();
    assert_eq!(here, ["alice", "bob"]);
}

#[tokio::test(start_paused = true)]
async fn who_is_watched_over_is_told_of_when_they_go_and_only_they() {
    let world = World::new();
    world.register(&shell_call(None), "alice").await;
    world.machine.start(2);
    world.hook_of("s2", "start", Some(2)).await;
    world.register(&session_call("c2", "s2"), "bob").await;
    let watching = tokio::spawn({
        let other = world.another_process();
        async move { other.mesh.stale(&[name("alice"), name("bob"), name("nobody")]).await.expect("readable") }
    });
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert!(!watching.is_finished(), "both are here, and nobody is passed over");
    world.machine.kill(2);
    let gone: Vec<String> = watching.await.expect("no panic").iter().map(|seen| seen.agent.name.to_string()).collect();
    assert_eq!(gone, ["bob"]);
}
