//! Writes the reply in the shape that each event takes: always one object, and never a permission that Cursor would
//! not have given by itself. The host's texts go in unchanged.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::hooks::{self, Findings, Reply, in_context};
use serde_json::{Value, json};

use super::read::ours;
use crate::memory;
use crate::payload::{Event, Payload, ToolCall};

pub(super) fn answer(payload: &Payload, found: Findings) -> Result<Reply, Error> {
    let Findings { mail, protocol, refusal, ticket, .. } = found;
    let mail = mail.filter(|mail| !mail.text.is_empty());
    Ok(match &payload.event {
        Event::SessionStart => context(in_context(protocol, None)),
        Event::PostToolUse(_) => context(in_context(protocol, mail.as_ref())).showing(mail.is_some()),
        Event::PreToolUse(call) => match (refusal, with_ticket(payload, call, &ticket)?) {
            (Some(reason), _) => {
                object(&json!({"permission": "deny", "user_message": reason, "agent_message": reason}))
            }
            (None, Some(arguments)) => object(&json!({"updated_input": arguments})),
            (None, None) => object(&json!({})),
        },
        Event::Stop { .. } => match mail {
            Some(mail) => object(&json!({"followup_message": mail.text})).showing(true),
            None => object(&json!({})),
        },
        Event::BeforeSubmitPrompt { .. }
        | Event::BeforeMcpExecution { .. }
        | Event::PostToolUseFailure(_)
        | Event::PreCompact
        | Event::SessionEnd => object(&json!({})),
    })
}

/// The arguments of one of our calls with the ticket added; none if the call is another server's.
fn with_ticket(payload: &Payload, call: &ToolCall, ticket: &str) -> Result<Option<Value>, Error> {
    let Some((tool, _)) = ours(payload, call) else { return Ok(None) };
    if memory::is_of_another_server(tool)? {
        return Ok(None);
    }
    Ok(hooks::with_ticket(&call.arguments, ticket))
}

fn context(text: Option<String>) -> Reply {
    match text {
        Some(text) => object(&json!({"additional_context": text})),
        None => object(&json!({})),
    }
}

/// An empty answer must be an object too: before a tool, anything but JSON blocks the tool.
fn object(value: &Value) -> Reply {
    Reply::stdout(value.to_string())
}
