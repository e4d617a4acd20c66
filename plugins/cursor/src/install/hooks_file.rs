//! `hooks.json`, and the rules by which Cursor ignores the whole file.

use std::fmt;

use relay_mesh_sdk::edit::jsonc::{Document, Occupied};
use relay_mesh_sdk::hook_settings;
use serde_json::{Value, json};

use super::entries::is_our_hook;

/// The events that Cursor knows. If the file has any other name, Cursor ignores the file silently.
const KNOWN: &[&str] = &[
    "sessionStart",
    "sessionEnd",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "subagentStart",
    "subagentStop",
    "beforeShellExecution",
    "afterShellExecution",
    "beforeMCPExecution",
    "afterMCPExecution",
    "beforeReadFile",
    "afterFileEdit",
    "beforeTabFileRead",
    "afterTabFileEdit",
    "beforeSubmitPrompt",
    "preCompact",
    "stop",
    "afterAgentResponse",
    "afterAgentThought",
    "workspaceOpen",
];

/// Why our hooks cannot go into the file.
#[derive(Debug)]
pub(super) enum Refused {
    /// The file holds a value of another type where ours should go.
    Occupied(Occupied),
    /// Cursor ignores the file, and correcting it would switch on the hooks that others wrote.
    Void(Void),
}

/// Why Cursor ignores a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Void {
    /// It lacks the number of its format.
    Version,
    /// It names an event that does not exist.
    Event(String),
    /// A text in it holds what Cursor reads as the start of a comment, such as a URL.
    Slashes(String),
}

/// Adds our hooks. If we create the file, the number of its format goes after them, by which a removal knows that
/// the file did not exist before.
pub(super) fn put(document: &mut Document, wanted: &[(&str, Value)]) -> Result<(), Refused> {
    if let Some(void) = document.get(&[]).as_ref().and_then(void) {
        return Err(Refused::Void(void));
    }
    hook_settings::put(document, wanted, is_our_hook)?;
    if document.get(&["version"]).is_none() {
        document.set(&["version"], &json!(1))?;
    }
    Ok(())
}

/// Removes our hooks, and the number of the format if we added it.
pub(super) fn take(document: &mut Document) {
    let numbered_by_us = document.get(&[]).as_ref().and_then(Value::as_object).is_some_and(|members| {
        let position = |name: &str| members.keys().position(|key| key == name);
        position("hooks") < position("version") && position("hooks").is_some()
    });
    let mut without = document.clone();
    hook_settings::take(&mut without, is_our_hook);
    // In the reverse order of the install.
    if numbered_by_us && without.get(&["hooks"]).is_none() {
        document.remove(&["version"]);
    }
    hook_settings::take(document, is_our_hook);
}

/// Why Cursor would ignore a file with this content; none if it reads it.
pub(super) fn void(settings: &Value) -> Option<Void> {
    let hooks = settings.get("hooks").and_then(Value::as_object);
    if let Some(unknown) = hooks.and_then(|hooks| hooks.keys().find(|event| !KNOWN.contains(&event.as_str()))) {
        return Some(Void::Event(unknown.clone()));
    }
    if let Some(text) = text_with_slashes(settings) {
        return Some(Void::Slashes(text.to_owned()));
    }
    let numbered = settings.get("version").and_then(Value::as_u64).is_some_and(|version| version > 0);
    let unbegun = settings.get("hooks").is_none() && settings.get("version").is_none();
    (!numbered && !unbegun).then_some(Void::Version)
}

fn text_with_slashes(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => text.contains("//").then_some(text),
        Value::Array(elements) => elements.iter().find_map(text_with_slashes),
        Value::Object(members) => members
            .iter()
            .find_map(|(name, value)| if name.contains("//") { Some(name.as_str()) } else { text_with_slashes(value) }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

impl Void {
    /// What the user can do about it.
    pub(super) fn fix(&self) -> &'static str {
        match self {
            Void::Version => "write \"version\": 1 into it",
            Void::Event(_) => "remove that event from it",
            Void::Slashes(_) => "move the command with `//` into a script, and name the script",
        }
    }
}

impl fmt::Display for Void {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Void::Version => write!(out, "it has no `version`"),
            Void::Event(event) => write!(out, "it names an event that Cursor does not know, `{event}`"),
            Void::Slashes(text) => write!(out, "`{text}` contains `//`, which Cursor reads as a comment"),
        }
    }
}

impl From<Occupied> for Refused {
    fn from(occupied: Occupied) -> Refused {
        Refused::Occupied(occupied)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Occupied(occupied) => occupied.fmt(out),
            Refused::Void(void) => write!(out, "Cursor ignores the whole file, because {void}: {}", void.fix()),
        }
    }
}
