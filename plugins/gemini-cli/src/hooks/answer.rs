//! Writes the reply in the shape that each event takes. The host's texts go in unchanged.

use relay_mesh_sdk::hooks::{Findings, Reply, with_ticket};
use relay_mesh_sdk::{Error, hook_output, turns};
use serde_json::json;

use crate::payload::{Event, Payload, Tool};

pub(super) fn answer(payload: &Payload, found: Findings) -> Result<Reply, Error> {
    let Findings { mail, protocol, refusal, ticket, .. } = found;
    let mail = mail.filter(|mail| !mail.text.is_empty());
    Ok(match &payload.event {
        // The reading after a /clear asks for nothing, so nothing is found.
        Event::SessionStart(_) => hook_output::context("SessionStart", protocol, None, []),
        Event::BeforeAgent { .. } => hook_output::context("BeforeAgent", protocol, mail, []),
        Event::AfterTool(_) => hook_output::context("AfterTool", protocol, mail, []),
        Event::BeforeTool(tool) => match (refusal, tool) {
            (Some(reason), _) => Reply::stdout(json!({"decision": "deny", "reason": reason}).to_string()),
            (None, Tool::Ours(_, arguments)) => match with_ticket(arguments, &ticket) {
                // These replace all the arguments.
                Some(arguments) => Reply::stdout(
                    json!({"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": arguments}}).to_string(),
                ),
                None => Reply::silent(),
            },
            (None, Tool::Writes(_) | Tool::Other) => Reply::silent(),
        },
        Event::AfterAgent { .. } => match mail {
            None => Reply::silent(),
            Some(mail) => {
                turns::count_block(&payload.session.id)?;
                hook_output::block(&mail)
            }
        },
        Event::Notification { .. } | Event::PreCompress { .. } | Event::SessionEnd { .. } => Reply::silent(),
    })
}
