//! What a hook carried is shown only by the harness's own evidence, and waits again if its session ends before.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{World, name};
use crate::Fetch;
use crate::messages::receipt::{DeliveryHistory, DeliveryStatus};
use crate::names::MessageId;
use crate::ports::harness::Verdict;
use crate::sessions::SessionRef;
use crate::testing::{session_call, shell_call};

async fn world_with_alice() -> World {
    let world = World::new();
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("c1", "s1"), "alice").await, "alice new");
    world
}

/// What a hook of a process showed, with whether it was marked as repeated.
async fn given(world: &World, did: &str, pid: u32) -> (String, bool) {
    let text = world.hook_of("s1", did, Some(pid)).await.stdout.unwrap_or_default();
    let bodies: Vec<&str> = text.lines().filter(|line| !line.starts_with('<')).collect();
    (bodies.join(" "), text.contains("repeated=\"perhaps\""))
}

fn says(world: &World, verdicts: Option<Vec<(MessageId, Verdict)>>) {
    *world.harnesses.0.evidence.lock().expect("no test panics while it holds this") = verdicts;
}

#[tokio::test]
async fn the_natural_end_of_a_turn_shows_what_its_hooks_carried() {
    for did in ["prompt", "tool"] {
        let world = world_with_alice().await;
        let id = world.say("alice", "hello").await;
        assert_eq!(given(&world, did, 1).await, ("hello".to_owned(), false));
        assert_eq!(world.history(id).await, format!("stored, notified by wake-file, accepted by hook:{did}"));
        assert_eq!(world.fetch("alice").await, "", "it is the session's");
        world.hook("s1", "stop").await;
        let shown = format!("stored, notified by wake-file, accepted by hook:{did}, shown by hook:{did}");
        assert_eq!(world.history(id).await, shown);
    }
}

#[tokio::test]
async fn a_start_ends_no_turn() {
    let world = world_with_alice().await;
    let id = world.say("alice", "hello").await;
    world.hook("s1", "tool").await;
    world.hook("s1", "compact").await;
    assert_eq!(world.history(id).await, "stored, notified by wake-file, accepted by hook:tool");
}

#[tokio::test]
async fn what_an_ended_session_was_given_waits_again_marked_as_repeated() {
    let world = world_with_alice().await;
    let id = world.say("alice", "hello").await;
    world.hook("s1", "prompt").await;
    world.hook("s1", "end").await;
    let fetched = world.mesh.fetch(&name("alice"), &Fetch::default()).await.expect("fetched");
    let again: Vec<bool> = fetched.messages.iter().map(|fetched| fetched.history.may_repeat()).collect();
    assert_eq!(again, [true]);
    world.mesh.confirm(&fetched.lease.expect("a lease"), DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
    let history = "stored, notified by wake-file, accepted by hook:prompt, read by fetch";
    assert_eq!(world.history(id).await, history);
}

#[tokio::test]
async fn what_a_killed_session_was_given_is_given_again_when_it_resumes() {
    let world = world_with_alice().await;
    world.say("alice", "hello").await;
    assert_eq!(given(&world, "tool", 1).await, ("hello".to_owned(), false));
    world.machine.kill(1);
    world.hook_of("s1", "resume", Some(2)).await;
    assert_eq!(given(&world, "prompt", 2).await, ("hello".to_owned(), true));
    assert_eq!(given(&world, "stop", 2).await, (String::new(), false), "the turn ended by itself");
    assert_eq!(world.fetch("alice").await, "");
}

/// A process goes on after the end of its session: with another one, or with none.
#[tokio::test]
async fn a_session_that_ended_in_one_process_and_then_in_another_is_over() {
    let world = world_with_alice().await;
    world.hook("s1", "end").await;
    let id = world.say("alice", "hello").await;
    world.machine.start(2);
    world.hook_of("s1", "resume", Some(2)).await;
    assert_eq!(given(&world, "prompt", 2).await, ("hello".to_owned(), false));
    world.hook_of("s1", "end", Some(2)).await;
    assert_eq!(world.fetch("alice").await, "hello", "no request held it, and the first process shows another session");
    assert!(world.history(id).await.ends_with("read by fetch"));
}

#[tokio::test]
async fn evidence_counts_for_what_it_names_and_the_end_of_a_turn_for_nothing_beside_it() {
    let world = world_with_alice().await;
    let first = world.say("alice", "first").await;
    let second = world.say("alice", "second").await;
    let third = world.say("alice", "third").await;
    world.hook("s1", "tool").await;
    says(&world, Some(vec![(first, Verdict::Shown), (second, Verdict::Lost)]));
    assert_eq!(given(&world, "stop", 1).await, ("second".to_owned(), true));
    assert!(world.history(first).await.ends_with("shown by hook:tool"));
    assert!(world.history(third).await.ends_with("accepted by hook:tool"), "nothing is known of it");
    says(&world, Some(vec![(third, Verdict::Shown), (second, Verdict::Shown)]));
    world.hook("s1", "tool").await;
    assert!(world.history(third).await.ends_with("shown by hook:tool"));
    assert!(world.history(second).await.ends_with("shown by hook:stop"), "by the hook that carried it last");
}

/// Fetches as a session's model does, by a tool.
async fn fetched_by(world: &World, session: &str) -> String {
    let fetched = world.mesh.fetch(&name("alice"), &Fetch::default()).await.expect("fetched");
    if let Some(lease) = &fetched.lease {
        let by = SessionRef { harness: "fake".to_owned(), id: session.to_owned() };
        world.mesh.fetched(lease, Some(&by)).await.expect("noted");
    }
    fetched.messages.iter().map(|fetched| fetched.message.body.as_str()).collect::<Vec<_>>().join(" ")
}

async fn history(world: &World, id: MessageId) -> DeliveryHistory {
    let person = world.mesh.identify(&shell_call(None)).await.expect("identified");
    let status = world.mesh.message_status(&person, id).await.expect("known");
    status.recipients[0].history.clone()
}

#[tokio::test]
async fn what_a_killed_session_had_fetched_waits_again_unless_its_turn_had_ended() {
    for ends in [false, true] {
        let world = world_with_alice().await;
        world.hook("s1", "prompt").await;
        let id = world.say("alice", "hello").await;
        assert_eq!(fetched_by(&world, "s1").await, "hello");
        assert!(world.history(id).await.ends_with("read by fetch"));
        assert!(!history(&world, id).await.is_settled(), "no request is known to have held it");
        assert_eq!(world.fetch("alice").await, "", "it is the session's");
        if ends {
            world.hook("s1", "stop").await;
            assert!(history(&world, id).await.is_settled());
        }
        world.machine.kill(1);
        world.hook_of("s1", "resume", Some(2)).await;
        let again = given(&world, "prompt", 2).await;
        assert_eq!(again, if ends { (String::new(), false) } else { ("hello".to_owned(), true) });
        assert!(world.history(id).await.contains("read by fetch"), "no status is taken back");
    }
}

#[tokio::test]
async fn what_a_client_fetches_that_tells_of_no_turn_is_read_at_once() {
    let world = world_with_alice().await;
    let id = world.say("alice", "hello").await;
    assert_eq!(fetched_by(&world, "s1").await, "hello");
    assert!(history(&world, id).await.is_settled());
}

#[tokio::test]
async fn what_was_fetched_and_acknowledged_is_settled() {
    let world = world_with_alice().await;
    world.hook("s1", "prompt").await;
    let id = world.say("alice", "hello").await;
    fetched_by(&world, "s1").await;
    world.mesh.acknowledge(&name("alice"), &[id]).await.expect("acknowledged");
    world.machine.kill(1);
    assert!(history(&world, id).await.is_settled());
    assert_eq!(world.fetch("alice").await, "");
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Send,
    Hook(&'static str),
    /// A model request holds all that stands in the conversation.
    Request,
    Kill,
    Resume,
    /// Another session goes on in the window, with an empty conversation.
    Clear,
    /// Another session begins beside it, with what stands in the conversation.
    Fork,
    Fetch,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Send),
        4 => prop_oneof![Just("prompt"), Just("tool"), Just("stop")].prop_map(Act::Hook),
        3 => Just(Act::Request),
        1 => Just(Act::Hook("end")),
        1 => Just(Act::Hook("interrupt")),
        1 => Just(Act::Clear),
        1 => Just(Act::Fork),
        1 => Just(Act::Kill),
        2 => Just(Act::Resume),
        2 => Just(Act::Fetch),
    ]
}

/// A session that is killed, ended, interrupted, cleared, forked and resumed at any time, and whose transcript is the
/// evidence.
async fn no_message_is_neither_shown_nor_waiting(acts: Vec<Act>) {
    let world = world_with_alice().await;
    let mut pid = 1;
    let mut alive = true;
    let (mut session, mut sessions) = ("s1".to_owned(), 1);
    // How often each message came into the conversation, and whether a request held it.
    let mut sent: BTreeMap<MessageId, (u32, bool)> = BTreeMap::new();
    // What stands in the conversation and in no request yet, and whether a tool gave it.
    let mut in_conversation: Vec<(MessageId, bool)> = Vec::new();
    let mut sequence: Vec<MessageId> = Vec::new();
    // In which order requests first held what one sender wrote.
    let mut order: Vec<MessageId> = Vec::new();
    for act in acts {
        let evidence = sent.iter().filter(|(_, (_, read))| *read).map(|(id, _)| (*id, Verdict::Shown)).collect();
        says(&world, Some(evidence));
        // A model calls tools in answer to a request, and a turn ends by itself only after one with what its tools gave.
        let requests = match act {
            Act::Request | Act::Fetch => true,
            Act::Hook("stop") => in_conversation.iter().any(|(_, by_tool)| *by_tool),
            _ => false,
        };
        if alive && requests {
            for (id, _) in in_conversation.drain(..) {
                sent.entry(id).and_modify(|(_, read)| *read = true);
                if !order.contains(&id) {
                    order.push(id);
                }
            }
        }
        match act {
            Act::Send => {
                let id = world.say("alice", "x").await;
                sent.insert(id, (0, false));
                sequence.push(id);
            }
            Act::Hook(did) if alive => {
                let text = world.hook_of(&session, did, Some(pid)).await.stdout.unwrap_or_default();
                for line in text.lines() {
                    for (id, (times, _)) in sent.iter_mut().filter(|(id, _)| line.contains(&id.to_string())) {
                        assert_eq!(*times > 0, line.contains("repeated"), "{line}");
                        *times += 1;
                        in_conversation.push((*id, false));
                    }
                }
                if did == "end" {
                    (alive, in_conversation) = (false, Vec::new());
                }
            }
            Act::Kill if alive => {
                world.machine.kill(pid);
                (alive, in_conversation) = (false, Vec::new());
            }
            Act::Resume if !alive => {
                pid += 1;
                alive = true;
                world.machine.start(pid);
                world.hook_of(&session, "resume", Some(pid)).await;
            }
            Act::Clear if alive => {
                let before = std::mem::replace(&mut session, format!("s{}", sessions + 1));
                sessions += 1;
                world.hook_of(&session, &format!("clear:{before}"), Some(pid)).await;
                in_conversation.clear();
            }
            Act::Fork => {
                sessions += 1;
                let fork = world.hook_of(&format!("f{sessions}"), "start", Some(1_000 + sessions)).await;
                assert_eq!(fork.stdout, None, "a fork gets nobody's mail");
            }
            Act::Fetch => {
                let fetched = world.mesh.fetch(&name("alice"), &Fetch::default()).await.expect("fetched");
                let by = alive.then(|| SessionRef { harness: "fake".to_owned(), id: session.clone() });
                if let Some(lease) = &fetched.lease {
                    world.mesh.fetched(lease, by.as_ref()).await.expect("noted");
                }
                for message in &fetched.messages {
                    let id = message.message.id;
                    let (times, read) = sent.get_mut(&id).expect("it was sent");
                    assert_eq!(*times > 0, message.history.may_repeat(), "{id}");
                    *times += 1;
                    // Of a client that tells of no turn there is no other evidence than that it has the reply.
                    *read |= history(&world, id).await.is_settled();
                    if *read && !order.contains(&id) {
                        order.push(id);
                    }
                    if alive {
                        in_conversation.push((id, true));
                    }
                }
            }
            Act::Hook(_) | Act::Request | Act::Kill | Act::Resume | Act::Clear => {}
        }
        for (id, (_, read)) in &sent {
            let history = history(&world, *id).await;
            assert!(*read || !history.is_settled(), "nobody has read {id}: {history:?}");
        }
    }
    // In the end everything that no request held comes once more.
    let evidence = sent.iter().filter(|(_, (_, read))| *read).map(|(id, _)| (*id, Verdict::Shown)).collect();
    says(&world, Some(evidence));
    world.machine.kill(pid);
    world.machine.start(pid + 1);
    world.hook_of(&session, "resume", Some(pid + 1)).await;
    let mut left: Vec<MessageId> = Vec::new();
    loop {
        let fetched = world.mesh.fetch(&name("alice"), &Fetch::default()).await.expect("fetched");
        let Some(lease) = &fetched.lease else { break };
        left.extend(fetched.messages.iter().map(|fetched| fetched.message.id));
        world.mesh.confirm(lease, DeliveryStatus::Read, "fetch", None).await.expect("confirmed");
    }
    for (id, (_, read)) in &sent {
        assert!(*read || left.contains(id), "{id} is neither shown nor waiting");
    }
    let place = |id: &MessageId| sequence.iter().position(|sent| sent == id);
    assert!(order.is_sorted_by_key(place), "what one sender wrote was shown in another order: {order:?}");
    assert!(left.is_sorted_by_key(place), "what one sender wrote waits in another order: {left:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_session_may_do_what_it_likes(acts in proptest::collection::vec(act(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(no_message_is_neither_shown_nor_waiting(acts));
    }
}
