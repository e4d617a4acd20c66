//! Event hooks over the store: each event once for each hook, also if a process is killed in between; and what they send.

use std::collections::BTreeMap;

use store::Durability;

use super::{World, draft, name};
use crate::event_hooks::{
    EventHook, HookAction, HookTrigger, Invocation, InvocationStage, MOST_PER_MINUTE, Occurrence,
};
use crate::ports::machine::{Instant, Machine as _};
use crate::testing::{session_call, shell_call};
use crate::{DryRun, Limits, LoopLimits, RecordKind, Scope};

fn hook(id: &str, on: HookTrigger) -> EventHook {
    EventHook {
        id: id.to_owned(),
        on,
        agent: None,
        harness: None,
        matches: None,
        action: HookAction::Notify,
        timeout: 0,
        secret: None,
        since: Instant(0),
    }
}

async fn taken(world: &World, hooks: &[EventHook]) -> Vec<Invocation> {
    let kept = world.mesh.hook_invocations().await.expect("listed");
    let mut reader = world.mesh.hook_reader(hooks, &kept).await.expect("readable");
    reader.take(&world.mesh, hooks, &BTreeMap::new()).await.expect("taken")
}

#[tokio::test]
async fn what_happened_while_nobody_looked_is_taken_once_whoever_looks() {
    let world = World::new();
    let hooks = [hook("h1", HookTrigger::Message), hook("h2", HookTrigger::Message)];
    world.joined("alice").await;
    world.say("alice", "one").await;
    let mut reader = world.mesh.hook_reader(&hooks, &[]).await.expect("readable");
    let new = reader.take(&world.mesh, &hooks, &BTreeMap::new()).await.expect("taken");
    assert_eq!(new.iter().map(|one| one.hook.as_str()).collect::<Vec<_>>(), ["h1", "h2"]);
    assert!(reader.take(&world.mesh, &hooks, &BTreeMap::new()).await.expect("taken").is_empty());
    // A process that was killed after it made them, and before it noted how far it was.
    let other = world.another_process();
    crate::storage::records::update(
        other.mesh.core.local.as_ref(),
        &crate::storage::keys::hook_cursor(),
        Durability::Process,
        |_: Option<store::Position>| (crate::storage::records::Next::Remove, ()),
    )
    .await
    .expect("removed");
    assert!(taken(&other, &hooks).await.is_empty(), "each is made once");
    assert_eq!(other.mesh.hook_invocations().await.expect("listed").len(), 2);
    world.say("alice", "two").await;
    assert_eq!(taken(&other, &hooks).await.len(), 2);
    // A new hook is for nothing that happened before.
    let late = EventHook { since: world.machine.now().plus(1), ..hook("h3", HookTrigger::Message) };
    assert!(taken(&world, &[late]).await.is_empty());
}

#[tokio::test]
async fn a_hook_that_is_for_too_much_is_passed_over_and_says_so() {
    let world = World::new();
    let hooks = [hook("h1", HookTrigger::Message)];
    world.joined("alice").await;
    for number in 0..MOST_PER_MINUTE + 7 {
        world.say("alice", &format!("message {number}")).await;
    }
    assert_eq!(taken(&world, &hooks).await.len(), MOST_PER_MINUTE);
    let all = world.mesh.hook_invocations().await.expect("listed");
    let skipped: Vec<u64> = all
        .iter()
        .filter_map(|one| match one.stage {
            InvocationStage::Skipped { count, .. } => Some(count),
            _ => None,
        })
        .collect();
    assert_eq!(skipped, [7]);
}

/// The process that begins to carry hooks out has read them already.
#[tokio::test]
async fn a_reader_counts_the_records_that_it_is_given_and_reads_none_itself() {
    let world = World::new();
    let hooks = [hook("h1", HookTrigger::Message)];
    world.joined("alice").await;
    for number in 0..MOST_PER_MINUTE {
        world.say("alice", &format!("message {number}")).await;
    }
    assert_eq!(taken(&world, &hooks).await.len(), MOST_PER_MINUTE);
    let kept = world.mesh.hook_invocations().await.expect("listed");
    let none: &[Invocation] = &[];
    for (kept, expected) in [(none, 1), (kept.as_slice(), 0)] {
        world.say("alice", "one more").await;
        let mut reader = world.mesh.hook_reader(&hooks, kept).await.expect("readable");
        let new = reader.take(&world.mesh, &hooks, &BTreeMap::new()).await.expect("taken");
        assert_eq!(new.len(), expected);
    }
}

#[tokio::test]
async fn records_that_are_over_are_deleted_and_those_that_failed_a_week_later() {
    const DAY: u64 = 24 * 3_600_000;
    let world = World::new();
    let hooks = [hook("h1", HookTrigger::Message)];
    world.joined("alice").await;
    for body in ["one", "two", "three"] {
        world.say("alice", body).await;
    }
    let ids: Vec<String> = taken(&world, &hooks).await.into_iter().map(|one| one.id).collect();
    let at = world.machine.now();
    let stages = [
        InvocationStage::Done { at, told: "exit 0".to_owned() },
        InvocationStage::Failed { at, tries: 5, why: "it does not answer".to_owned() },
    ];
    for (id, stage) in ids.iter().zip(stages) {
        world.mesh.note_invocation(id, stage, Durability::Process).await.expect("noted");
    }
    let left = async || {
        let outcome = world.mesh.clean_up(Scope::Everything, DryRun::No, None).await.expect("cleaned up");
        let deleted = outcome.tally.amounts.get(&RecordKind::HookInvocations).map_or(0, |amount| amount.count);
        (deleted, world.mesh.hook_invocations().await.expect("listed").len())
    };
    assert_eq!(left().await, (0, 3));
    world.machine.pass(2 * DAY);
    assert_eq!(left().await, (1, 2));
    world.machine.pass(6 * DAY);
    assert_eq!(left().await, (1, 1), "what is still to be done stays");
}

#[tokio::test]
async fn hooks_cannot_make_agents_wake_each_other_for_ever() {
    let limits = Limits { loops: LoopLimits { hops: 3, ..LoopLimits::default() }, ..Limits::default() };
    let world = World::with(limits);
    for (session, agent) in [("s1", "alice"), ("s2", "bob")] {
        world.hook(session, "start").await;
        world.register(&session_call(session, session), agent).await;
    }
    let (mut from, mut to) = (("s1", "alice"), ("s2", "bob"));
    world.hook(from.0, "prompt").await;
    world.hook(from.0, "stop").await;
    let mut held = Vec::new();
    for round in 0..6 {
        let serde_json::Value::Object(details) = serde_json::json!({ "agent": from.1 }) else { panic!("fields") };
        let event = Occurrence { at: world.machine.now(), on: HookTrigger::TurnCompleted, details };
        let told = draft(&format!("{} has ended its turn {round}", from.1));
        let sent = world.mesh.send_for_hook("h1", &event, to.1, told).await.expect("sent");
        held.push(sent.recipients[0].held.is_some());
        world.hook(to.0, "tool").await;
        world.fetch(to.1).await;
        world.hook(to.0, "stop").await;
        std::mem::swap(&mut from, &mut to);
    }
    assert_eq!(held, [false, false, false, false, true, true], "as messages that agents send themselves");
}

/// An agent that is told what a review came to asks for the next one, and so on.
#[tokio::test]
async fn reports_of_reviews_cannot_wake_the_agent_that_asks_for_them_for_ever() {
    let limits = Limits { loops: LoopLimits { hops: 3, ..LoopLimits::default() }, ..Limits::default() };
    let world = World::with(limits);
    world.hook("s1", "start").await;
    world.register(&session_call("s1", "s1"), "alice").await;
    world.hook("s1", "prompt").await;
    world.hook("s1", "stop").await;
    let (alice, to) = (name("alice"), ["alice".to_owned()]);
    let mut held = Vec::new();
    for round in 0..6 {
        let report = draft(&format!("review {round} has ended"));
        let sent = world.mesh.send_for_review("R1", Some(&alice), &to, report).await.expect("sent");
        held.push(sent.recipients[0].held.is_some());
        world.hook("s1", "tool").await;
        world.fetch("alice").await;
        world.hook("s1", "stop").await;
    }
    assert!(!held[0] && held[5], "{held:?}");
    let sent = world.mesh.send_for_review("R2", None, &to, draft("what the user asked for")).await.expect("sent");
    assert!(sent.recipients[0].held.is_none(), "of the user's own review");
}

#[tokio::test]
async fn a_hook_tells_a_channel_and_sets_off_no_hook_itself() {
    let world = World::new();
    for agent in ["alice", "bob"] {
        world.joined(agent).await;
        world.mesh.join_channel(&name(agent), &"#audit".parse().expect("a name")).await.expect("joined");
    }
    let serde_json::Value::Object(details) = serde_json::json!({ "agent": "carol" }) else { panic!("fields") };
    let event = Occurrence { at: world.machine.now(), on: HookTrigger::CommandRun, details };
    let draft = crate::messages::Draft { idempotency_key: Some("hook-1".to_owned()), ..draft("carol ran ls") };
    let sent = world.mesh.send_for_hook("h1", &event, "#audit", draft.clone()).await.expect("sent");
    assert_eq!(sent.recipients.len(), 2);
    // It is tried again after a kill.
    world.mesh.send_for_hook("h1", &event, "#audit", draft).await.expect("sent");
    assert_eq!((world.fetch("alice").await, world.fetch("bob").await), ("carol ran ls".into(), "carol ran ls".into()));
    assert!(taken(&world, &[hook("h2", HookTrigger::Message)]).await.is_empty());
    world.send(&shell_call(None), "#audit", super::draft("by hand")).await.expect("sent");
    assert_eq!(taken(&world, &[hook("h2", HookTrigger::Message)]).await.len(), 1);
}
