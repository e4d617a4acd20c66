//! Hooks against payloads that the real client wrote (`fixtures/hooks`, named by its version), and rules that hold
//! for every payload.

use relay_mesh_sdk::hooks::{Call, Event, Findings};
use relay_mesh_sdk::testing::{self, Fakes, hook, mail, nothing_found};
use relay_mesh_sdk::{Error, Hooks, turns};

use crate::GeminiCli;

/// The session of most recordings, and the one that followed it after /clear.
const FIRST: &str = "5d20e1e5-4937-4c69-a085-49c47ebb9562";

fn recorded(name: &str) -> Call {
    testing::recorded(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"), &format!("0.61.0-{name}"))
}

/// A recorded call with a text in the payload replaced.
fn changed(name: &str, from: &str, to: &str) -> Call {
    let call = recorded(name);
    assert!(call.payload.contains(from), "{name} holds no {from}");
    Call { payload: call.payload.replace(from, to), ..call }
}

fn told(call: &Call) -> String {
    let short = |id: &str| if id == FIRST { "S".to_owned() } else { "S2".to_owned() };
    testing::reading(&GeminiCli::read(call).unwrap_or_else(|error| panic!("{}: {error}", call.name)), short)
}

#[track_caller]
fn reads(name: &str, expected: &str) {
    assert_eq!(told(&recorded(name)), expected, "{name}");
}

#[track_caller]
fn answers(name: &str, found: Findings, expected: &str) {
    let (_, reply) = hook::<GeminiCli>(&recorded(name), |_| found).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(testing::reply(&reply), expected, "{name}");
}

fn with_mail() -> Findings {
    Findings { mail: Some(mail("<mail>")), ..nothing_found() }
}

#[test]
fn every_recorded_payload_means_something() {
    let _host = Fakes::default().start();
    reads("SessionStart-startup", "S; alive S; S Idle; protocol Start");
    reads("SessionStart-resume", "S; alive S; S Idle; protocol Resume");
    reads("BeforeAgent-person", "S; S Busy; user spoke in S; fits 6500; attended");
    reads("BeforeAgent-mail", "S; S Busy");
    reads("BeforeTool-mcp", "S; S Busy");
    reads("BeforeTool-write_file", "S; S Busy; edits /home/u/app/a.txt");
    reads("AfterTool-mcp", "S; S Busy; protocol Registration; fits 6500");
    reads("AfterTool-write_file", "S; S Busy; fits 6500");
    reads("Notification-ToolPermission", "S; S NeedsInput");
    reads("AfterAgent", "S; S Idle; fits 9000");
    reads("AfterAgent-again", "S; S Idle; fits 9000");
    let stopped = changed("AfterAgent", "I have nothing to do.", "[no response text]");
    assert_eq!(told(&stopped), "S; user stopped S", "no mail goes on with what its user stopped");
    reads("PreCompress-auto", "S");
    reads("SessionEnd-exit", "nobody; S ended");
}

#[test]
fn after_a_clear_the_agent_follows_and_the_next_prompt_tells_the_protocol() {
    let _host = Fakes::default().start();
    reads("SessionEnd-clear", "nobody; S ended");
    reads("SessionStart-clear", "S2; alive S2; S goes on as S2; S2 Idle");
    reads("BeforeAgent-after-clear", "S2; S2 Busy; user spoke in S2; protocol Compaction; fits 6500; attended");
    reads("BeforeAgent-after-clear", "S2; S2 Busy; user spoke in S2; fits 6500; attended");
}

#[test]
fn of_two_windows_that_were_cleared_at_once_neither_is_followed() {
    let host = Fakes::default().start();
    reads("SessionEnd-clear", "nobody; S ended");
    told(&changed("SessionEnd-clear", FIRST, "another"));
    reads("SessionStart-clear", "S2; alive S2; S2 Idle");
    host.advance(6_000);
    reads("SessionEnd-clear", "nobody; S ended");
    reads("SessionStart-clear", "S2; alive S2; S goes on as S2; S2 Idle");
    reads("SessionEnd-clear", "nobody; S ended");
    let elsewhere = told(&changed("SessionStart-clear", "/home/u/app", "/home/u/other"));
    assert_eq!(elsewhere, "S2; alive S2; S2 Idle", "another folder's window");
}

#[test]
fn windows_that_were_cleared_at_once_are_told_apart_by_their_processes() {
    let _host = Fakes::default().start();
    let of = |process: &str, call: Call| Call { process: Some(process.to_owned()), ..call };
    told(&of("1.5", recorded("SessionEnd-clear")));
    told(&of("2.5", changed("SessionEnd-clear", FIRST, "another")));
    assert_eq!(told(&of("1.5", recorded("SessionStart-clear"))), "S2; alive S2; S goes on as S2; S2 Idle");
    let other = GeminiCli::read(&of("2.5", recorded("SessionStart-clear"))).expect("a reading");
    let follows = other.events.iter().any(|event| matches!(event, Event::Rebound((old, _)) if old == "another"));
    assert!(follows, "{other:?}");
    assert_eq!(other.speaker.expect("a session").process, Some(2), "the host sees when it is killed");
}

#[test]
fn what_a_person_compresses_is_told_again() {
    let _host = Fakes::default().start();
    reads("PreCompress-manual", "S");
    reads("BeforeAgent-after-compress", "S; S Busy; user spoke in S; protocol Compaction; fits 6500; attended");
}

#[test]
fn answers_take_the_shape_of_their_event() {
    let _host = Fakes::default().start();
    let protocol = || Findings { protocol: Some("<protocol>".into()), ..with_mail() };
    answers(
        "SessionStart-startup",
        protocol(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"<protocol>"}} | - | no mail"#,
    );
    answers(
        "BeforeAgent-person",
        with_mail(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"BeforeAgent","additionalContext":"<mail>"}} | - | shows mail"#,
    );
    answers(
        "AfterTool-mcp",
        protocol(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"AfterTool","additionalContext":"<protocol>\n\n<mail>"}} | - | shows mail"#,
    );
    answers("AfterTool-write_file", nothing_found(), "0 | - | - | no mail");
    answers(
        "BeforeTool-write_file",
        Findings { refusal: Some("a.txt is held by `bob`".into()), ..nothing_found() },
        r#"0 | {"decision":"deny","reason":"a.txt is held by `bob`"} | - | no mail"#,
    );
    answers("BeforeTool-write_file", nothing_found(), "0 | - | - | no mail");
    answers("AfterAgent", with_mail(), r#"0 | {"decision":"block","reason":"<mail>"} | - | shows mail"#);
    answers("AfterAgent", nothing_found(), "0 | - | - | no mail");
    answers("Notification-ToolPermission", with_mail(), "0 | - | - | no mail");
    answers("SessionEnd-exit", with_mail(), "0 | - | - | no mail");
}

#[test]
fn a_call_of_ours_gets_the_ticket_beside_all_its_arguments_and_no_other_does() {
    let _host = Fakes::default().start();
    let ticket = || Findings { ticket: r#"{"session":"S"}"#.into(), ..nothing_found() };
    answers(
        "BeforeTool-mcp",
        ticket(),
        r#"0 | {"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"name":"alice","_relay":{"ticket":{"session":"S"}}}}} | - | no mail"#,
    );
    answers("BeforeTool-write_file", ticket(), "0 | - | - | no mail");
    let command = r#""command":"/usr/local/bin/relay-mesh""#;
    for (server, gets) in [
        (r#""command":"/opt/thieves/bin/mcp""#, false),
        (r#""url":"http://127.0.0.1:7423/mcp""#, true),
        (r#""url":"http://example.com/mcp""#, false),
        (r#""url":"http://127.0.0.1.example.com:80/mcp""#, false),
    ] {
        let call = changed("BeforeTool-mcp", command, server);
        let (_, reply) = hook::<GeminiCli>(&call, |_| ticket()).expect("it is answered");
        assert_eq!(reply.stdout.is_some_and(|text| text.contains("ticket")), gets, "{server}");
    }
}

#[test]
fn the_end_of_a_turn_is_put_off_six_times_in_a_row_and_no_more() {
    let _host = Fakes::default().start();
    answers("AfterAgent", with_mail(), r#"0 | {"decision":"block","reason":"<mail>"} | - | shows mail"#);
    for _ in 1..turns::MOST_BLOCKS {
        answers("AfterAgent-again", with_mail(), r#"0 | {"decision":"block","reason":"<mail>"} | - | shows mail"#);
    }
    reads("AfterAgent-again", "S; S Idle");
    reads("AfterAgent", "S; S Idle; fits 9000");
}

#[test]
fn an_unknown_event_or_shape_is_said_and_breaks_nothing() {
    let _host = Fakes::default().start();
    let refused = |name: &str, payload: &str| {
        let call = Call::new(name, payload);
        match GeminiCli::read(&call) {
            Ok(_) => format!("{name} was read"),
            Err(Error::Unsupported(what)) => format!("unsupported: {what}"),
            Err(Error::Failed(what)) => format!("failed: {what}"),
            Err(other) => format!("{other:?}"),
        }
    };
    assert_eq!(
        refused("BeforeModel", r#"{"session_id":"s"}"#),
        "unsupported: Gemini CLI's hook `BeforeModel` has no meaning for the mesh"
    );
    assert_eq!(
        refused("AfterAgent", r#"{"session_id":"s"}"#),
        "failed: the payload of AfterAgent has no flag `stop_hook_active`"
    );
    assert_eq!(
        refused("AfterAgent", r#"{"stop_hook_active":true}"#),
        "failed: the payload of AfterAgent has no text `session_id`"
    );
    assert_eq!(
        refused("SessionStart", r#"{"session_id":"s","source":"nightly"}"#),
        "failed: SessionStart has an unknown source `nightly`"
    );
    assert!(refused("AfterAgent", "not JSON").starts_with("failed: the payload of AfterAgent is not JSON"));
}
