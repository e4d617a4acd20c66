//! Which conversation makes a call that has no ticket.
//!
//! Cursor's tools/call names no conversation, and one server process serves a whole window. The hook before the
//! tool puts a ticket into the arguments, but we have not seen whether Cursor passes them on for MCP tools. So the
//! hook also stores the call, and the only conversation that has just made this call is taken to be the caller.
//! That is an inference: a ticket overrides it, and it fails if two conversations made the same call.

use relay_mesh_sdk::sessions::{Caller, Detection};
use relay_mesh_sdk::{Error, Session, Sessions, dated_state};
use serde_json::{Map, Value};

use crate::Cursor;
use crate::memory::{self, Note};

impl Sessions for Cursor {
    fn detect(seen: &Caller) -> Result<Option<Detection>, Error> {
        let (Some(tool), Some(arguments)) = (&seen.tool, arguments(seen)) else { return Ok(None) };
        let fitting = memory::calls_like(tool, &arguments)?;
        let Some(conversation) = the_one_conversation(&fitting, seen.workdir.as_deref()) else { return Ok(None) };
        for (key, note) in fitting.iter().filter(|(_, note)| note.conversation == conversation) {
            // Another process may have taken it for the same call, reported twice.
            if dated_state::take::<Note>(key)?.is_some() {
                let workdir = note.workspaces.first().map_or("", String::as_str);
                return Ok(Some(Detection::inherited(Session::new(conversation, workdir))));
            }
        }
        Ok(None)
    }
}

fn arguments(seen: &Caller) -> Option<Map<String, Value>> {
    serde_json::from_str(seen.arguments.as_deref()?).ok()
}

/// The conversation that all matching calls belong to; if there are several, the only one in this folder.
fn the_one_conversation(fitting: &[(String, Note)], workdir: Option<&str>) -> Option<String> {
    let only = |notes: Vec<&Note>| {
        let first = notes.first()?.conversation.clone();
        notes.iter().all(|note| note.conversation == first).then_some(first)
    };
    only(fitting.iter().map(|(_, note)| note).collect()).or_else(|| {
        let workdir = workdir?;
        let here = fitting.iter().map(|(_, note)| note);
        only(here.filter(|note| note.workspaces.iter().any(|folder| folder == workdir)).collect())
    })
}

#[cfg(test)]
mod tests {
    use relay_mesh_sdk::sessions::{Certainty, Transport};
    use relay_mesh_sdk::testing::{FakeHost, Fakes};
    use serde_json::json;

    use super::*;
    use crate::payload::ToolCall;

    /// A hook saw `conversation` call a tool in `folder`.
    fn noted(conversation: &str, folder: &str, tool: &str, arguments: &Value) {
        let arguments = arguments.as_object().expect("an object").clone();
        let note = Note::new(conversation, &[folder.to_owned()], tool, &arguments);
        let use_id = Some(format!("call of {conversation}\nfc_1"));
        let call = ToolCall { mcp: Some(tool.to_owned()), use_id, arguments, writes: None };
        memory::remember_call(&call, &note).expect("it is remembered");
    }

    #[track_caller]
    fn check(tool: &str, arguments: &Value, workdir: Option<&str>, expected: &str) {
        let detected = Cursor::detect(&Caller {
            transport: Transport::Stdio,
            client_name: Some("cursor-vscode".into()),
            client_version: Some("1.0.0".into()),
            meta: Some(r#"{"progressToken":1}"#.into()),
            headers: Vec::new(),
            tool: Some(tool.into()),
            arguments: Some(arguments.to_string()),
            environment: Vec::new(),
            workdir: workdir.map(str::to_owned),
        });
        let told = detected.expect("it is detected").map_or("nobody".to_owned(), |Detection { session, certainty }| {
            assert_eq!(certainty, Certainty::Inherited, "an inference yields to a ticket");
            format!("{} in {}", session.id, session.workdir)
        });
        assert_eq!(told, expected);
    }

    fn start() -> FakeHost {
        Fakes::default().at(1_000_000).start()
    }

    #[test]
    fn the_conversation_that_just_made_this_call_is_the_caller_once() {
        let _host = start();
        noted("c1", "/app", "send_message", &json!({"to": "bob", "body": "hello"}));
        noted("c2", "/app", "send_message", &json!({"to": "bob", "body": "bye"}));
        check("send_message", &json!({"to": "bob", "body": "other"}), None, "nobody");
        check("list_agents", &json!({"to": "bob", "body": "bye"}), None, "nobody");
        check("send_message", &json!({"body": "bye", "to": "bob"}), None, "c2 in /app");
        check("send_message", &json!({"to": "bob", "body": "bye"}), None, "nobody");
        check("send_message", &json!({"to": "bob", "body": "hello"}), None, "c1 in /app");
    }

    #[test]
    fn of_two_that_made_the_same_call_the_one_in_the_servers_folder_is_meant() {
        let _host = start();
        noted("c1", "/app", "list_agents", &json!({}));
        noted("c2", "/other", "list_agents", &json!({}));
        check("list_agents", &json!({}), None, "nobody");
        check("list_agents", &json!({}), Some("/elsewhere"), "nobody");
        check("list_agents", &json!({}), Some("/other"), "c2 in /other");
        check("list_agents", &json!({}), None, "c1 in /app");
    }

    #[test]
    fn a_call_of_long_ago_is_nobodys() {
        let host = start();
        noted("c1", "/app", "list_agents", &json!({}));
        host.advance(memory::CALLS_LAST + 1);
        check("list_agents", &json!({}), None, "nobody");
    }
}
