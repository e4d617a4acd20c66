//! Writes the reply in the shape that each event takes. The host's texts go in unchanged.

use relay_mesh_sdk::hooks::{Findings, Reply};
use relay_mesh_sdk::{Error, hook_output, turns};

use crate::payload::{Event, Payload};

pub(super) fn answer(payload: &Payload, found: Findings) -> Result<Reply, Error> {
    let Findings { mail, protocol, refusal, .. } = found;
    let mail = mail.filter(|mail| !mail.text.is_empty());
    Ok(match &payload.event {
        Event::SessionStart(_) => hook_output::context("SessionStart", protocol, mail, []),
        Event::UserPromptSubmit { .. } => hook_output::context("UserPromptSubmit", None, mail, []),
        Event::PreToolUse { .. } => hook_output::deny("PreToolUse", refusal),
        Event::PostToolUse { .. } => hook_output::context("PostToolUse", protocol, mail, []),
        Event::Stop { .. } => match mail {
            None => Reply::silent(),
            Some(mail) => {
                turns::count_block(&payload.session().id)?;
                hook_output::block(&mail)
            }
        },
        Event::PreModelRequest { .. }
        | Event::PermissionRequest
        | Event::SubagentStart
        | Event::SubagentStop
        | Event::Interrupt
        | Event::SessionEnd => Reply::silent(),
    })
}
