//! Commands: each is taken once and ends once, whatever happens in between.

use std::sync::Arc;

use store::memory::{Fault, Tail};

use super::{World, name};
use crate::commands::{Command, CommandName, CommandStatus, Ended};
use crate::names::MessageId;
use crate::testing::{call, shell_call};
use crate::{Order, OrderError};

fn order(line: &str) -> Order {
    let mut words = line.split(' ').map(str::to_owned);
    let command = words.next().unwrap_or_default().parse().expect("a command");
    Order { to: "bob".to_owned(), command, arguments: words.collect(), ttl: None }
}

impl World {
    async fn order(&self, line: &str) -> MessageId {
        let caller = self.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
        self.mesh.order(&caller, order(line)).await.expect("ordered").id
    }

    async fn take(&self) -> Option<Command> {
        let caller = self.mesh.identify(&shell_call(Some("bob"))).await.expect("identified");
        self.mesh.take_command(&caller).await.expect("taken or none")
    }

    async fn confirm(&self, id: MessageId) {
        self.mesh.confirm_command(id).await.expect("stored");
    }

    /// The command line that is taken, or nothing.
    async fn take_line(&self) -> String {
        self.take().await.map(|command| command.line()).unwrap_or_default()
    }

    async fn finish(&self, who: &str, id: MessageId, result: &str) -> String {
        let caller = self.mesh.identify(&shell_call(Some(who))).await.expect("identified");
        match self.mesh.finish_command(&caller, id, Ended::Done, result).await {
            Ok(command) => command.standing(command.created).as_str().to_owned(),
            Err(error) => error.to_string(),
        }
    }

    async fn standings(&self) -> String {
        let all = self.mesh.commands(None).await.expect("readable");
        let now = crate::ports::machine::Machine::now(self.machine.as_ref());
        all.iter().map(|one| format!("{} {}", one.line(), one.standing(now).as_str())).collect::<Vec<_>>().join(", ")
    }
}

async fn alice_and_bob() -> World {
    let world = World::new();
    for agent in ["alice", "bob"] {
        world.register(&shell_call(None), agent).await;
    }
    world
}

#[tokio::test]
async fn a_command_is_taken_once_and_ends_once() {
    let world = alice_and_bob().await;
    let first = world.order("/review src main").await;
    world.machine.pass(1);
    world.order("/test").await;
    assert_eq!(world.finish("bob", first, "").await, format!("command `{first}` has not been taken"));
    assert_eq!(world.take_line().await, "/review src main", "the oldest comes first");
    assert_eq!(world.take_line().await, "/test");
    assert_eq!(world.take_line().await, "");
    assert_eq!(world.finish("alice", first, "").await, format!("you have no command `{first}`"));
    assert_eq!(world.finish("bob", first, "fine").await, "done");
    assert_eq!(world.finish("bob", first, "not fine").await, format!("command `{first}` has already ended"));
    assert_eq!(world.standings().await, "/review src main done, /test running");
}

#[tokio::test]
async fn what_nobody_takes_expires() {
    let world = alice_and_bob().await;
    world.order("/review").await;
    world.machine.pass(3_599_999);
    world.order("/later").await;
    world.machine.pass(1);
    assert_eq!(world.standings().await, "/review expired, /later pending");
    assert_eq!(world.take_line().await, "/later");
    assert_eq!(world.take_line().await, "");
}

#[tokio::test]
async fn whoever_waits_hears_how_it_ended() {
    let world = alice_and_bob().await;
    let id = world.order("/review").await;
    let waiting = tokio::spawn({
        let other = world.another_process();
        async move { other.mesh.command_ended(id).await.expect("readable").expect("it is there") }
    });
    tokio::task::yield_now().await;
    world.take().await;
    world.finish("bob", id, "three remarks").await;
    let ended = waiting.await.expect("no panic");
    assert_eq!(ended.standing(ended.created), CommandStatus::Done);
    assert!(format!("{:?}", ended.stage).contains("three remarks"));
}

#[tokio::test]
async fn what_is_no_command_is_refused() {
    let world = alice_and_bob().await;
    for text in ["review", "/", "/a b", "/é", "", &format!("/{}", "x".repeat(64))] {
        assert!(text.parse::<CommandName>().is_err(), "{text}");
    }
    let caller = world.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
    let refused = async |order| world.mesh.order(&caller, order).await.expect_err("refused").to_string();
    assert_eq!(refused(Order { to: "nobody".to_owned(), ..order("/x") }).await, "no agent named `nobody` has joined");
    assert_eq!(
        refused(Order { arguments: vec!["x".repeat(9_000)], ..order("/x") }).await,
        "the arguments have 9000 bytes and may have 8192"
    );
    for ttl in [0, 999, 7 * 24 * 3_600_000 + 1] {
        let error = refused(Order { ttl: Some(ttl), ..order("/x") }).await;
        assert_eq!(error, "a command can wait between a second and a week to be taken");
    }
    let stranger = world.mesh.identify(&call("c9")).await.expect("identified");
    assert!(matches!(world.mesh.order(&stranger, order("/x")).await, Err(OrderError::NotRegistered)));
    assert_eq!(world.standings().await, "");
}

#[tokio::test]
async fn a_clock_that_jumps_costs_no_command() {
    let world = alice_and_bob().await;
    world.order("/one").await;
    world.machine.go_back(7_200_000);
    assert_eq!(world.take_line().await, "/one", "back: it has not been asked for yet, and waits all the same");
    let id = world.order("/two").await;
    // The clock goes ahead and back again: while it seemed too late no agent took the command, and it stayed.
    world.machine.pass(3_600_000);
    assert_eq!(world.take_line().await, "");
    world.mesh.clean_up(crate::Scope::Everything, crate::DryRun::No, None).await.expect("cleanup");
    world.machine.go_back(3_600_000);
    assert_eq!(world.take_line().await, "/two");
    world.machine.go_back(86_400_000);
    assert_eq!(world.finish("bob", id, "fine").await, "done", "it ends, though before it began");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_those_who_race_for_a_command_one_takes_it() {
    let world = Arc::new(alice_and_bob().await);
    for number in 0..20 {
        world.order(&format!("/run {number}")).await;
        world.machine.pass(1);
    }
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let taker = world.another_process();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                while let Some(command) = taker.take().await {
                    mine.push(command.line());
                }
                mine
            })
        })
        .collect();
    let mut taken = Vec::new();
    for taker in takers {
        taken.extend(taker.await.expect("no panic"));
    }
    taken.sort();
    let mut expected: Vec<String> = (0..20).map(|number| format!("/run {number}")).collect();
    expected.sort();
    assert_eq!(taken, expected, "each is taken once");
}

#[tokio::test]
async fn what_was_answered_outlasts_every_fault() {
    for fault in [Fault::Fail, Fault::FailToSync, Fault::Tear] {
        for nth in 1..=6 {
            for tail in [Tail::Lost, Tail::Kept] {
                let world = alice_and_bob().await;
                let alice = world.mesh.identify(&shell_call(Some("alice"))).await.expect("identified");
                let bob = world.mesh.identify(&shell_call(Some("bob"))).await.expect("identified");
                world.store.fail_at(nth, fault);
                let ordered = world.mesh.order(&alice, order("/x")).await.is_ok();
                let taken = matches!(world.mesh.take_command(&bob).await, Ok(Some(_)));
                let after = World { store: Arc::new(world.store.crash(tail)), ..world }.another_process();
                let all = after.mesh.commands(Some(&name("bob"))).await.expect("readable");
                let case = format!("{fault:?} at {nth}, {tail:?}");
                assert!(!ordered || all.len() == 1, "{case}: what was answered is there");
                let again = after.mesh.take_command(&bob).await.expect("taken or none");
                // A command was taken although its sender's sync failed: its sender was not told that it is safe.
                assert!(!(ordered && taken) || again.is_none(), "{case}: it is not taken twice");
            }
        }
    }
}

#[tokio::test]
async fn a_command_whose_taker_is_killed_ends_as_failed() {
    let world = alice_and_bob().await;
    world.order("/lost").await;
    let taken = world.take().await.expect("taken");
    world.machine.pass(59_999);
    assert_eq!(world.standings().await, "/lost running");
    world.machine.pass(1);
    assert_eq!(world.standings().await, "/lost failed");
    assert_eq!(world.take_line().await, "", "it may have been begun, so it is not given to another taker");
    let now = crate::ports::machine::Machine::now(world.machine.as_ref());
    let ended = world.mesh.command_ended(taken.id).await.expect("readable").expect("there");
    let result = ended.result(now).unwrap_or_default();
    assert!(result.contains("before it could hand it over"), "{result}");
    // The taker lives after all: what it reports counts.
    assert_eq!(world.finish("bob", taken.id, "fine").await, "done");
}

#[tokio::test]
async fn a_command_that_reached_its_taker_runs_for_as_long_as_it_takes() {
    let world = alice_and_bob().await;
    world.order("/long").await;
    let taken = world.take().await.expect("taken");
    world.confirm(taken.id).await;
    world.machine.pass(600_000);
    assert_eq!(world.standings().await, "/long running");
    world.mesh.give_command_back(taken.id).await.expect("stored");
    assert_eq!(world.standings().await, "/long running", "too late to give it back");
}

#[tokio::test]
async fn a_command_that_could_not_be_handed_over_is_taken_again() {
    let world = alice_and_bob().await;
    world.order("/again").await;
    let taken = world.take().await.expect("taken");
    world.mesh.give_command_back(taken.id).await.expect("stored");
    assert_eq!(world.standings().await, "/again pending");
    assert_eq!(world.take_line().await, "/again");
}
