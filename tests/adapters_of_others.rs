//! Living with adapters that are not built in: what they set up is examined and taken out like anything else, and their
//! authors get fixtures from real calls.

use serde_json::{Value, json};
use test_support::components::{component, manifest, ship};
use test_support::{Outcome, Stage, wait_for};

const REHEARSAL: &str = "\n[rehearsal]\nhook = \"turn\"\npayload = \"session=s1 does=busy\"\n";

#[test]
fn the_doctor_plays_a_hook_of_an_adapter_that_was_installed() {
    let stage = stage();
    set_up(&stage);
    let told = run(&stage, &["doctor", "faulty"]);
    assert!(told.stdout.contains("the turn hook was run and answered in"), "{}{}", told.stdout, told.stderr);
    assert!(!told.stdout.contains("broken"), "{}", told.stdout);
    // In a plugin folder, with what the user granted to it there.
    let elsewhere = self::stage();
    let folder = faulty(&elsewhere);
    let folder = std::path::Path::new(&folder).parent().expect("a folder of plugins").display().to_string();
    let settings = elsewhere.home.join(".config/relay-mesh/config.toml");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("the home is writable");
    std::fs::write(&settings, format!("plugins = [{folder:?}]\n")).expect("the home is writable");
    for grant in ["roots.config", "answers.context", "answers.own-words", "answers.stop"] {
        assert_eq!(run(&elsewhere, &["plugin", "grant", "faulty", grant]).code, Some(0), "{grant}");
    }
    assert_eq!(run(&elsewhere, &["install", "faulty", "--user", "--yes"]).code, Some(0));
    let told = run(&elsewhere, &["doctor", "faulty"]);
    assert!(told.stdout.contains("the turn hook was run and answered in"), "{}{}", told.stdout, told.stderr);
}

#[test]
fn what_a_disabled_adapter_has_set_up_can_be_taken_out() {
    let stage = stage();
    let settings = stage.home.join(".faulty/settings.toml");
    std::fs::create_dir_all(stage.home.join(".faulty")).expect("the home is writable");
    std::fs::write(&settings, "# mine\n").expect("the home is writable");
    set_up(&stage);
    assert!(std::fs::read_to_string(&settings).expect("settings").contains("relay-mesh begin"));
    assert_eq!(run(&stage, &["plugin", "disable", "faulty"]).code, Some(0));
    let removed = run(&stage, &["uninstall", "faulty", "--user", "--yes"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert_eq!(std::fs::read_to_string(&settings).expect("settings"), "# mine\n");
    // It is not in use for that.
    assert_ne!(run(&stage, &["install", "faulty", "--user", "--yes"]).code, Some(0));
    assert_eq!(run(&stage, &["plugin", "remove", "faulty"]).code, Some(0));
}

#[test]
fn calls_of_hooks_become_fixtures_while_they_are_recorded() {
    let stage = stage();
    set_up(&stage);
    let fixtures = stage.folder.join("fixtures");
    let into = fixtures.display().to_string();
    let arguments = ["plugin", "record", "faulty", "--into", &into, "--harness-version", "1.0"];
    let record = || relay(&stage, &arguments).start(&stage.folder.join("log"));
    let mark = stage.data.join("recording/faulty.json");
    let payload = format!("session=s1 edits={}/a.txt", stage.home.display());
    let call = || {
        let hook = relay(&stage, &["hook", "faulty", "turn"]).env("FAULTY_SESSION", "s1").env("SECRET_OF_MINE", "s");
        let outcome = hook.input(&*payload).run();
        assert_eq!((outcome.stderr.as_str(), outcome.stdout.is_empty()), ("", false), "{outcome:?}");
    };
    let files = || {
        let entries = std::fs::read_dir(fixtures.join("hooks")).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    call();
    let mut recording = record();
    wait_for("it is recorded", || mark.exists().then_some(()));
    call();
    call();
    assert_eq!(recording.stop(), Some(0));
    call();
    assert_eq!(files(), ["1.0-turn-2.json", "1.0-turn.json"]);
    let recorded = std::fs::read_to_string(fixtures.join("hooks/1.0-turn.json")).expect("a fixture");
    let recorded: Value = serde_json::from_str(&recorded).expect("JSON");
    let expected = json!({
        "event": "turn",
        "environment": { "FAULTY_SESSION": "s1" },
        "payload": "session=s1 edits=/home/u/a.txt",
    });
    assert_eq!(recorded, expected);
    // The kit reads them as they are.
    let tested = run(&stage, &["plugin", "test", &faulty(&stage), "--fixtures", &into]);
    assert!(tested.stdout.contains("1.0-turn") || tested.stdout.contains("\npassed: "), "{tested:?}");
    assert!(!tested.stderr.contains("error: "), "{}", tested.stderr);
    // A recording that was killed records nothing more, and its mark goes with the next call.
    let mut killed = record();
    wait_for("it is recorded", || mark.exists().then_some(()));
    killed.kill();
    call();
    assert_eq!((files().len(), mark.exists()), (2, false));
}

/// Installs the adapter and has it set its harness up for the user.
fn set_up(stage: &Stage) {
    let grants = "state,roots.config,environment.FAULTY_SESSION,answers.context,answers.own-words,answers.stop";
    let installed = run(stage, &["plugin", "install", "--allow-unsigned", &faulty(stage), "--yes", "--grant", grants]);
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let done = run(stage, &["install", "faulty", "--user", "--yes"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

fn faulty(stage: &Stage) -> String {
    let text = manifest("faulty") + REHEARSAL;
    let bytes = component(env!("CARGO_TARGET_TMPDIR"), "faulty");
    ship(&stage.folder.join("plugins/faulty"), "faulty", &bytes, &text).display().to_string()
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    relay(stage, arguments).run()
}

fn relay(stage: &Stage, arguments: &[&str]) -> test_support::Program {
    // Shared, so that adapters are compiled once for all tests, as for all projects of a user.
    stage.relay(arguments).env("XDG_CACHE_HOME", format!("{}/cache", env!("CARGO_TARGET_TMPDIR")))
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
