//! Running adapters: changes that a server picks up between two calls, faults that every process sees, and machine code
//! that is compiled once.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_support::components::{component, manifest, ship};
use test_support::{Host, Outcome, Stage};

/// What the hostile adapter asks to say in answers to hooks, in which it reports to its tests.
const REPORTS: &str = "answers.context,answers.own-words";

#[test]
fn what_is_installed_while_the_host_runs_is_there_at_its_next_call() {
    let stage = stage();
    let host = Host::start(&stage);
    let folder = |version: &str, client: &str| polite(&stage.folder.join(version), version, client);
    let meets = |client: &str, agent: &str| harness_of(&stage, &host, client, agent);
    assert_eq!(meets("polite-client", "before"), "generic");
    relay(
        &stage,
        &["plugin", "install", "--allow-unsigned", &folder("1.0.0", "polite-client"), "--yes", "--grant", "state"],
        0,
    );
    assert_eq!(meets("polite-client", "installed"), "polite");
    relay(&stage, &["plugin", "update", "--allow-unsigned", "polite", &folder("1.1.0", "newer-client")], 0);
    assert_eq!(meets("newer-client", "updated"), "polite");
    assert_eq!(meets("polite-client", "outdated"), "generic", "the older version is gone");
    relay(&stage, &["plugin", "disable", "polite"], 0);
    assert_eq!(meets("newer-client", "disabled"), "generic");
    relay(&stage, &["plugin", "enable", "polite"], 0);
    assert_eq!(meets("newer-client", "enabled"), "polite");
    relay(&stage, &["plugin", "remove", "polite"], 0);
    assert_eq!(meets("newer-client", "removed"), "generic");
}

#[test]
fn a_folder_of_plugins_is_looked_at_between_two_calls() {
    let stage = stage();
    let plugins = stage.folder.join("plugins");
    std::fs::create_dir(&plugins).expect("the stage is writable");
    stage.configure(&format!("plugins = [{:?}]\n", plugins.display().to_string()));
    let host = Host::start(&stage);
    let put = |client: &str| polite(&plugins.join("polite"), "1.0.0", client);
    let meets = |client: &str, agent: &str| harness_of(&stage, &host, client, agent);
    assert_eq!(meets("polite-client", "before"), "generic");
    put("polite-client");
    assert_eq!(meets("polite-client", "put"), "polite");
    put("newer-client");
    assert_eq!(meets("newer-client", "newer"), "polite", "a new version takes over");
    for (number, broken) in [&b"garbage"[..], b"\0asm\x0d\0\x01\0garbage"].into_iter().enumerate() {
        ship(&plugins.join("polite"), "polite", broken, &text("2.0.0", "newer-client"));
        let agent = format!("broken-{number}");
        assert_eq!(meets("newer-client", &agent), "polite", "the old one goes on");
    }
    std::fs::remove_dir_all(plugins.join("polite")).expect("the stage is writable");
    assert_eq!(meets("newer-client", "gone"), "generic");
}

#[test]
fn an_adapter_in_a_folder_is_given_what_it_asks_for_by_its_digest() {
    let stage = stage();
    let plugins = stage.folder.join("plugins");
    stage.configure(&format!("plugins = [{:?}]\n", plugins.display().to_string()));
    ship(&plugins.join("hostile"), "hostile", &built("hostile"), &manifest("hostile"));
    let state = || hook(&stage, "answer:state key value");
    assert!(state().stderr.contains("relay-mesh plugin grant hostile state"), "{}", state().stderr);
    relay(&stage, &["plugin", "grant", "hostile", "state", "answers.context", "answers.own-words"], 0);
    assert!(state().stdout.starts_with("true false"), "{}", state().stderr);
    // Another build of it is another adapter.
    let newer = [&built("hostile")[..], b"\0\x05\x04more"].concat();
    ship(&plugins.join("hostile"), "hostile", &newer, &manifest("hostile"));
    assert!(state().stderr.contains("relay-mesh plugin grant hostile state"), "{}", state().stderr);
}

#[test]
fn faults_in_a_row_pause_an_adapter_over_all_processes_and_everybody_sees_it() {
    let stage = stage();
    let path = ship(&stage.folder.join("package"), "hostile", &built("hostile"), &manifest("hostile"));
    relay(
        &stage,
        &["plugin", "install", "--allow-unsigned", &path.display().to_string(), "--yes", "--grant", REPORTS],
        0,
    );
    let listed = || listed(&stage, "hostile");
    for number in 1..=5 {
        assert_eq!(listed()["paused_until"], Value::Null);
        let outcome = hook(&stage, "answer:trap");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("it trapped: wasm `unreachable`"), "{}", outcome.stderr);
        // The log names the function, because the component contains function names.
        assert!(outcome.stderr.contains("deeds::perform"), "{}", outcome.stderr);
        assert_eq!(listed()["faults"], number);
    }
    // A pause that was over before it was seen ends with one fault more, after which the next is twice as long.
    let seen = (0..6).find_map(|_| {
        let (paused, table) = (listed(), relay(&stage, &["plugin", "list"], 0).stdout);
        let refused = hook(&stage, "answer:trap").stderr;
        refused.contains("busy for").then_some((paused, table))
    });
    let (paused, table) = seen.expect("its calls are refused for a while");
    assert!(paused["paused_until"].is_string(), "{paused}");
    assert!(paused["last_fault"].as_str().is_some_and(|fault| fault.contains("hook answer")), "{paused}");
    assert!(table.contains("paused until 2"), "{table}");
    // The pause ends by itself, and the first successful call resets the count.
    test_support::wait_for("the pause is over", || (!hook(&stage, "answer:clock").stdout.is_empty()).then_some(()));
    assert!(!hook(&stage, "answer:trap").stderr.contains("busy"), "one fault is no row");
    assert!(!hook(&stage, "answer:clock").stdout.is_empty());
}

#[test]
fn two_processes_at_once_compile_an_adapter_once() {
    let stage = stage();
    let run = |arguments: &[&str]| {
        let cache = stage.folder.join("cache-of-its-own");
        stage.relay(arguments).env("XDG_CACHE_HOME", cache).succeed()
    };
    let inspect =
        || -> Value { serde_json::from_str(&run(&["plugin", "inspect", "generic", "--json"])).expect("JSON") };
    assert_eq!(inspect()["machine_code"], "not compiled yet");
    let told: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| run(&["plugin", "verify", "generic"]))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ran")).collect()
    });
    let compiled = told.iter().filter(|told| told.contains("was compiled")).count();
    assert_eq!(compiled, 1, "{told:?}");
    assert_eq!(inspect()["machine_code"], "in the cache");
}

#[test]
fn a_cache_that_cannot_be_used_costs_nothing() {
    let stage = stage();
    let cache = stage.folder.join("not-a-folder");
    std::fs::write(&cache, "a file").expect("the stage is writable");
    let run = |arguments: &[&str]| stage.relay(arguments).env("XDG_CACHE_HOME", &cache).run();
    let path = polite(&stage.folder.join("package"), "1.0.0", "polite-client");
    let outcome = run(&["plugin", "install", "--allow-unsigned", &path, "--yes", "--grant", "state"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // The data folder has it instead (tests/users.rs).
    let inspected = run(&["plugin", "inspect", "polite"]);
    assert!(inspected.stdout.contains("in the cache"), "{}", inspected.stdout);
    let verified = run(&["plugin", "verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.stdout);
    assert!(verified.stdout.contains("its machine code in the cache is whole"), "{}", verified.stdout);
}

/// The harness that the server assigns to a client's agent, by its current adapters.
fn harness_of(stage: &Stage, host: &Host, client: &str, agent: &str) -> String {
    let arguments = json!({"name": agent});
    let call = json!({"name": "register_agent", "arguments": arguments, "_meta": {"session": agent}});
    let answer = host.client(client).request("tools/call", &call);
    assert_ne!(answer["isError"], true, "{answer}");
    let agents: Value = serde_json::from_str(&relay(stage, &["agents", "--json"], 0).stdout).expect("JSON");
    let all = agents["agents"].as_array().expect("agents");
    let found = all.iter().find(|found| found["name"] == agent).unwrap_or_else(|| panic!("{agent}: {agents}"));
    found["harness"].as_str().expect("a harness").to_owned()
}

fn listed(stage: &Stage, name: &str) -> Value {
    let listed: Value = serde_json::from_str(&relay(stage, &["plugin", "list", "--json"], 0).stdout).expect("JSON");
    let all = listed["adapters"].as_array().expect("adapters");
    all.iter().find(|adapter| adapter["name"] == name).expect("it is listed").clone()
}

fn text(version: &str, client: &str) -> String {
    manifest("polite").replace("0.1.0", version).replace("polite-client", client)
}

/// The polite adapter in this folder, which matches clients of this name.
fn polite(folder: &Path, version: &str, client: &str) -> String {
    ship(folder, "polite", &built("polite"), &text(version, client)).display().to_string()
}

fn hook(stage: &Stage, deed: &str) -> Outcome {
    stage.relay(&["hook", "hostile", deed]).env("XDG_CACHE_HOME", cache()).input("session").run()
}

fn relay(stage: &Stage, arguments: &[&str], code: i32) -> Outcome {
    let outcome = stage.relay(arguments).env("XDG_CACHE_HOME", cache()).run();
    assert_eq!(outcome.code, Some(code), "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
    outcome
}

fn built(name: &str) -> Vec<u8> {
    component(env!("CARGO_TARGET_TMPDIR"), name)
}

fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
