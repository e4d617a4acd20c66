//! `runner` over the interface: what a component chooses becomes a command line of its manifest's words, and what it
//! makes of output arrives whole, however long it is.

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::Stage;
use mesh::ports::harness::{HarnessError, Harnesses as _};
use mesh::ports::runner::*;

/// A stage with the polite adapter, whose manifest has a run.
fn stage() -> Stage {
    let stage = Stage::with(&["polite"]);
    let manifest = stage.plugins().join("polite/adapter.toml");
    let text = std::fs::read_to_string(&manifest).expect("readable");
    let tasks = include_str!("../../../tests/hostile/polite/tasks.toml");
    std::fs::write(manifest, format!("{text}\n{tasks}")).expect("writable");
    stage
}

fn task(model: &str) -> Task {
    Task {
        id: "run-1".to_owned(),
        folder: PathBuf::from("/project"),
        start: Start::Fresh("id".to_owned()),
        reach: Reach::Look,
        extensions: Extensions::Mesh,
        model: Some(model.to_owned()),
        schema: Some(serde_json::json!({"type": "object"})),
        guidance: None,
        turns: None,
        cost: Some(7),
    }
}

fn lines(texts: &[&str]) -> Vec<OutputLine> {
    texts.iter().map(|text| OutputLine { text: (*text).to_owned(), cut: false }).collect()
}

#[tokio::test]
async fn a_launch_is_made_of_the_manifests_words() {
    let stage = stage();
    stage.grant(&["runs.task"]);
    let polite = stage.adapters().get("polite").await.expect("loaded").expect("known");
    let runner = polite.runner().expect("it exports the interface");
    let launch = runner.prepare(&task("loud"), Path::new("/runs/1")).await.expect("a launch");
    assert!(launch.command[0].ends_with("/sh"), "{launch:?}");
    let told = r#"--tell=run-1 Extensions::Mesh Some("{\"type\":\"object\"}") Some(7)"#;
    assert_eq!(launch.command[1..], ["-c", told, "--loud"]);
    assert_eq!(launch.files, [("settings.json".to_owned(), "relay-mesh mcp".to_owned())]);
    let names: Vec<&str> = launch.environment.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["PATH", "POLITE_SETTINGS"], "the user's SECRET is not passed on");
    assert_eq!(launch.environment[1].1, "/runs/1/settings.json");
    assert_eq!(launch.stop, [StopStep { signal: StopSignal::Interrupt, grace: Duration::from_millis(5) }]);
    assert_eq!(launch.without, ["no limit"]);
    let stray = runner.prepare(&task("--evil"), Path::new("/runs/1")).await;
    let why = "the adapter `polite` is at fault: it chose the option `--evil`, which its manifest does not name";
    assert_eq!(stray, Err(HarnessError::Failed(why.to_owned())));
    let no = runner.prepare(&Task { reach: Reach::Unguarded, ..task("loud") }, Path::new("/runs/1")).await;
    assert_eq!(no, Err(HarnessError::Unsupported("it says no".to_owned())));
    let ready = runner.ready().await.expect("it answers");
    assert_eq!((ready.login, ready.why.as_deref()), (Login::LoggedIn, Some("a\\nkey")));
    assert!(ready.able.look && ready.able.fork && !ready.able.own_id);
}

#[tokio::test]
async fn a_run_takes_both_keys() {
    let stage = stage();
    let polite = stage.adapters().get("polite").await.expect("loaded").expect("known");
    let denied = polite.runner().expect("it exports it").prepare(&task("loud"), Path::new("/runs/1")).await;
    let Err(HarnessError::Denied(why)) = denied else { panic!("{denied:?}") };
    assert!(why.contains("give it by `relay-mesh plugin grant polite runs.task`"), "{why}");
}

#[tokio::test]
async fn output_of_any_length_is_read_and_the_last_message_is_the_answer() {
    let stage = stage();
    let polite = stage.adapters().get("polite").await.expect("loaded").expect("known");
    let runner = polite.runner().expect("it exports it");
    let long = format!("piece {}", "é".repeat(200_000));
    let first = runner.read(&task(""), None, &lines(&["say first", &long, "piece  and", &long])).await.expect("read");
    assert_eq!(first.events, [RunEvent::Said { text: "first".to_owned() }]);
    let second = runner.read(&task(""), first.memory.as_ref(), &lines(&["note"])).await.expect("read");
    let whole = format!("{0} and{0}", "é".repeat(200_000));
    assert_eq!(second.events[0], RunEvent::Said { text: whole.clone() });
    let exit = ProcessExit { code: Some(9), stderr_end: "one\n two".to_owned(), ..ProcessExit::default() };
    let outcome = runner.conclude(&task(""), second.memory.as_ref(), &exit).await.expect("concluded");
    assert_eq!(outcome.answer, Some(whole));
    assert_eq!(outcome.output, Some(5.into()), "it has counted the lines of every call");
    assert_eq!((outcome.turns, outcome.why.as_deref()), (Some(9), Some("one two")));
    assert_eq!((outcome.denials[0].why.as_str(), outcome.retry_after), ("no way", Some(Duration::from_millis(5))));
    let used = outcome.usage.expect("it says");
    assert_eq!((used.input, used.cached_input, used.output, used.cost, used.whole_session), (1, 2, 3, Some(4), true));
}

#[tokio::test]
async fn an_adapter_may_want_little_memory() {
    let stage = stage();
    let polite = stage.adapters().get("polite").await.expect("loaded").expect("known");
    let runner = polite.runner().expect("it exports it");
    assert!(runner.read(&task(""), None, &lines(&["keep 65000"])).await.is_ok());
    let told = runner.read(&task(""), None, &lines(&["keep 70000"])).await.expect_err("too much").to_string();
    assert!(told.contains("wants 70002 bytes kept between two reads, and 65536 are the most"), "{told}");
}
