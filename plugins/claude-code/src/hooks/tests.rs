//! Hooks against payloads that the real client wrote (`fixtures/hooks/`, named by its version), and rules that hold
//! for every payload.

use proptest::prelude::*;
use relay_mesh_sdk::hooks::{Call, Event, Findings, Reading};
use relay_mesh_sdk::testing::{self, FakeHost, Fakes, hook, mail, nothing_found};
use relay_mesh_sdk::{Error, Hooks, Occasion, turns};
use serde_json::Value;

use crate::ClaudeCode;

const WINDOW: &str = "4711";

fn fixture(name: &str) -> String {
    testing::recorded(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"), &format!("2.1.329-{name}")).payload
}

fn call(name: &str, payload: String, attended: &str) -> Call {
    let event = name.split('-').next().unwrap_or(name).to_owned();
    let environment = vec![
        ("CLAUDE_PID".to_owned(), WINDOW.to_owned()),
        ("CLAUDE_CODE_SESSION_ATTENDED".to_owned(), attended.to_owned()),
    ];
    Call { environment, ..Call::new(event, payload) }
}

fn recorded(name: &str) -> Call {
    call(name, fixture(name), "1")
}

/// A short session id: `S` for the recording's first session, `S2` for the one after /clear.
fn short(id: &str) -> String {
    let first = "5d20e1e5-4937-4c69-a085-49c47ebb9562";
    match id.split_once('.') {
        Some((_, agent)) => format!("sub:{}", &agent[..4]),
        None if id == first => "S".to_owned(),
        None => "S2".to_owned(),
    }
}

fn told(reading: &Reading) -> String {
    testing::reading(reading, short)
}

#[track_caller]
fn reads(name: &str, expected: &str) {
    let reading = ClaudeCode::read(&recorded(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(told(&reading), expected, "{name}");
}

#[track_caller]
fn answers(name: &str, found: Findings, expected: &str) {
    let (_, reply) = hook::<ClaudeCode>(&recorded(name), |_| found).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(testing::reply(&reply), expected, "{name}");
}

fn start() -> FakeHost {
    Fakes::default().at(1_000_000).start()
}

fn with_mail() -> Findings {
    Findings { mail: Some(mail("<mail>")), ..nothing_found() }
}

#[test]
fn every_recorded_payload_means_something() {
    let _host = start();
    reads("SessionStart-startup", "S; alive S; S Idle; protocol Start; attended; watches");
    reads("UserPromptSubmit-person", "S; S Busy; user spoke in S; fits 9000; attended");
    reads("UserPromptSubmit-wake", "S; S Busy");
    reads("UserPromptSubmit-subagent-done", "S; S Busy");
    reads("PreToolUse-mcp", "S; S Busy");
    reads("PreToolUse-Write", "S; S Busy; edits /home/u/app/a.txt");
    reads("PostToolUse-mcp", "S; S Busy; protocol Registration; fits 6500");
    reads("PostToolUse-Write", "S; S Busy; fits 6500");
    reads("PermissionRequest", "S; S NeedsInput");
    reads("Notification-permission_prompt", "S; S NeedsInput");
    reads("Stop", "S; S Idle; fits 9000");
    reads("Stop-again", "S; S Idle; fits 9000");
    reads("CwdChanged", "S; watches");
    reads("FileChanged", "S; fits 9000");
    reads("SubagentStop", "nobody; sub:a30f ended");
    reads("SubagentStop-internal", "nobody");
    reads("SessionStart-compact", "S; alive S; protocol Compaction; watches");
    reads("SessionEnd-clear", "nobody; S ended");
    reads("SessionStart-clear", "S2; alive S2; S goes on as S2; S2 Idle; protocol Compaction; attended; watches");
}

#[test]
fn a_clear_is_followed_also_where_no_hook_saw_the_end() {
    let _host = start();
    reads("SessionStart-startup", "S; alive S; S Idle; protocol Start; attended; watches");
    reads("SessionStart-clear", "S2; alive S2; S goes on as S2; S2 Idle; protocol Compaction; attended; watches");
}

#[test]
fn a_window_that_was_left_has_no_successor() {
    let _host = start();
    reads("SessionStart-startup", "S; alive S; S Idle; protocol Start; attended; watches");
    let left = fixture("SessionEnd-clear").replace("\"clear\"", "\"logout\"");
    ClaudeCode::read(&call("SessionEnd", left, "1")).expect("it is read");
    reads("SessionStart-clear", "S2; alive S2; S2 Idle; protocol Compaction; attended; watches");
}

#[test]
fn a_script_is_no_person() {
    let _host = start();
    let reading = ClaudeCode::read(&call("UserPromptSubmit", fixture("UserPromptSubmit-person"), "0"));
    assert_eq!(told(&reading.expect("it is read")), "S; S Busy; fits 9000");
}

#[test]
fn the_other_starts_say_why_the_protocol_is_told() {
    let _host = start();
    for (source, occasion) in [("resume", Occasion::Resume), ("fork", Occasion::Start)] {
        let payload = fixture("SessionStart-startup").replace("\"startup\"", &format!("\"{source}\""));
        let reading = ClaudeCode::read(&call("SessionStart", payload, "1")).expect("it is read");
        assert_eq!(reading.occasion, Some(occasion), "{source}");
        assert!(!reading.events.iter().any(|event| matches!(event, Event::Rebound(_))), "{source} keeps its own agent");
    }
}

#[test]
fn answers_take_the_shape_of_their_event() {
    let _host = start();
    let protocol = || Findings { protocol: Some("<protocol>".into()), ..with_mail() };
    answers(
        "SessionStart-startup",
        protocol(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"<protocol>\n\n<mail>","watchPaths":["/relay/wakes/session"]}} | - | shows mail"#,
    );
    answers(
        "UserPromptSubmit-person",
        with_mail(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"<mail>"}} | - | shows mail"#,
    );
    answers(
        "PostToolUse-mcp",
        protocol(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"<protocol>\n\n<mail>"}} | - | shows mail"#,
    );
    answers("PostToolUse-Write", nothing_found(), "0 | - | - | no mail");
    answers("PreToolUse-Write", nothing_found(), "0 | - | - | no mail");
    answers(
        "PreToolUse-Write",
        Findings { refusal: Some("a.txt is held by `bob`".into()), ..nothing_found() },
        r#"0 | {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"a.txt is held by `bob`"}} | - | no mail"#,
    );
    answers(
        "CwdChanged",
        with_mail(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"CwdChanged","watchPaths":["/relay/wakes/session"]}} | - | no mail"#,
    );
    answers(
        "Stop",
        with_mail(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"<mail>"}} | - | shows mail"#,
    );
    answers("Stop", nothing_found(), "0 | - | - | no mail");
    answers("PermissionRequest", with_mail(), "0 | - | - | no mail");
    answers("SessionEnd-clear", with_mail(), "0 | - | - | no mail");
}

#[test]
fn every_tool_that_writes_says_which_file() {
    let _host = start();
    let check = |tool: &str, field: &str, expected: &str| {
        let mut payload: Value = serde_json::from_str(&fixture("PreToolUse-Write")).expect("JSON");
        payload["tool_name"] = tool.into();
        payload["tool_input"] = serde_json::json!({ field: "src/a.rs" });
        payload["cwd"] = "/home/u/app".into();
        let reading = ClaudeCode::read(&call("PreToolUse", payload.to_string(), "1")).expect("it is read");
        assert_eq!(reading.edits.join(" "), expected, "{tool}");
    };
    for tool in ["Edit", "Write", "MultiEdit"] {
        check(tool, "file_path", "/home/u/app/src/a.rs");
    }
    check("NotebookEdit", "notebook_path", "/home/u/app/src/a.rs");
    check("Read", "file_path", "");
    check("Bash", "command", "");
}

#[test]
fn only_the_sessions_own_wake_file_wakes_it() {
    let _host = start();
    let wake_file = || "/home/u/.relay-mesh/wakes/s1".to_owned();
    answers("FileChanged", Findings { wake_file: wake_file(), ..with_mail() }, "2 | - | <mail> | shows mail");
    answers("FileChanged", Findings { wake_file: wake_file(), ..nothing_found() }, "0 | - | - | no mail");
    answers("FileChanged", with_mail(), "0 | - | - | no mail");
    for (from, to) in [("\"add\"", "\"unlink\""), ("/wakes/", "/src/")] {
        let payload = fixture("FileChanged").replace(from, to);
        assert_eq!(told(&ClaudeCode::read(&call("FileChanged", payload, "1")).expect("it is read")), "nobody");
    }
}

#[test]
fn the_end_of_a_turn_is_blocked_six_times_in_a_row_and_no_more() {
    let host = start();
    let room = |name: &str| ClaudeCode::read(&recorded(name)).expect("it is read").max_bytes;
    answers(
        "Stop",
        with_mail(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"<mail>"}} | - | shows mail"#,
    );
    for _ in 1..turns::MOST_BLOCKS {
        assert!(room("Stop-again") > 0);
        answers(
            "Stop-again",
            with_mail(),
            r#"0 | {"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"<mail>"}} | - | shows mail"#,
        );
    }
    assert_eq!(room("Stop-again"), 0, "after six");
    assert!(room("Stop") > 0, "a turn of its own begins the count again");
    assert!(host.state_keys().iter().all(|key| !key.starts_with("blocks/")));
}

#[test]
fn a_subagent_takes_mail_only_as_an_agent_of_its_own() {
    let _host = start();
    reads("PostToolUse-subagent", "sub:a337 of S2; sub:a337 Busy; protocol Registration");
    reads("PreToolUse-subagent", "sub:a337 of S2; sub:a337 Busy");
    reads("PostToolUse-subagent", "sub:a337 of S2; sub:a337 Busy; protocol Registration; fits 6500");
}

#[test]
fn what_is_old_is_cleared_away() {
    let host = start();
    reads("PreToolUse-mcp", "S; S Busy");
    assert_eq!(host.state_keys().iter().filter(|key| key.starts_with("call/")).count(), 1);
    host.advance(25 * 3_600_000);
    ClaudeCode::read(&recorded("SessionStart-startup")).expect("it is read");
    assert_eq!(host.state_keys(), [format!("window/{WINDOW}")]);
}

#[test]
fn an_unknown_event_or_shape_is_said_and_breaks_nothing() {
    let _host = start();
    let refused = |name: &str, payload: &str| match ClaudeCode::read(&call(name, payload.to_owned(), "1")) {
        Ok(reading) => told(&reading),
        Err(Error::Unsupported(what)) => format!("unsupported: {what}"),
        Err(Error::Failed(what)) => format!("failed: {what}"),
        Err(other) => format!("{other:?}"),
    };
    assert_eq!(
        refused("PostModelSwitch", r#"{"session_id":"s"}"#),
        "unsupported: Claude Code's hook `PostModelSwitch` has no meaning for the mesh"
    );
    assert_eq!(refused("Stop", r#"{"session_id":"s"}"#), "failed: the payload of Stop has no flag `stop_hook_active`");
    assert_eq!(refused("Stop", r#"{"stop_hook_active":true}"#), "failed: the payload of Stop has no text `session_id`");
    assert_eq!(
        refused("SessionStart", r#"{"session_id":"s","source":"nightly"}"#),
        "failed: SessionStart has an unknown source `nightly`"
    );
    assert!(refused("Stop", "not JSON").starts_with("failed: the payload of Stop is not JSON"));
}

#[test]
fn hooks_that_cursor_runs_are_not_ours() {
    let host = start();
    for name in ["SessionStart-startup", "UserPromptSubmit-person", "PreToolUse-mcp", "PostToolUse-mcp", "Stop"] {
        let by_payload = fixture(name).replacen('{', r#"{"cursor_version": "3.18.25","#, 1);
        let by_payload = call(name, by_payload, "1");
        let mut by_variable = Call { environment: Vec::new(), ..recorded(name) };
        by_variable.environment.push(("CURSOR_VERSION".into(), "2026.09.18-9a7762b".into()));
        for call in [by_payload, by_variable] {
            let (reading, reply) = hook::<ClaudeCode>(&call, |_| with_mail()).expect("it is answered");
            assert_eq!(
                (told(&reading), testing::reply(&reply)),
                ("nobody".into(), "0 | - | - | no mail".into()),
                "{name}"
            );
        }
    }
    assert!(host.state_keys().is_empty(), "nothing was remembered as a session of Claude Code");
    // Claude Code in a shell that Cursor's agent started.
    let mut inside = recorded("Stop");
    inside.environment.push(("CURSOR_VERSION".into(), "3.18.25".into()));
    assert_eq!(told(&ClaudeCode::read(&inside).expect("it is read")), "S; S Idle; fits 9000");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z_]{1,12}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_payload_is_too_strange(
        name in prop::sample::select(vec!["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Notification",
            "Stop", "SubagentStop", "FileChanged", "SessionEnd", "PermissionRequest", "Elicitation", "Nonsense"]),
        fixture_name in prop::sample::select(vec!["SessionStart-clear", "PreToolUse-Write", "FileChanged", "Stop", "PostToolUse-subagent"]),
        field in prop::sample::select(vec!["session_id", "source", "tool_name", "tool_input", "tool_use_id", "agent_id", "cwd",
            "prompt", "file_path", "reason", "notification_type", "stop_hook_active", "event"]),
        value in any_json(),
    ) {
        let _host = start();
        let mut payload: Value = serde_json::from_str(&fixture(fixture_name)).expect("a fixture is JSON");
        payload[field] = value;
        // No payload may cause a panic, and every reading must have an answer.
        let answered = hook::<ClaudeCode>(&call(name, payload.to_string(), "1"), |_| with_mail());
        if let Ok((reading, reply)) = answered {
            prop_assert!(reply.exit_code == 0 || (name == "FileChanged" && reply.exit_code == 2));
            prop_assert!(reading.max_bytes <= 9_000);
        }
    }
}
