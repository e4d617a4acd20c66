//! Hooks of an `agent-relay.yaml`, as this program's.

use std::collections::BTreeMap;

use mesh::event_hooks::{HookAction, HookTrigger};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::WebhookUrl;
use super::placeholder::with_variables;

/// Why a file is not taken over. Nothing of it is.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub(crate) struct ImportError {
    line: u64,
    what: String,
}

/// One hook of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportedHook {
    /// The harness, as the file names it.
    pub(crate) harness: String,
    pub(crate) on: HookTrigger,
    pub(crate) action: HookAction,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    hooks: BTreeMap<String, OfHarness>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfHarness {
    #[serde(default, alias = "on_turn_started")]
    on_turn_start: Vec<Spanned<Action>>,
    #[serde(default, alias = "on_turn_completed")]
    on_turn_complete: Vec<Spanned<Action>>,
    #[serde(default, alias = "on_error")]
    on_turn_failed: Vec<Spanned<Action>>,
    #[serde(default, alias = "on_item_started")]
    on_item_start: Vec<Spanned<Action>>,
    #[serde(default, alias = "on_file_changed")]
    on_file_change: Vec<Spanned<Action>>,
    #[serde(default)]
    on_command_executed: Vec<Spanned<Action>>,
    #[serde(default)]
    on_approval_needed: Vec<Spanned<Action>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Action {
    command: Option<String>,
    relay: Option<String>,
    webhook: Option<String>,
    /// The text of the notice is the event's.
    #[serde(alias = "notification")]
    notify: Option<serde_json::Value>,
}

/// The hooks of a file, in its order for each event.
pub(crate) fn imported(text: &str) -> Result<Vec<ImportedHook>, ImportError> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| ImportError {
        line: error.location().map_or(1, |location| location.line()),
        what: plain(&error.without_snippet().to_string()),
    })?;
    let mut hooks = Vec::new();
    for (harness, of_it) in file.hooks {
        for (on, actions) in [
            (HookTrigger::TurnStarted, of_it.on_turn_start),
            (HookTrigger::TurnCompleted, of_it.on_turn_complete),
            (HookTrigger::TurnFailed, of_it.on_turn_failed),
            (HookTrigger::ItemStarted, of_it.on_item_start),
            (HookTrigger::FileChanged, of_it.on_file_change),
            (HookTrigger::CommandRun, of_it.on_command_executed),
            (HookTrigger::NeedsInput, of_it.on_approval_needed),
        ] {
            for Spanned { value, referenced, .. } in actions {
                let action = action(value).map_err(|what| ImportError { line: referenced.line(), what })?;
                hooks.push(ImportedHook { harness: harness.clone(), on, action });
            }
        }
    }
    Ok(hooks)
}

fn action(action: Action) -> Result<HookAction, String> {
    let Action { command, relay, webhook, notify } = action;
    match (command, relay, webhook, notify) {
        (Some(command), None, None, None) => {
            Ok(HookAction::Run(with_variables(&command).map_err(|error| error.to_string())?))
        }
        // Names are in lower case here.
        (None, Some(to), None, None) => Ok(HookAction::Tell(to.to_ascii_lowercase())),
        (None, None, Some(url), None) => {
            url.parse::<WebhookUrl>().map_err(|error| error.to_string())?;
            Ok(HookAction::Post(url))
        }
        (None, None, None, Some(_)) => Ok(HookAction::Notify),
        (None, None, None, None) => Err("a hook does nothing: it needs command, relay, webhook or notify".to_owned()),
        _ => Err("a hook does one thing: write each of command, relay, webhook and notify as an entry".to_owned()),
    }
}

/// The first line of an error, without the place, which stands before it.
fn plain(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(" at line ").next().unwrap_or(line);
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole of what agent-relay documents.
    const WHOLE: &str = r##"hooks:
  codex:
    on_turn_complete:
      - command: "npm test"
      - relay: "Lead"
    on_file_change:
      - command: "npx eslint --fix ${file}"
    on_command_executed:
      - relay: "#audit"
    on_approval_needed:
      - relay: "Lead"
      - notify: true
      - webhook: "https://hooks.example.org/x"
    on_turn_start: [ { command: "date" } ]
    on_item_start: []
"##;

    #[test]
    fn a_whole_file_becomes_hooks() {
        let hooks = imported(WHOLE).expect("it is taken over");
        let words: Vec<String> = hooks.iter().map(|hook| format!("{} {:?}", hook.on, hook.action)).collect();
        let expected = [
            r#"turn-started Run("date")"#,
            r#"turn-completed Run("npm test")"#,
            r#"turn-completed Tell("lead")"#,
            r#"file-changed Run("npx eslint --fix \"$RELAY_FILE\"")"#,
            r##"command-run Tell("#audit")"##,
            r#"needs-input Tell("lead")"#,
            "needs-input Notify",
            r#"needs-input Post("https://hooks.example.org/x")"#,
        ];
        assert_eq!(words, expected);
        assert!(hooks.iter().all(|hook| hook.harness == "codex"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let check = |text: &str, line: u64, expected: &str| {
            let error = imported(text).expect_err("it is wrong");
            assert_eq!(error.line, line, "{error}\n{text}");
            assert!(error.what.contains(expected), "{error}\n{text}");
        };
        check("hooks:\n  codex:\n    on_turn_over:\n      - relay: a\n", 3, "on_turn_over");
        check("hooks:\n  codex:\n    on_turn_complete:\n      - shout: a\n", 4, "shout");
        check("hooks:\n  codex:\n    on_turn_complete:\n      - relay: a\n        command: b\n", 4, "does one thing");
        check("hooks:\n  codex:\n    on_turn_complete:\n      - {}\n", 4, "does nothing");
        check("hooks:\n  codex:\n    on_file_change:\n      - command: sh -c 'x ${file}'\n", 4, "second shell");
        check("hooks:\n  codex:\n    on_file_change:\n      - webhook: http://example.org\n", 4, "in the clear");
        check("agents: {}\n", 1, "agents");
        check("hooks: [\n", 1, "mapping");
    }
}
