//! Writes the reply in the shape that each event takes. The host's texts go in unchanged.

use relay_mesh_sdk::hooks::{Findings, Reply};
use relay_mesh_sdk::{Error, hook_output, turns};
use serde_json::{Value, json};

use crate::payload::{Event, Payload};

/// Claude Code shows an idle session the standard error of a FileChanged hook with this exit code, which wakes it.
const WAKES: i32 = 2;

pub(super) fn answer(payload: &Payload, found: Findings) -> Result<Reply, Error> {
    let Findings { mail, protocol, refusal, wake_file, .. } = found;
    let mail = mail.filter(|mail| !mail.text.is_empty());
    Ok(match &payload.event {
        Event::SessionStart(_) => hook_output::context("SessionStart", protocol, mail, watch(wake_file)),
        Event::CwdChanged => hook_output::context("CwdChanged", None, None, watch(wake_file)),
        Event::UserPromptSubmit { .. } => hook_output::context("UserPromptSubmit", None, mail, []),
        Event::PostToolUse { .. } => hook_output::context("PostToolUse", protocol, mail, []),
        Event::PreToolUse { .. } => hook_output::deny("PreToolUse", refusal),
        Event::Stop { .. } => match mail {
            None => Reply::silent(),
            Some(mail) => {
                turns::count_block(&payload.session().id)?;
                // Context keeps the turn going too. As the reason of a block the model would read the mail twice.
                hook_output::context("Stop", None, Some(mail), [])
            }
        },
        Event::FileChanged { path, gone: false } if *path == wake_file => match mail {
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

/// Asks Claude Code to watch the wake file. Only SessionStart, CwdChanged and FileChanged hooks may name files.
fn watch(wake_file: String) -> Option<(&'static str, Value)> {
    Some(wake_file).filter(|wake_file| !wake_file.is_empty()).map(|wake_file| ("watchPaths", json!([wake_file])))
}
