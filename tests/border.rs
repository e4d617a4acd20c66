//! What an adapter can do that the user granted nothing for: the real binary, with adapters that reach for more.

use serde_json::{Value, json};
use test_support::components::{component, manifest, ship};
use test_support::{Host, Outcome, Stage};

/// The polite adapter is certain of each session that it is asked about.
#[test]
fn an_adapter_becomes_no_session_of_another_harness() {
    let stage = stage();
    let path =
        polite(&stage, &manifest("polite").replace("\"polite-client\"", "\"polite-client\", \"claude-code\", \"*\""));
    let asked = run(&stage, &["plugin", "install", &path, "--yes", "--grant", "state"]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    for line in [
        "clients.claude-code  take the calls of the MCP client `claude-code` for those of its own sessions, though it \
         belongs to the built-in adapter `claude-code`",
        "clients.*            take every MCP client's calls for those of its own sessions, though nothing shows that \
         they are",
    ] {
        assert!(asked.stdout.contains(line), "{}", asked.stdout);
    }
    let host = Host::start(&stage);
    assert_ne!(harness_of(&stage, &host, "claude-code", "alice"), "polite");
    assert_eq!(harness_of(&stage, &host, "another", "bob"), "generic");
    assert_eq!(harness_of(&stage, &host, "polite-client", "carol"), "polite");
    // With the grant it is asked about clients that no other adapter knows.
    assert_eq!(run(&stage, &["plugin", "grant", "polite", "clients.*"]).code, Some(0));
    assert_eq!(harness_of(&stage, &host, "another", "dora"), "polite");
}

#[test]
fn what_an_installed_adapter_matches_stays_its_own() {
    let stage = stage();
    let first = polite(&stage, &manifest("polite"));
    assert_eq!(run(&stage, &["plugin", "install", &first, "--yes", "--grant", "state"]).code, Some(0));
    let text = manifest("hostile").replace("\"hostile-client\"", "\"polite-client\"");
    let second = ship(&stage.folder.join("hostile"), "hostile", &built("hostile"), &text).display().to_string();
    let asked = run(&stage, &["plugin", "install", &second, "--yes", "--grant", "state"]);
    assert_eq!(asked.code, Some(0), "{}", asked.stderr);
    let words = "though it belongs to the installed adapter `polite`";
    assert!(asked.stdout.contains(words), "{}", asked.stdout);
    let host = Host::start(&stage);
    assert_eq!(harness_of(&stage, &host, "polite-client", "alice"), "polite");
    // A later version of the first one does not lose it to the second one.
    let later = polite(&stage, &manifest("polite").replace("0.1.0", "0.2.0"));
    let updated = run(&stage, &["plugin", "update", "polite", &later]);
    assert_eq!(updated.code, Some(0), "{}", updated.stderr);
    assert!(!updated.stdout.contains("clients.polite-client"), "{}", updated.stdout);
    assert_eq!(harness_of(&stage, &host, "polite-client", "bob"), "polite");
    assert_eq!(run(&stage, &["plugin", "grant", "hostile", "clients.polite-client"]).code, Some(0));
    assert_eq!(harness_of(&stage, &host, "polite-client", "carol"), "polite", "the owner goes first");
}

/// The harness to which the server counts an agent of this client.
fn harness_of(stage: &Stage, host: &Host, client: &str, agent: &str) -> String {
    let call = json!({"name": "register_agent", "arguments": {"name": agent}, "_meta": {"session": agent}});
    let answer = host.client(client).request("tools/call", &call);
    assert_ne!(answer["isError"], true, "{answer}");
    let agents: Value = serde_json::from_str(&run(stage, &["agents", "--json"]).stdout).expect("JSON");
    let all = agents["agents"].as_array().expect("agents");
    let found = all.iter().find(|found| found["name"] == agent).unwrap_or_else(|| panic!("{agent}: {agents}"));
    found["harness"].as_str().expect("a harness").to_owned()
}

/// A folder with the polite adapter under this manifest.
fn polite(stage: &Stage, text: &str) -> String {
    let folder = stage.folder.join(format!("polite-{}", text.len()));
    ship(&folder, "polite", &built("polite"), text).display().to_string()
}

fn built(name: &str) -> Vec<u8> {
    component(env!("CARGO_TARGET_TMPDIR"), name)
}

fn run(stage: &Stage, arguments: &[&str]) -> Outcome {
    // Shared, so that adapters are compiled once for all tests, as for all projects of a user.
    let cache = format!("{}/cache", env!("CARGO_TARGET_TMPDIR"));
    stage.relay(arguments).env("XDG_CACHE_HOME", cache).run()
}

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_relay-mesh"))
}
