//! What a caller may ask of a thread beside its prompt. What would let it do more than its reach gives is refused, unless
//! the user's own settings allow it.

use std::path::Path;

use mcp::NewThread;
use mesh::driven::LONGEST_REQUEST;
use mesh::ports::driver::Approvals;
use mesh::tool_threads::ThreadRow;

use crate::config::ThreadSettings;
use crate::errors::{CommandError, Failure};
use crate::exit::Exit;

/// Settings of a harness that change how its model thinks and what it shows, and nothing of what it may do.
const HARMLESS: [&str; 9] = [
    "hide_agent_reasoning",
    "model_auto_compact_token_limit",
    "model_context_window",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
    "personality",
    "show_raw_agent_reasoning",
    "tool_output_token_limit",
];
/// The longest prompt file, in bytes.
const LONGEST_FILE: u64 = 128 * 1024;

/// An error if a call asks for more than the user's settings allow.
pub(super) fn check(new: &NewThread, settings: &ThreadSettings) -> Result<(), CommandError> {
    if new.prompt.trim().is_empty() {
        return Err(CommandError::usage("the prompt is empty", "say what the agent is to do"));
    }
    let texts = [&new.base, &new.instructions, &new.compaction].into_iter().flatten();
    if texts.map(String::len).max().unwrap_or(0).max(new.prompt.len()) > LONGEST_REQUEST {
        return Err(CommandError::usage("a text is too long", "put what is long into a file, and name that"));
    }
    widens(new.approvals, new.settings.keys(), settings)
        .map_or(Ok(()), |widens| Err(refused(&widens, "is not allowed to callers of this tool", "leave it out")))
}

/// An error if a thread that is gone on with has what the user's settings no longer allow.
pub(super) fn check_again(row: &ThreadRow, settings: &ThreadSettings) -> Result<(), CommandError> {
    let usual = settings.defaults(row.role.as_deref()).ok().map(|defaults| defaults.approvals);
    let asked = Some(row.approvals).filter(|_| usual != Some(row.approvals));
    let keys = row.tailoring.settings.iter().map(|(key, _)| key);
    widens(asked, keys, settings).map_or(Ok(()), |widens| {
        Err(refused(&widens, "is not allowed to callers any more, and the thread has it", "begin a new thread"))
    })
}

/// What would let a thread do more than its reach gives and the user's settings do not allow.
struct Widens {
    /// As it is shown.
    what: String,
    /// What would have to be allowed.
    word: String,
}

fn widens<'k>(
    approvals: Option<Approvals>,
    mut keys: impl Iterator<Item = &'k String>,
    settings: &ThreadSettings,
) -> Option<Widens> {
    if approvals == Some(Approvals::Refuse) && !settings.allows("approval-policy=never") {
        return Some(Widens {
            what: "the approval policy `never`".to_owned(),
            word: "approval-policy=never".to_owned(),
        });
    }
    let key = keys.find(|key| !HARMLESS.contains(&key.as_str()) && !settings.allows(&format!("config.{key}")))?;
    let shown: String = key.chars().filter(|letter| !letter.is_control()).take(80).collect();
    Some(Widens { what: format!("`{shown}` in config"), word: format!("config.{shown}") })
}

fn refused(widens: &Widens, how: &str, way: &str) -> CommandError {
    let Widens { what, word } = widens;
    Failure {
        what: format!("{what} {how}"),
        hint: Some(format!("{way}; the user can add \"{word}\" to `allow` in `[codex]` of their own settings")),
        exit: Exit::Refused,
        source: None,
    }
    .into()
}

/// That an agent asks for everything without the user having allowed that for good.
pub(super) fn unguarded(agent: &mesh::names::AgentName, harness: &str) -> CommandError {
    Failure {
        what: format!("the user has not allowed `{agent}` to have an agent of {harness} that nothing holds back"),
        hint: Some(format!(
            "ask for less, or let the user run `relay-mesh spawn allow {agent} {harness} --reach unguarded` in a terminal"
        )),
        exit: Exit::Refused,
        source: None,
    }
    .into()
}

/// The text of a prompt file of the settings.
pub(super) fn prompt_file(path: &Path) -> Result<String, CommandError> {
    let failed = |source| {
        CommandError::caused_by(
            &format!("the prompt file `{}` cannot be read", path.display()),
            Some("`relay-mesh config` shows which settings name it".to_owned()),
            Exit::Usage,
            source,
        )
    };
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > LONGEST_FILE {
        return Err(CommandError::usage(
            &format!("the prompt file `{}` has {length} bytes", path.display()),
            "make it shorter than 128 KiB",
        ));
    }
    std::fs::read_to_string(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_what_widens_is_refused_and_what_does_not_is_taken() {
        let check = |new: NewThread, expected: Option<&str>| {
            let new = NewThread { prompt: "look".to_owned(), ..new };
            let error = super::check(&new, &ThreadSettings::default()).err().map(|error| error.to_string());
            assert!(error.as_deref().unwrap_or_default().contains(expected.unwrap_or_default()), "{error:?}");
            assert_eq!(error.is_some(), expected.is_some(), "{new:?}");
        };
        let config = |key: &str| {
            let settings = [(key.to_owned(), serde_json::json!("x"))].into_iter().collect();
            NewThread { settings, ..NewThread::default() }
        };
        check(NewThread::default(), None);
        check(config("model_reasoning_effort"), None);
        for key in ["sandbox_mode", "mcp_servers.evil.command", "shell_environment_policy", "approval_policy", "notify"]
        {
            check(config(key), Some(key));
        }
        check(NewThread { approvals: Some(Approvals::Refuse), ..NewThread::default() }, Some("`never`"));
        check(NewThread { approvals: Some(Approvals::Ask), ..NewThread::default() }, None);
        let long = Some("x".repeat(LONGEST_REQUEST + 1));
        check(NewThread { instructions: long, ..NewThread::default() }, Some("too long"));
    }
}
