//! `driver` over the interface: what a component chooses becomes a command line of its manifest's words, what it is told
//! and says arrives whole, and an answer without measure is refused.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::Stage;
use mesh::ports::driver::*;
use mesh::ports::harness::{Harness, HarnessError, Harnesses as _};
use mesh::ports::runner::{Extensions, Reach};
use mesh::sessions::Activity;
use serde_json::json;

/// A stage with the polite adapter, whose manifest has a run and a drive.
async fn polite(grants: &[&str]) -> (Stage, Arc<dyn Harness>) {
    let stage = Stage::with(&["polite"]);
    let manifest = stage.plugins().join("polite/adapter.toml");
    let text = std::fs::read_to_string(&manifest).expect("readable");
    let tasks = include_str!("../../../tests/hostile/polite/tasks.toml");
    let drives = include_str!("../../../tests/hostile/polite/drives.toml");
    std::fs::write(manifest, format!("{text}\n{tasks}\n{drives}")).expect("writable");
    stage.grant(grants);
    let polite = stage.adapters().get("polite").await.expect("loaded").expect("known");
    (stage, polite)
}

fn agent(model: &str) -> DrivenAgent {
    DrivenAgent {
        name: "helper".to_owned(),
        folder: PathBuf::from("/project"),
        model: Some(model.to_owned()),
        guidance: String::new(),
        reach: Reach::Look,
        approvals: Approvals::Refuse,
        extensions: Extensions::Mesh,
        id: "id".to_owned(),
        environment: Vec::new(),
        tailoring: Tailoring::default(),
    }
}

#[tokio::test]
async fn a_connection_is_made_of_the_manifests_words() {
    let (_stage, polite) = polite(&["drives.pipe"]).await;
    let driver = polite.driver().expect("it exports the interface");
    let offered = driver.connections(&agent("quiet"), Some("s1"), Path::new("/driven/1")).await.expect("connections");
    let [connection] = &offered[..] else { panic!("{offered:?}") };
    assert!(connection.launch.command[0].ends_with("/sh"), "{connection:?}");
    let told = r#"--tell=helper Approvals::Refuse Extensions::Mesh Some("s1")"#;
    assert_eq!(connection.launch.command[1..], ["--pipe", told, "--quiet"], "not the words of the run");
    assert_eq!((connection.framing, connection.proves), (DriverFraming::Lines, PromptStatus::Shown));
    assert!(connection.able.steer && connection.able.once && !connection.able.interrupt, "{:?}", connection.able);
    let of_the_run = driver.connections(&agent("loud"), None, Path::new("/driven/1")).await;
    assert!(of_the_run.is_ok(), "the run's own options stay: {of_the_run:?}");
    let stray = driver.connections(&agent("--evil"), None, Path::new("/driven/1")).await;
    let why = "the adapter `polite` is at fault: it chose the option `--evil`, which its manifest does not name";
    assert_eq!(stray, Err(HarnessError::Failed(why.to_owned())));
}

#[tokio::test]
async fn driving_takes_both_keys() {
    let (_stage, polite) = polite(&["runs.task"]).await;
    let denied =
        polite.driver().expect("it exports it").connections(&agent("quiet"), None, Path::new("/driven/1")).await;
    let Err(HarnessError::Denied(why)) = denied else { panic!("{denied:?}") };
    assert!(why.contains("give it by `relay-mesh plugin grant polite drives.pipe`"), "{why}");
}

#[tokio::test]
async fn actions_and_events_arrive_whole() {
    let (_stage, polite) = polite(&[]).await;
    let driver = polite.driver().expect("it exports it");
    let begun = driver.connect("polite").await.expect("connected");
    assert_eq!(begun.frames, ["hello polite"]);
    assert_eq!(begun.events, [(Some("s".to_owned()), DriverEvent::Ready)]);
    let answer = Action::Answer {
        session: "s".to_owned(),
        question: "q".to_owned(),
        kept: Some(json!({"id": 7})),
        answer: UserAnswer::Choose("b".to_owned()),
    };
    let answered = driver.act(Some(&json!(3)), &answer).await.expect("done");
    let told =
        r#"Action::Answer(("s", Reply { question: "q", kept: Some("{\"id\":7}"), answer: Answer::Choose("b") }))"#;
    assert_eq!(answered.frames, [told]);
    assert_eq!((answered.memory, &answered.events[0].1), (Some(json!(3)), &DriverEvent::Activity(Activity::Busy)));
    let prompt = Prompt { id: "p".to_owned(), text: "é\n".to_owned(), by_user: true, context: None };
    let prompted = driver.act(None, &Action::Prompt("s".to_owned(), prompt)).await.expect("done");
    assert_eq!(
        prompted.frames,
        [r#"Action::Prompt(("s", Prompt { id: "p", text: "é\n", by-user: true, context: None }))"#]
    );
}

#[tokio::test]
async fn many_frames_are_read_in_portions_that_share_one_memory() {
    let (_stage, polite) = polite(&[]).await;
    let driver = polite.driver().expect("it exports it");
    let large: Vec<String> = (0..3).map(|_| "é".repeat(200_000)).collect();
    let read = driver.receive(Some(&json!(1)), &large).await.expect("read");
    assert_eq!((read.memory, read.events.len()), (Some(json!(4)), 3));
    let many: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    let read = driver.receive(None, &many).await.expect("read");
    assert_eq!((read.memory, read.events.len()), (Some(json!(1_000)), 4));
}

#[tokio::test]
async fn an_answer_without_measure_is_the_adapters_fault() {
    let (_stage, polite) = polite(&[]).await;
    let driver = polite.driver().expect("it exports it");
    let receive = async |frame: &str| driver.receive(None, &[frame.to_owned()]).await;
    assert!(receive("keep 1040000").await.is_ok());
    let told = receive("keep 1050000").await.expect_err("too much").to_string();
    assert!(told.contains("it answered 1050002 bytes kept between two calls, and 1048576 are the most"), "{told}");
    let told = receive("send 2000").await.expect_err("too many").to_string();
    assert!(told.contains("it answered 2000 frames at once, and 1024 are the most"), "{told}");
}
