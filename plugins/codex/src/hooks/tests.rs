//! Hooks against payloads that the real client wrote (`fixtures/hooks/`, named by its version), and rules that hold
//! for every payload.

use proptest::prelude::*;
use relay_mesh_sdk::hooks::{Call, Findings};
use relay_mesh_sdk::testing::{self, FakeHost, Fakes, hook, mail, nothing_found};
use relay_mesh_sdk::{Error, Hooks, turns};
use serde_json::{Value, json};

use super::has_hooks;
use crate::Codex;

const EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreModelRequest",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Interrupt",
    "SessionEnd",
];

fn fixture(name: &str) -> Value {
    let version = if name.starts_with("PreModelRequest") { "0.171.0" } else { "0.169.0" };
    let recorded = testing::recorded(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"), &format!("{version}-{name}"));
    serde_json::from_str(&recorded.payload).expect("a fixture is JSON")
}

fn call(name: &str, payload: &Value) -> Call {
    let event = name.split('-').next().unwrap_or(name).to_owned();
    Call::new(event, payload.to_string())
}

fn recorded(name: &str) -> Call {
    call(name, &fixture(name))
}

/// The call of a fixture with one field changed.
fn with(name: &str, field: &str, value: Value) -> Call {
    let mut payload = fixture(name);
    payload[field] = value;
    call(name, &payload)
}

fn start() -> FakeHost {
    Fakes::default().at(1_000_000).deserted("app-server").start()
}

/// A reading as one line, in which `S` is the payload's root thread and `sub` its subagent's.
fn told(call: &Call) -> String {
    let payload: Value = serde_json::from_str(&call.payload).unwrap_or_default();
    let short = |id: &str| match payload["agent_id"] == id {
        true => "sub".to_owned(),
        false => "S".to_owned(),
    };
    match Codex::read(call) {
        Ok(reading) => testing::reading(&reading, short),
        Err(Error::Unsupported(what)) => format!("unsupported: {what}"),
        Err(Error::Failed(what)) => format!("failed: {what}"),
        Err(other) => format!("{other:?}"),
    }
}

#[track_caller]
fn reads(name: &str, expected: &str) {
    assert_eq!(told(&recorded(name)), expected, "{name}");
}

#[track_caller]
fn answers(call: &Call, found: Findings, expected: &str) {
    let (_, reply) = hook::<Codex>(call, |_| found).unwrap_or_else(|error| panic!("{}: {error}", call.name));
    assert_eq!(testing::reply(&reply), expected, "{}", call.name);
}

fn with_mail() -> Findings {
    Findings { mail: Some(mail("<mail>")), ..nothing_found() }
}

#[test]
fn every_recorded_payload_means_something() {
    let _host = start();
    reads("SessionStart-startup", "S; alive S; S Busy; protocol Start; fits 6500");
    reads("SessionStart-resume", "S; alive S; S Busy; protocol Resume; fits 6500");
    reads("SessionStart-clear", "S; alive S; S Busy; protocol Compaction; fits 6500");
    reads("SessionStart-compact", "S; alive S; S Busy; protocol Compaction; fits 6500");
    reads("UserPromptSubmit-person", "S; S Busy; user spoke in S; fits 9000; attended");
    reads("PreToolUse-apply_patch", "S; S Busy; edits /home/u/app/new.txt");
    reads("PostToolUse-apply_patch", "S; S Busy; fits 6500");
    reads("PostToolUse-mcp", "S; S Busy; protocol Registration; fits 6500");
    reads("SubagentStart", "sub of S; alive sub; sub Busy");
    reads("SubagentStop", "nobody; sub ended");
    reads("Stop", "S; S Idle; fits 9000");
    reads("Interrupt", "S; S Idle; user stopped S");
    reads("SessionEnd", "nobody; S ended");
    assert_eq!(told(&call("PreModelRequest", &fixture("PreToolUse-apply_patch"))), "S; S Busy");
    reads("PreModelRequest-sampling", "S; S Busy");
    reads("PreModelRequest-compaction", "S");
    assert_eq!(told(&call("PermissionRequest", &fixture("PreToolUse-apply_patch"))), "S; S NeedsInput");
}

#[test]
fn what_the_mesh_put_there_is_no_person() {
    let _host = start();
    let prompt = |text: &str| told(&with("UserPromptSubmit-person", "prompt", json!(text)));
    for news in [
        "A relay-mesh message from bob waits. Call fetch_messages to read it.",
        "3 relay-mesh messages from bob, carol wait. Call fetch_messages to read them.",
        "<relay-mesh-message id=\"01\" from=\"bob\">Hello</relay-mesh-message>",
        crate::app_server::NUDGE,
    ] {
        assert_eq!(prompt(news), "S; S Busy; fits 9000", "{news}");
    }
    let spoken = "S; S Busy; user spoke in S; fits 9000; attended";
    assert_eq!(prompt("What is a relay-mesh message?"), spoken);
    let of_parent = with("UserPromptSubmit-person", "agent_id", json!("a1"));
    assert_eq!(told(&of_parent), "sub of S; sub Busy; fits 9000", "its parent prompts a subagent");
}

#[test]
fn a_patch_names_every_file_that_it_touches() {
    let _host = start();
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-*** Add File: no.rs\n\
                 *** Delete File: /etc/c\n*** End Patch";
    let call = with("PreToolUse-apply_patch", "tool_input", json!({"command": patch}));
    assert_eq!(told(&call), "S; S Busy; edits /home/u/app/src/a.rs; edits /home/u/app/src/b.rs; edits /etc/c");
    let shell = json!({"command": "*** Add File: a"});
    let mut payload = fixture("PreToolUse-apply_patch");
    payload["tool_name"] = json!("Bash");
    payload["tool_input"] = shell;
    assert_eq!(told(&super::tests::call("PreToolUse", &payload)), "S; S Busy");
}

#[test]
fn a_subagent_takes_mail_only_as_an_agent_of_its_own() {
    let _host = start();
    let tool = |failed: bool| {
        let mut payload = fixture("PostToolUse-mcp-subagent");
        payload["tool_response"]["isError"] = json!(failed);
        payload
    };
    let mut other = tool(false);
    other["tool_name"] = json!("Bash");
    assert_eq!(told(&call("PostToolUse", &other)), "sub of S; sub Busy");
    assert_eq!(told(&call("PostToolUse", &tool(true))), "sub of S; sub Busy", "a registration that was refused");
    assert_eq!(told(&call("PostToolUse", &tool(false))), "sub of S; sub Busy; protocol Registration; fits 6500");
    assert_eq!(told(&call("PostToolUse", &other)), "sub of S; sub Busy; fits 6500");
}

#[test]
fn answers_take_the_shape_of_their_event() {
    let _host = start();
    let protocol = || Findings { protocol: Some("<protocol>".into()), ..with_mail() };
    let context = |event: &str, text: &str| {
        format!(
            r#"0 | {{"hookSpecificOutput":{{"hookEventName":"{event}","additionalContext":"{text}"}}}} | - | shows mail"#
        )
    };
    let both = r"<protocol>\n\n<mail>";
    answers(&recorded("SessionStart-startup"), protocol(), &context("SessionStart", both));
    answers(&recorded("UserPromptSubmit-person"), with_mail(), &context("UserPromptSubmit", "<mail>"));
    answers(&recorded("PostToolUse-mcp"), protocol(), &context("PostToolUse", both));
    answers(&recorded("PostToolUse-apply_patch"), nothing_found(), "0 | - | - | no mail");
    let refusal = || Findings { refusal: Some("new.txt is held by `bob`".into()), ..nothing_found() };
    answers(
        &recorded("PreToolUse-apply_patch"),
        refusal(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"new.txt is held by `bob`"}} | - | no mail"#,
    );
    answers(&recorded("Stop"), with_mail(), r#"0 | {"decision":"block","reason":"<mail>"} | - | shows mail"#);
    for silent in ["Stop", "SubagentStart", "SubagentStop", "Interrupt", "SessionEnd"] {
        answers(&recorded(silent), nothing_found(), "0 | - | - | no mail");
    }
}

#[test]
fn the_end_of_a_turn_is_put_off_six_times_in_a_row_and_no_more() {
    let _host = start();
    let again = with("Stop", "stop_hook_active", json!(true));
    let blocked = r#"0 | {"decision":"block","reason":"<mail>"} | - | shows mail"#;
    answers(&recorded("Stop"), with_mail(), blocked);
    for _ in 1..turns::MOST_BLOCKS {
        answers(&again, with_mail(), blocked);
    }
    assert_eq!(told(&again), "S; S Idle", "after six");
    reads("Stop", "S; S Idle; fits 9000");
}

#[test]
fn it_is_known_whose_hooks_speak_until_the_session_ends() {
    let _host = start();
    let thread = fixture("SessionEnd")["session_id"].as_str().expect("a thread").to_owned();
    let start = with("SessionStart-startup", "session_id", json!(thread));
    assert_eq!(has_hooks(&thread), Ok(false));
    Codex::read(&start).expect("it is read");
    assert_eq!(has_hooks(&thread), Ok(true));
    Codex::read(&recorded("SessionEnd")).expect("it is read");
    assert_eq!(has_hooks(&thread), Ok(false));
}

#[test]
fn an_unknown_event_or_shape_is_said_and_breaks_nothing() {
    let _host = start();
    let refused = |name: &str, payload: Value| told(&call(name, &payload));
    assert_eq!(
        refused("PostModelRequest", json!({"session_id": "s"})),
        "unsupported: Codex's hook `PostModelRequest` has no meaning for the mesh"
    );
    assert_eq!(
        refused("Stop", json!({"session_id": "s"})),
        "failed: the payload of Stop has no flag `stop_hook_active`"
    );
    assert_eq!(refused("Interrupt", json!({})), "failed: the payload of Interrupt has no text `session_id`");
    assert_eq!(
        refused("SessionStart", json!({"session_id": "s", "source": "nightly"})),
        "failed: SessionStart has an unknown source `nightly`"
    );
}

proptest! {
    #[test]
    fn no_payload_is_too_strange(
        name in prop::sample::select(EVENTS),
        fixture_name in prop::sample::select(vec![
            "SessionStart-clear", "PreToolUse-apply_patch", "Stop", "PostToolUse-mcp-subagent", "UserPromptSubmit-person",
        ]),
        field in prop::sample::select(vec![
            "session_id", "agent_id", "source", "tool_name", "tool_input", "tool_response", "cwd", "prompt", "stop_hook_active",
        ]),
        value in prop::sample::select(vec![
            json!(null), json!(true), json!(-1), json!(""), json!("x"), json!([]), json!({"command": 1}), json!({"command": "*** Add File: "}),
        ]),
    ) {
        let _host = start();
        let mut payload = fixture(fixture_name);
        payload[field] = value;
        // No payload may cause a panic, and every reading must have an answer.
        if let Ok((reading, reply)) = hook::<Codex>(&call(name, &payload), |_| with_mail()) {
            prop_assert_eq!(reply.exit_code, 0);
            prop_assert!(reading.max_bytes <= 9_000);
        }
    }
}
