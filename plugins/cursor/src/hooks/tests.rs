//! Hooks against payloads of the documented shapes (`fixtures/hooks/`, none of them recorded by us), and rules that
//! hold for every payload.

use proptest::prelude::*;
use relay_mesh_sdk::hooks::{Call, Findings};
use relay_mesh_sdk::testing::{self, FakeHost, Fakes, hook, mail, nothing_found};
use relay_mesh_sdk::{Error, Hooks};
use serde_json::{Value, json};

use crate::Cursor;

fn fixture(name: &str) -> String {
    testing::recorded(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"), &format!("documented-{name}")).payload
}

fn call(name: &str, payload: String) -> Call {
    let event = name.split('-').next().unwrap_or(name).to_owned();
    Call::new(event, payload)
}

fn documented(name: &str) -> Call {
    call(name, fixture(name))
}

/// The fixture with some fields changed.
fn changed(name: &str, fields: &Value) -> Call {
    let mut payload: Value = serde_json::from_str(&fixture(name)).expect("a fixture is JSON");
    for (field, value) in fields.as_object().expect("an object") {
        payload[field] = value.clone();
    }
    call(name, payload.to_string())
}

#[track_caller]
fn read(call: &Call) -> String {
    let reading = Cursor::read(call).unwrap_or_else(|error| panic!("{}: {error}", call.name));
    testing::reading(&reading, |id| if id.starts_with("5b0d6c1e") { "C".to_owned() } else { id.to_owned() })
}

#[track_caller]
fn reads(name: &str, expected: &str) {
    assert_eq!(read(&documented(name)), expected, "{name}");
}

#[track_caller]
fn answers(call: &Call, found: Findings, expected: &str) {
    let (_, reply) = hook::<Cursor>(call, |_| found).unwrap_or_else(|error| panic!("{}: {error}", call.name));
    assert_eq!(testing::reply(&reply), expected, "{}", call.name);
}

fn start() -> FakeHost {
    Fakes::default().at(1_000_000).start()
}

fn with_mail() -> Findings {
    Findings { mail: Some(mail("<mail>")), ..nothing_found() }
}

fn calls(host: &FakeHost) -> usize {
    host.state_keys().iter().filter(|key| key.starts_with("call/")).count()
}

#[test]
fn every_documented_payload_means_something() {
    let _host = start();
    reads("sessionStart", "C; alive C; C Idle; protocol Start");
    reads("beforeSubmitPrompt", "C; C Busy; user spoke in C");
    reads("beforeSubmitPrompt-followup", "C; C Busy");
    reads("preToolUse-mcp", "C; C Busy");
    reads("preToolUse-mcp-another", "C; C Busy");
    reads("preToolUse-Write", "C; C Busy; edits /home/u/app/a.txt");
    reads("preToolUse-Shell", "C; C Busy");
    reads("beforeMCPExecution", "C; C Busy");
    reads("postToolUse-mcp", "C; C Busy; protocol Registration; fits 6500");
    reads("postToolUse-Shell", "C; C Busy; fits 6500");
    reads("postToolUseFailure", "C; C Busy");
    reads("stop", "C; C Idle; fits 9000");
    reads("stop-aborted", "C; C Idle; user stopped C");
    reads("sessionEnd", "nobody; C ended");
}

#[test]
fn a_path_within_the_project_is_made_absolute() {
    let _host = start();
    let relative = changed("preToolUse-Write", &json!({"tool_input": {"file_path": "src/a.rs"}}));
    assert_eq!(read(&relative), "C; C Busy; edits /home/u/app/src/a.rs");
    let deleted = changed("preToolUse-Write", &json!({"tool_name": "Delete", "tool_input": {"path": "b"}}));
    assert_eq!(read(&deleted), "C; C Busy; edits /home/u/app/b");
    let read_only = changed("preToolUse-Write", &json!({"tool_name": "Read"}));
    assert_eq!(read(&read_only), "C; C Busy");
}

#[test]
fn what_was_compacted_is_told_the_protocol_with_its_next_tool_and_once() {
    let _host = start();
    reads("preCompact", "C; C Busy");
    reads("postToolUse-Shell", "C; C Busy; protocol Compaction; fits 6500");
    reads("postToolUse-Shell", "C; C Busy; fits 6500");
}

#[test]
fn a_turn_is_gone_on_with_as_often_as_cursor_allows() {
    let _host = start();
    for (loop_count, expected) in [(4, "C; C Idle; fits 9000"), (5, "C; C Idle"), (6, "C; C Idle")] {
        assert_eq!(read(&changed("stop", &json!({"loop_count": loop_count}))), expected, "{loop_count}");
    }
    assert_eq!(read(&changed("stop", &json!({"status": "error"}))), "C; C Idle");
}

#[test]
fn answers_take_the_shape_of_their_event() {
    let _host = start();
    let protocol = || Findings { protocol: Some("<protocol>".into()), ..with_mail() };
    // The editor may drop what this hook adds, so it shows no mail.
    answers(&documented("sessionStart"), protocol(), r#"0 | {"additional_context":"<protocol>"} | - | no mail"#);
    answers(
        &documented("postToolUse-mcp"),
        protocol(),
        r#"0 | {"additional_context":"<protocol>\n\n<mail>"} | - | shows mail"#,
    );
    answers(&documented("postToolUse-Shell"), nothing_found(), "0 | {} | - | no mail");
    answers(&documented("stop"), with_mail(), r#"0 | {"followup_message":"<mail>"} | - | shows mail"#);
    answers(&documented("stop"), nothing_found(), "0 | {} | - | no mail");
    for silent in ["beforeSubmitPrompt", "beforeMCPExecution", "postToolUseFailure", "preCompact", "sessionEnd"] {
        answers(&documented(silent), protocol(), "0 | {} | - | no mail");
    }
    answers(
        &documented("preToolUse-Write"),
        Findings { refusal: Some("a.txt is held by `bob`".into()), ..nothing_found() },
        r#"0 | {"permission":"deny","user_message":"a.txt is held by `bob`","agent_message":"a.txt is held by `bob`"} | - | no mail"#,
    );
    answers(&documented("preToolUse-Write"), nothing_found(), "0 | {} | - | no mail");
}

#[test]
fn our_own_tools_get_a_ticket_and_nobody_elses() {
    let _host = start();
    let ticket = || Findings { ticket: r#"{"proof":"00"}"#.into(), ..nothing_found() };
    let with = r#"0 | {"updated_input":{"to":"bob","body":"The build is green.","_relay":{"ticket":{"proof":"00"}}}} | - | no mail"#;
    answers(&documented("preToolUse-mcp"), ticket(), with);
    let by_server = changed("preToolUse-mcp", &json!({"tool_name": "MCP:relay-mesh:send_message"}));
    answers(&by_server, ticket(), with);
    answers(&documented("preToolUse-mcp-another"), ticket(), "0 | {} | - | no mail");
    answers(&documented("preToolUse-Shell"), ticket(), "0 | {} | - | no mail");
    // A host that made no ticket.
    answers(
        &documented("preToolUse-mcp"),
        Findings { ticket: String::new(), ..nothing_found() },
        "0 | {} | - | no mail",
    );
    // Another server has a tool that looks the same, and Cursor says so before the call.
    answers(&documented("beforeMCPExecution-another"), ticket(), "0 | {} | - | no mail");
    answers(&documented("preToolUse-mcp"), ticket(), "0 | {} | - | no mail");
}

#[test]
fn a_call_is_noted_until_it_ends() {
    let host = start();
    let ended = changed(
        "postToolUse-mcp",
        &json!({"tool_name": "MCP:send_message",
        "tool_input": {"to": "bob", "body": "The build is green."}}),
    );
    for end in [ended, documented("stop"), documented("sessionEnd")] {
        read(&documented("preToolUse-mcp"));
        read(&documented("preToolUse-mcp"));
        read(&documented("beforeMCPExecution"));
        assert_eq!(calls(&host), 1, "told three times, noted once");
        read(&end);
        assert_eq!(calls(&host), 0, "{}", end.name);
    }
    read(&documented("beforeMCPExecution"));
    assert_eq!(calls(&host), 1, "where only this hook saw it");
    read(&documented("beforeMCPExecution-another"));
    assert_eq!(calls(&host), 0, "it was somebody else's");
    read(&documented("preToolUse-mcp"));
    assert_eq!(calls(&host), 0, "and from now on only the hook that names the server is believed");
    read(&documented("beforeMCPExecution"));
    assert_eq!(calls(&host), 1);
    host.advance(11 * 60_000);
    read(&documented("sessionStart"));
    assert_eq!(calls(&host), 0, "after some minutes nobody comes for it");
}

#[test]
fn an_unknown_event_or_shape_is_said_and_breaks_nothing() {
    let _host = start();
    let refused = |name: &str, payload: &str| match Cursor::read(&call(name, payload.to_owned())) {
        Ok(_) => "read".to_owned(),
        Err(Error::Unsupported(what)) => format!("unsupported: {what}"),
        Err(Error::Failed(what)) => format!("failed: {what}"),
        Err(other) => format!("{other:?}"),
    };
    assert_eq!(
        refused("afterAgentThought", r#"{"conversation_id":"c"}"#),
        "unsupported: Cursor's hook `afterAgentThought` has no meaning for the mesh"
    );
    assert_eq!(refused("stop", r#"{"conversation_id":"c"}"#), "failed: the payload of stop has no text `status`");
    assert_eq!(
        refused("sessionStart", r#"{"workspace_roots":[]}"#),
        "failed: the payload of sessionStart has no text `conversation_id`"
    );
    assert_eq!(refused("sessionStart", r#"{"session_id":"c"}"#), "read");
    assert!(refused("stop", "not JSON").starts_with("failed: the payload of stop is not JSON"));
}

proptest! {
    #[test]
    fn no_payload_is_too_strange(
        name in prop::sample::select(vec!["sessionStart", "beforeSubmitPrompt", "preToolUse", "beforeMCPExecution",
            "postToolUse", "postToolUseFailure", "preCompact", "stop", "sessionEnd", "nonsense"]),
        fixture_name in prop::sample::select(vec!["preToolUse-mcp", "beforeMCPExecution", "postToolUse-Shell", "stop"]),
        field in prop::sample::select(vec!["conversation_id", "session_id", "workspace_roots", "tool_name", "tool_input",
            "tool_use_id", "prompt", "status", "loop_count", "mcp_server_name", "command"]),
        value in prop::sample::select(vec![json!(null), json!(true), json!(-1), json!(1e300), json!(""), json!("MCP:"),
            json!("//\n\u{0}"), json!([]), json!([1, "a"]), json!({}), json!({"to": {"to": []}}), json!("{\"to\":1}")]),
    ) {
        let _host = start();
        // No payload may cause a panic, and every answer is one object with exit code 0.
        let answered = hook::<Cursor>(&Call { name: name.to_owned(), ..changed(fixture_name, &json!({field: value})) }, |_| with_mail());
        if let Ok((reading, reply)) = answered {
            prop_assert!(reading.max_bytes <= 9_000);
            prop_assert_eq!(reply.exit_code, 0);
            let printed: Value = serde_json::from_str(reply.stdout.as_deref().unwrap_or_default()).expect("JSON");
            prop_assert!(printed.is_object());
            prop_assert!(printed.get("permission").is_none());
        }
    }
}
