//! What sessions that nobody drives do in their turns, as events of the event log, by their harness's hooks alone.

use store::Position;

use super::World;
use crate::testing::session_call;
use crate::turns::{Actor, TurnEvent};

/// The kinds of the events of turns, in order, with the file of each that has one.
async fn told(world: &World) -> String {
    let stretch = world.mesh.event_log(Position::START).await.expect("readable");
    let kinds = ["turn-", "file-", "needs-", "ended", "item-", "shell-", "spawned"];
    let of_turns = stretch.events.iter().filter(|event| kinds.iter().any(|kind| event.kind.starts_with(kind)));
    let word = |event: &crate::Event| match event.details.get("path").and_then(serde_json::Value::as_str) {
        Some(path) => format!("{} {path}", event.kind),
        None => event.kind.clone(),
    };
    of_turns.map(word).collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn a_turn_is_told_once_from_its_beginning_to_its_end() {
    let world = World::new();
    for did in ["start", "prompt", "tool", "ask", "ask", "tool", "stop", "stop", "prompt", "interrupt", "end"] {
        world.hook("s1", did).await;
    }
    let expected = "turn-started, needs-input, turn-completed, turn-started, turn-failed, ended";
    assert_eq!(told(&world).await, expected);
    let stretch = world.mesh.event_log(Position::START).await.expect("readable");
    let first = stretch.events.iter().find(|event| event.kind == "turn-started").expect("it began");
    assert_eq!(first.details["session"], "s1");
    assert_eq!((&first.details["harness"], &first.details["folder"]), (&"fake".into(), &"/work".into()));
    assert!(!first.details.contains_key("agent"), "it has not joined");
}

#[tokio::test]
async fn a_turn_that_mail_keeps_going_has_not_ended() {
    let world = World::new();
    world.hook("s1", "start").await;
    assert_eq!(world.register(&session_call("s1", "s1"), "alice").await, "alice new");
    world.hook("s1", "prompt").await;
    world.say("alice", "one more thing").await;
    assert!(world.shown("s1", "stop").await.contains("one more thing"));
    assert_eq!(told(&world).await, "turn-started");
    world.hook("s1", "stop").await;
    assert_eq!(told(&world).await, "turn-started, turn-completed");
}

#[tokio::test]
async fn a_file_has_changed_once_it_is_another_one_and_not_when_it_is_announced() {
    let world = World::new();
    world.machine.mark_folder("/work/a.rs", "as it was");
    for did in ["start", "prompt", "edit:a.rs", "edit:/work/new.rs", "tool"] {
        world.hook("s1", did).await;
    }
    assert_eq!(told(&world).await, "turn-started", "nothing was written yet");
    world.machine.mark_folder("/work/a.rs", "as it is");
    world.hook("s1", "tool").await;
    world.machine.mark_folder("/work/new.rs", "new");
    world.hook("s1", "stop").await;
    let expected = "turn-started, file-changed /work/a.rs, file-changed /work/new.rs, turn-completed";
    let heard = told(&world).await;
    assert!(heard == expected || heard.ends_with("turn-completed, file-changed /work/new.rs"), "{heard}");
    // What was announced in a turn that is over is forgotten.
    world.hook("s1", "prompt").await;
    world.hook("s1", "edit:a.rs").await;
    world.hook("s1", "stop").await;
    world.machine.mark_folder("/work/a.rs", "by somebody else");
    world.hook("s1", "prompt").await;
    assert_eq!(told(&world).await.matches("/work/a.rs").count(), 1);
}

#[tokio::test]
async fn subagents_and_driven_sessions_are_told_otherwise() {
    let world = World::new();
    for did in ["start", "prompt", "stop"] {
        world.hook("s1.a", did).await;
    }
    assert_eq!(told(&world).await, "", "its root session's turn goes on");
}

#[tokio::test]
async fn a_line_is_short_whatever_happened() {
    let world = World::new();
    let session = crate::sessions::SessionRef { harness: "fake".to_owned(), id: "s1".to_owned() };
    let actor = Actor { agent: None, session, folder: "/work".to_owned() };
    let long = "ü".repeat(100_000);
    for event in [
        TurnEvent::ShellCommand { command: long.clone(), succeeded: true },
        TurnEvent::ItemStarted { item: "tool", text: long.clone() },
        TurnEvent::TurnCompleted { text: Some(long.clone()), left_out: 3 },
        TurnEvent::FileChanged { path: long },
    ] {
        world.mesh.note_turn_event(&actor, &event).await;
    }
    let stretch = world.mesh.event_log(Position::START).await.expect("readable");
    assert_eq!(stretch.events.len(), 3, "a path that is no path is left out");
    for event in &stretch.events {
        assert!(serde_json::to_string(&event.details).expect("JSON").len() < 700, "{event:?}");
    }
    assert_eq!(stretch.events[2].details["left_out"], 3);
}
