//! Ended sessions are kept apart from those that may be alive, and come back when they are resumed.

use store::Store as _;
use store::memory::Fault;

use super::World;
use crate::sessions::SessionRef;
use crate::storage::keys;
use crate::testing::session_call;

impl World {
    /// How many sessions are listed as alive, and how many are kept as ended.
    async fn live_and_ended(&self) -> (usize, usize) {
        let live = self.store.list(&keys::sessions()).await.expect("listed").len();
        (live, self.store.list(&keys::ended_sessions()).await.expect("listed").len())
    }

    async fn agent_of(&self, session: &str) -> Option<String> {
        let session = SessionRef { harness: "fake".to_owned(), id: session.to_owned() };
        let agent = crate::sessions::record::agent_of(&self.mesh.core, &session).await.expect("read");
        agent.map(|name| name.to_string())
    }
}

/// `alice` is the agent of session `s1`, whose process 7 is gone.
async fn crashed() -> World {
    let world = World::new();
    world.machine.start(7);
    world.hook_of("s1", "start", Some(7)).await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    world.machine.kill(7);
    world
}

#[tokio::test]
async fn listing_sessions_costs_what_is_alive() {
    let world = crashed().await;
    for number in 0..50 {
        world.hook_of(&format!("other-{number}"), "start", Some(1)).await;
        world.hook_of(&format!("other-{number}"), "end", Some(1)).await;
    }
    world.hook("s2", "start").await;
    assert_eq!(world.live_and_ended().await, (52, 0));
    assert_eq!(world.mesh.sessions().await.expect("listed").len(), 1);
    assert_eq!(world.live_and_ended().await, (1, 51), "the next listing reads one record");
    assert_eq!(world.agent_of("s1").await.as_deref(), Some("alice"), "an ended session is still known");
}

#[tokio::test]
async fn a_session_that_is_resumed_comes_back_with_its_agent() {
    let world = crashed().await;
    world.mesh.sessions().await.expect("listed");
    assert_eq!(world.live_and_ended().await, (0, 1));
    world.machine.start(8);
    world.hook_of("s1", "resume", Some(8)).await;
    assert_eq!(world.live_and_ended().await, (1, 0));
    assert_eq!(world.agent_of("s1").await.as_deref(), Some("alice"));
    assert_eq!(world.mesh.sessions().await.expect("listed").len(), 1);
}

#[tokio::test]
async fn a_process_that_is_killed_at_any_write_of_a_move_loses_no_session() {
    for nth in 1.. {
        let world = crashed().await;
        let before = world.store.writes();
        world.store.fail_at(nth, Fault::Fail);
        // What fails while listing is tried again by the next listing, and is no error.
        world.mesh.sessions().await.expect("listed");
        world.machine.start(8);
        let session = SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
        let back = crate::sessions::archive::bring_back(&world.mesh.core, &session).await;
        let failed = world.store.writes() - before < nth;
        assert_eq!(world.agent_of("s1").await.as_deref(), Some("alice"), "write {nth}: {back:?}");
        if failed {
            assert!(nth > 3, "only {nth} writes");
            break;
        }
        world.hook_of("s1", "resume", Some(8)).await;
        assert_eq!(world.agent_of("s1").await.as_deref(), Some("alice"), "write {nth}");
        assert_eq!(world.mesh.sessions().await.expect("listed").len(), 1, "write {nth}");
        assert_eq!(world.live_and_ended().await.0, 1, "write {nth}");
    }
}
