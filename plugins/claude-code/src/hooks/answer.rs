//! The reply in the shape that each event takes. The host's text is placed, never reworded.

use relay_mesh_sdk::hooks::{Findings, Reply};
use relay_mesh_sdk::{Error, Mail};
use serde_json::{Map, Value, json};

use crate::memory;
use crate::payload::{Event, Payload};

/// Standard error of a FileChanged hook that ends so is put before an idle session, which wakes.
const WAKES: i32 = 2;

/// Words the answer to an event from what the host found.
pub(super) fn answer(payload: &Payload, found: Findings) -> Result<Reply, Error> {
    let Findings { mail, protocol, refusal, bell, .. } = found;
    let mail = mail.filter(|mail| !mail.text.is_empty());
    Ok(match &payload.event {
        Event::SessionStart(_) => {
            let watch = Some(bell).filter(|bell| !bell.is_empty()).map(|bell| ("watchPaths", json!([bell])));
            in_context("SessionStart", protocol, mail, watch)
        }
        Event::UserPromptSubmit { .. } => in_context("UserPromptSubmit", None, mail, None),
        Event::PostToolUse { .. } => in_context("PostToolUse", protocol, mail, None),
        Event::PreToolUse { .. } => match refusal {
            None => Reply::silent(),
            Some(reason) => hook_output(
                "PreToolUse",
                vec![("permissionDecision", json!("deny")), ("permissionDecisionReason", json!(reason))],
            ),
        },
        Event::Stop { .. } => match mail {
            None => Reply::silent(),
            Some(mail) => {
                memory::count_block(&payload.session().id)?;
                Reply::stdout(json!({"decision": "block", "reason": mail.text}).to_string()).showing(true)
            }
        },
        Event::FileChanged { path, gone: false } if *path == bell => match mail {
            None => Reply::silent(),
            Some(mail) => Reply { stderr: Some(mail.text), exit_code: WAKES, shows_mail: true, ..Reply::silent() },
        },
        Event::FileChanged { .. }
        | Event::PermissionRequest
        | Event::Elicitation
        | Event::ElicitationResult
        | Event::Notification { .. }
        | Event::SubagentStop { .. }
        | Event::SessionEnd { .. } => Reply::silent(),
    })
}

/// Text for the model, where the event lets us add some: the protocol first, then the mail.
fn in_context(event: &str, protocol: Option<String>, mail: Option<Mail>, extra: Option<(&str, Value)>) -> Reply {
    let shows_mail = mail.is_some();
    let texts: Vec<String> = protocol.into_iter().chain(mail.map(|mail| mail.text)).collect();
    let context = (!texts.is_empty()).then(|| ("additionalContext", Value::from(texts.join("\n\n"))));
    let fields: Vec<_> = context.into_iter().chain(extra).collect();
    if fields.is_empty() { Reply::silent() } else { hook_output(event, fields).showing(shows_mail) }
}

fn hook_output(event: &str, fields: Vec<(&str, Value)>) -> Reply {
    let named = std::iter::once(("hookEventName", Value::from(event))).chain(fields);
    let output: Map<String, Value> = named.map(|(name, value)| (name.to_owned(), value)).collect();
    Reply::stdout(json!({"hookSpecificOutput": output}).to_string())
}
