//! Our entry among the MCP servers that a harness lists in a settings file of JSON.
//!
//! ```
//! use relay_mesh_sdk::{edit::jsonc::Document, servers};
//! use serde_json::json;
//!
//! let mut settings = Document::parse(Some("{}"))?;
//! servers::put(&mut settings, "mcpServers", "relay-mesh", &json!({"command": "relay-mesh"}))?;
//! assert!(servers::put(&mut settings, "mcpServers", "relay-mesh", &json!({"command": "/opt/relay-mesh"})).is_ok());
//! servers::take(&mut settings, "mcpServers", "relay-mesh");
//! assert_eq!(settings.text(), Some("{}"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use serde_json::Value;

use crate::edit::jsonc::{Document, Occupied};

/// Why our entry cannot go into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The file holds a value of another type where ours should go.
    Occupied(Occupied),
    /// Another server has this name: the list, the name.
    Taken(String, String),
}

/// Adds our entry to a list of servers and replaces that of an older install.
pub fn put(document: &mut Document, list: &str, name: &str, entry: &Value) -> Result<(), Refused> {
    if document.get(&[list, name]).is_some_and(|found| !is_ours(&found)) {
        return Err(Refused::Taken(list.to_owned(), name.to_owned()));
    }
    Ok(document.set(&[list, name], entry)?)
}

/// Removes the entry of this name if it is ours.
pub fn take(document: &mut Document, list: &str, name: &str) {
    if document.get(&[list, name]).is_some_and(|found| is_ours(&found)) {
        document.remove(&[list, name]);
    }
}

/// Whether a server's entry is ours, of this install or an older one. The program it starts or the token it
/// sends decides. A URL does not: any server may listen there.
pub fn is_ours(entry: &Value) -> bool {
    let program = match entry.get("command") {
        Some(Value::Array(words)) => words.first().and_then(Value::as_str),
        Some(command) => command.as_str(),
        None => None,
    };
    let starts_us = program.is_some_and(|program| program.contains("relay-mesh") || program.contains("RELAY_MESH_BIN"));
    let header = entry.pointer("/headers/Authorization").and_then(Value::as_str);
    starts_us || header.is_some_and(|header| header.contains("RELAY_MESH_TOKEN"))
}

/// Our servers in a list under other names.
pub fn aliases(settings: Option<&Value>, list: &str, name: &str) -> Vec<String> {
    let servers = settings.and_then(|settings| settings.get(list)?.as_object());
    let others = servers.into_iter().flatten().filter(|(other, entry)| *other != name && is_ours(entry));
    others.map(|(other, _)| other.clone()).collect()
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
            Refused::Taken(list, name) => {
                write!(out, "`{list}.{name}`: another server already has this name; rename it first")
            }
        }
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_ours_by_what_it_starts_or_shows() {
        for (entry, ours) in [
            (json!({"command": "/opt/bin/relay-mesh"}), true),
            (json!({"command": "${RELAY_MESH_BIN:-relay-mesh}"}), true),
            (json!({"command": ["/opt/relay-mesh", "mcp"]}), true),
            (
                json!({"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer ${RELAY_MESH_TOKEN:-}"}}),
                true,
            ),
            (json!({"url": "http://127.0.0.1:1/mcp"}), false),
            (json!({"command": "other", "args": ["relay-mesh"]}), false),
            (json!("relay-mesh"), false),
        ] {
            assert_eq!(is_ours(&entry), ours, "{entry}");
        }
    }

    #[test]
    fn a_server_of_somebody_else_stays() {
        let theirs = "{\"mcpServers\": {\"relay-mesh\": {\"command\": \"theirs\"}}}";
        let mut document = Document::parse(Some(theirs)).expect("it parses");
        let refused = put(&mut document, "mcpServers", "relay-mesh", &json!({})).map_err(|refused| refused.to_string());
        assert_eq!(
            refused,
            Err("`mcpServers.relay-mesh`: another server already has this name; rename it first".into())
        );
        take(&mut document, "mcpServers", "relay-mesh");
        assert_eq!(document.text(), Some(theirs));
    }
}
