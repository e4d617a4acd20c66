//! Our part of a settings file: the server's entry, and the permission if it is needed.

use relay_mesh_sdk::Error;
use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::files::Root;
use relay_mesh_sdk::install::{Scope, Server, Setup};
use relay_mesh_sdk::servers::{self, Refused};
use serde_json::{Map, Value, json};

use super::{PROJECT, ScopeFiles, USER};

/// The property that lists the servers.
pub(super) const LIST: &str = "mcp";
/// OpenCode adds this to every settings file that lacks it, so ours has it from the start.
const SCHEMA: &str = "https://opencode.ai/config.json";
/// How long OpenCode waits for an answer. Its default of 5 seconds is shorter than a `fetch_messages` that waits
/// for mail, even though each progress notification restarts the time.
const TIMEOUT_MS: u32 = 60_000;

/// Whether OpenCode asks the user before it calls our tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AskRule {
    /// It allows them, as by default.
    No,
    /// A user's rule covers them; a rule of ours after it overrides it.
    ByRule,
    /// `permission` is a single word in this file, so a rule of ours cannot be added.
    Everything(String),
}

/// Which permission covers our tools in all the files that OpenCode merges.
pub(super) fn asks_before_our_tools(setup: &Setup) -> Result<AskRule, Error> {
    let mut asks = AskRule::No;
    let places: &[&ScopeFiles] = match setup.scope {
        Scope::Project => &[&USER, &PROJECT],
        Scope::User => &[&USER],
    };
    for place in places {
        let root = Root::open(place.root)?;
        for file in place.settings {
            let Some(text) = root.read_text(file)? else { continue };
            // The edit of that file, or `check`, reports that it is broken.
            let Some(value) = Document::parse(Some(&text)).ok().and_then(|document| document.get(&["permission"]))
            else {
                continue;
            };
            match value {
                Value::String(word) if word == "allow" => asks = AskRule::No,
                Value::String(_) => asks = AskRule::Everything((*file).to_owned()),
                Value::Object(rules) => {
                    let of_others = rules.iter().filter(|(pattern, _)| **pattern != rule(&setup.server_name));
                    if of_others.clone().any(|(pattern, verdict)| covers(pattern, setup) && verdict != "allow") {
                        asks = AskRule::ByRule;
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
            }
        }
    }
    Ok(asks)
}

/// Whether a rule's pattern covers our tools: a whole name, or a prefix before a star.
fn covers(pattern: &str, setup: &Setup) -> bool {
    let prefix = format!("{}_", setup.server_name);
    match pattern.split_once('*') {
        Some((beginning, _)) => prefix.starts_with(beginning) || beginning.starts_with(&prefix),
        None => pattern.starts_with(&prefix),
    }
}

/// The rule that lets our tools run without asking.
pub(super) fn rule(server: &str) -> String {
    format!("{server}_*")
}

/// The settings file to edit: the one with our entry, else the existing one that overrides the others, else a new
/// one.
pub(super) fn file_to_edit(root: &Root, place: &ScopeFiles, server: &str) -> Result<&'static str, Error> {
    let place = if place.root == PROJECT.root { &PROJECT } else { &USER };
    let mut existing = None;
    for file in place.settings {
        let Some(text) = root.read_text(file)? else { continue };
        let entry = Document::parse(Some(&text)).ok().and_then(|document| document.get(&[LIST, server]));
        if entry.is_some() {
            return Ok(file);
        }
        // OpenCode's own folder has settings only if the user wants them there.
        if existing.is_none_or(|before: &str| before.contains('/') == file.contains('/')) {
            existing = Some(*file);
        }
    }
    Ok(existing.unwrap_or(place.fresh))
}

pub(super) fn put(document: &mut Document, setup: &Setup, asks: &AskRule) -> Result<(), Refused> {
    if document.text().is_none_or(|text| text.trim().is_empty()) {
        document.set(&["$schema"], &json!(SCHEMA))?;
    }
    servers::put(document, LIST, &setup.server_name, &entry(setup))?;
    match asks {
        AskRule::ByRule => {
            // The last rule that matches wins, so ours comes last.
            let rule = rule(&setup.server_name);
            if document.get(&["permission", &rule]).is_none() {
                document.set(&["permission", &rule], &json!("allow"))?;
            }
            Ok(())
        }
        AskRule::No | AskRule::Everything(_) => Ok(()),
    }
}

pub(super) fn take(document: &mut Document, server: &str) {
    let rule = rule(server);
    if document.get(&["permission", &rule]) == Some(json!("allow")) {
        document.remove(&["permission", &rule]);
    }
    let was_ours = document.get(&[LIST, server]).is_some_and(|entry| servers::is_ours(&entry));
    servers::take(document, LIST, server);
    // What is left of a file that we made is not worth keeping.
    let left = document.text().map(str::trim_end);
    if was_ours && left == Some(&format!("{{\n  \"$schema\": \"{SCHEMA}\"\n}}")) {
        document.remove(&["$schema"]);
    }
}

/// The server's entry. In a file that a team commits it holds nothing of this machine: the connector fills in the
/// program and the data folder when OpenCode reads its settings.
pub(super) fn entry(setup: &Setup) -> Value {
    match (&setup.server, setup.scope) {
        (Server::Stdio(command), Scope::Project) => {
            let words = std::iter::once("relay-mesh").chain(command.iter().skip(1).map(String::as_str));
            json!({"type": "local", "command": words.collect::<Vec<_>>(), "timeout": TIMEOUT_MS})
        }
        (Server::Stdio(command), Scope::User) => {
            let mut entry = json!({"type": "local", "command": command});
            if !setup.environment.is_empty() {
                let variables =
                    setup.environment.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
                entry["environment"] = Value::Object(variables.collect::<Map<_, _>>());
            }
            entry["timeout"] = json!(TIMEOUT_MS);
            entry
        }
        (Server::Http(url), Scope::Project | Scope::User) => json!({
            "type": "remote",
            "url": url,
            "headers": {"Authorization": "Bearer {env:RELAY_MESH_TOKEN}"},
            "oauth": false,
            "timeout": TIMEOUT_MS,
        }),
    }
}
