//! Cleaning up: everything that ended is deleted, and nothing else. And the event log: every event once and in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use store::files::{FilesOptions, FilesStore};
use store::{Durability, Position, Store};

use super::machines::two;
use super::{World, name};
use crate::commands::Ended;
use crate::names::AgentName;
use crate::reservations::repository::Repository;
use crate::reservations::{Mode, Ttl};
use crate::storage::keys;
use crate::testing::{FakeHarnesses, FakeMachine, session_call, shell_call};
use crate::{Cleanup, DryRun, Limits, Mesh, Order, Others, Own, Parts, Reserve, Scope};

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

impl World {
    async fn holds(&self, owner: &str, pattern: &str) {
        let caller = self.mesh.identify(&shell_call(Some(owner))).await.expect("identified");
        let ask = Reserve {
            repository: Repository::named("/work"),
            patterns: vec![pattern.parse().expect("a pattern")],
            mode: Mode::Exclusive,
            ttl: Ttl::default(),
            reason: None,
            others: Others::Respect,
            own: Own::Keep,
        };
        self.mesh.reserve(&caller, ask).await.expect("reserved");
    }

    async fn ask_for(&self, to: &str, command: &str) {
        let caller = self.mesh.identify(&shell_call(None)).await.expect("identified");
        let order =
            Order { to: to.to_owned(), command: command.parse().expect("a command"), arguments: vec![], ttl: None };
        self.mesh.order(&caller, order).await.expect("ordered");
    }

    /// Cleans up; returns what was deleted.
    async fn clean_up(&self, scope: Scope, dry_run: DryRun) -> String {
        let Cleanup { reservations, commands, agents, segments: _, tally: _ } =
            self.mesh.clean_up(scope, dry_run, None).await.expect("cleanup");
        let mut words: Vec<String> = reservations.iter().map(|(_, one)| one.pattern.to_string()).collect();
        words.extend(commands.iter().map(crate::commands::Command::line));
        words.extend(agents.iter().map(|agent| agent.to_string()));
        words.join(" ")
    }

    async fn agents_here(&self) -> String {
        let all = self.mesh.agents().await.expect("readable");
        all.iter().map(|seen| seen.agent.name.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// The event log from a position to its end, as `event of whom`, and where it ended.
    async fn event_log_from(&self, mut from: Position) -> (Vec<String>, Position) {
        let mut told = Vec::new();
        loop {
            let stretch = self.mesh.event_log(from).await.expect("readable");
            assert_eq!(stretch.damage, 0);
            told.extend(stretch.events.iter().map(|event| {
                let whom = ["agent", "from"].iter().find_map(|field| event.details.get(*field)?.as_str());
                format!("{} {}", event.kind, whom.unwrap_or_default())
            }));
            from = stretch.next;
            if stretch.at_end {
                return (told, from);
            }
        }
    }
}

async fn world_of(agents: &[&str]) -> World {
    let world = World::new();
    for agent in agents {
        world.register(&shell_call(None), agent).await;
    }
    world
}

#[tokio::test]
async fn what_is_over_goes_and_what_holds_stays() {
    let world = world_of(&["alice", "bob"]).await;
    world.holds("alice", "old").await;
    world.ask_for("bob", "/expires").await;
    world.machine.pass(HOUR);
    world.holds("alice", "new").await;
    world.ask_for("bob", "/waits").await;
    assert_eq!(world.clean_up(Scope::Expired, DryRun::Yes).await, "old");
    assert_eq!(world.clean_up(Scope::Expired, DryRun::Yes).await, "old", "looking changes nothing");
    assert_eq!(world.clean_up(Scope::Expired, DryRun::No).await, "old");
    assert_eq!(world.clean_up(Scope::Expired, DryRun::No).await, "");
    world.machine.pass(HOUR - 1);
    assert_eq!(world.clean_up(Scope::Expired, DryRun::No).await, "", "a result can be read for an hour");
    world.machine.pass(1);
    assert_eq!(world.clean_up(Scope::Expired, DryRun::No).await, "new /expires");
}

#[tokio::test]
async fn a_command_that_was_taken_and_never_ended_goes_late() {
    let world = world_of(&["bob"]).await;
    world.ask_for("bob", "/slow").await;
    world.ask_for("bob", "/done").await;
    let bob = world.mesh.identify(&shell_call(Some("bob"))).await.expect("identified");
    for _ in 0..2 {
        let taken = world.mesh.take_command(&bob).await.expect("taken").expect("a command");
        if taken.line() == "/done" {
            world.mesh.finish_command(&bob, taken.id, Ended::Done, "").await.expect("ended");
        }
    }
    world.machine.pass(HOUR);
    assert_eq!(world.clean_up(Scope::Everything, DryRun::No).await, "/done");
    world.machine.pass(7 * DAY - HOUR - 1);
    assert_eq!(world.clean_up(Scope::Expired, DryRun::No).await, "");
    world.machine.pass(1);
    assert_eq!(world.clean_up(Scope::Expired, DryRun::No).await, "/slow");
}

/// The request alone counts as one that nobody took, and what became of it counts for nothing without the request.
#[tokio::test]
async fn what_became_of_a_command_is_deleted_before_its_request_and_not_before_it_expires() {
    let (one, other) = two().await;
    let alice = one.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
    let bob = other.mesh.identify(&shell_call(Some("bob"))).await.expect("identified");
    let ttl = Some(5 * HOUR);
    let command = "/build".parse().expect("a command");
    let order = Order { to: "bob".to_owned(), command, arguments: vec![], ttl };
    let id = one.mesh.order(&alice, order).await.expect("ordered").id;
    let taken = other.mesh.take_command(&bob).await.expect("taken").expect("a command");
    other.mesh.finish_command(&bob, taken.id, Ended::Done, "").await.expect("ended");
    for (hours, cleans, why) in
        [(2, &other, "it has not expired"), (4, &one, "bob's machine is first"), (0, &other, ""), (0, &one, "")]
    {
        for host in [&one, &other] {
            host.machine.pass(hours * HOUR);
        }
        cleans.mesh.clean_up(Scope::Expired, DryRun::No, None).await.expect("cleanup");
        let left = one.mesh.command(id).await.expect("asked").is_some();
        assert_eq!(left, !why.is_empty(), "{why}");
    }
}

#[tokio::test]
async fn a_damaged_record_of_a_command_s_recipient_keeps_nothing_else_from_being_deleted() {
    let (one, other) = two().await;
    let alice = one.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
    let bob = other.mesh.identify(&shell_call(Some("bob"))).await.expect("identified");
    let command = "/build".parse().expect("a command");
    let order = Order { to: "bob".to_owned(), command, arguments: vec![], ttl: None };
    let id = one.mesh.order(&alice, order).await.expect("ordered").id;
    let taken = other.mesh.take_command(&bob).await.expect("taken").expect("a command");
    other.mesh.finish_command(&bob, taken.id, Ended::Done, "").await.expect("ended");
    let key = keys::meta(&name("bob"));
    let kept = one.servers.get(&key).await.expect("read").expect("there");
    other.servers.swap(&key, Some(kept.revision), Some(b"7"), Durability::Process).await.expect("damaged");
    one.machine.pass(4 * HOUR);
    one.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleanup");
    assert!(one.mesh.command(id).await.expect("asked").is_some(), "who deletes first is not known");
}

#[tokio::test]
async fn an_agent_goes_only_where_nobody_misses_it() {
    let world = world_of(&["alice", "bob", "carol", "dave", "erin"]).await;
    world.register(&session_call("c1", "s1"), "frank").await;
    world.machine.start(7);
    world.hook_of("s1", "start", Some(7)).await;
    world.say("bob", "are you there?").await;
    world.machine.pass(7 * DAY - HOUR);
    world.holds("carol", "src").await;
    world.ask_for("dave", "/x").await;
    world.machine.pass(HOUR - 1);
    assert_eq!(world.clean_up(Scope::Everything, DryRun::Yes).await, "");
    world.machine.pass(1);
    // Carol was heard of an hour ago; dave's command has expired, so it counts as mail no more.
    assert_eq!(world.clean_up(Scope::Everything, DryRun::Yes).await, "src alice dave erin");
    world.holds("erin", "docs").await;
    assert_eq!(world.clean_up(Scope::Everything, DryRun::No).await, "src alice dave");
    assert_eq!(world.agents_here().await, "bob carol erin frank", "bob has mail, frank lives");
    assert_eq!(world.register(&shell_call(None), "alice").await, "alice new", "the name is free again");
}

#[tokio::test]
async fn mail_to_an_agent_that_went_is_there_for_the_next_one() {
    let world = world_of(&["alice"]).await;
    world.say("alice", "first").await;
    assert_eq!(world.fetch("alice").await, "first");
    world.machine.pass(7 * DAY);
    assert_eq!(world.clean_up(Scope::Everything, DryRun::No).await, "alice");
    assert_eq!(world.agents_here().await, "");
    world.register(&shell_call(None), "alice").await;
    assert_eq!(world.fetch("alice").await, "", "what was read stays read");
    world.say("alice", "second").await;
    assert_eq!(world.fetch("alice").await, "second");
}

#[tokio::test]
async fn the_event_log_keeps_every_event_once_and_in_order() {
    let world = world_of(&["alice", "bob"]).await;
    let (told, end) = world.event_log_from(Position::START).await;
    assert_eq!(told, ["registered alice", "registered bob"]);
    world.holds("alice", "src").await;
    world.say("bob", "hello").await;
    world.ask_for("bob", "/x").await;
    let (told, end) = world.event_log_from(end).await;
    assert_eq!(told, ["reserved alice", "sent shell", "commanded shell"]);
    let (told, _) = world.event_log_from(end).await;
    assert!(told.is_empty(), "{told:?}");
    let stretch = world.mesh.event_log(Position::START).await.expect("readable");
    let mut part_in: BTreeMap<&str, usize> = BTreeMap::new();
    for agent in ["alice", "bob", "shell"] {
        let who = if agent == "shell" { AgentName::shell() } else { name(agent) };
        part_in.insert(agent, stretch.events.iter().filter(|event| event.concerns(&who)).count());
    }
    assert_eq!(part_in, BTreeMap::from([("alice", 2), ("bob", 3), ("shell", 2)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_follower_of_an_event_log_that_rotates_misses_nothing() {
    const WRITERS: usize = 3;
    const EVENTS: usize = 600;
    let folder = tempfile::tempdir().expect("a folder");
    let process = || {
        // A segment holds some ten events.
        let options = FilesOptions { rotate_at: 1_000, ..FilesOptions::default() };
        let store: Arc<dyn Store> = Arc::new(FilesStore::open(folder.path(), options).expect("a store"));
        Mesh::new(Parts {
            shared: Arc::clone(&store),
            local: store,
            machine: Arc::new(FakeMachine::default()),
            harnesses: Arc::new(FakeHarnesses::default()),
            limits: Limits::default(),
        })
    };
    let follower = process();
    let following = tokio::spawn(async move {
        let mut watch = follower.watch_event_log().await.expect("watched");
        let mut numbers: Vec<Vec<u64>> = vec![Vec::new(); WRITERS];
        let mut from = Position::START;
        loop {
            let stretch = follower.event_log(from).await.expect("readable");
            assert_eq!(stretch.damage, 0);
            from = stretch.next;
            for event in stretch.events {
                let field = |name: &str| event.details[name].as_u64().expect("a number");
                numbers[usize::try_from(field("writer")).expect("a writer")].push(field("number"));
            }
            if numbers.iter().map(Vec::len).sum::<usize>() >= WRITERS * EVENTS {
                return numbers;
            }
            if stretch.at_end {
                watch.changed().await.expect("watched");
            }
        }
    });
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let mesh = process();
            tokio::spawn(async move {
                for number in 0..EVENTS {
                    mesh.core
                        .event_log
                        .note("counted", serde_json::json!({ "writer": writer, "number": number }))
                        .await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic");
    }
    let expected: Vec<u64> = (0..EVENTS as u64).collect();
    for (writer, numbers) in following.await.expect("no panic").into_iter().enumerate() {
        assert_eq!(numbers, expected, "every event of writer {writer}, once and in order");
    }
}
