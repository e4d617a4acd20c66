//! Our part of a settings file: hooks, permissions, approval, variables and the server's entry, put
//! in and taken out.

use std::fmt;

use relay_mesh_sdk::edit::jsonc::{Document, Occupied, Step};
use relay_mesh_sdk::install::Setup;
use serde_json::Value;

use super::entries::{self, HOOKS, is_our_group, is_our_handler};

/// Why our part does not go into a file.
#[derive(Debug)]
pub(super) enum Refused {
    /// Something of another shape stands where ours should go.
    Occupied(Occupied),
    /// The server's name belongs to somebody else.
    Taken(String),
}

/// Puts our hooks under `hooks`, in the place of an older install's.
pub(super) fn put_hooks(document: &mut Document, setup: &Setup) -> Result<(), Refused> {
    let wanted: Vec<_> = HOOKS.iter().map(|hook| (hook.event, entries::group(hook, setup))).collect();
    let before = document.get(&["hooks"]).unwrap_or_default();
    let is_current = |event: &str, index: usize| {
        let group = before.get(event).and_then(|groups| groups.get(index));
        wanted.iter().any(|(name, want)| *name == event && Some(want) == group)
    };
    document.remove_where(|path, value| match path {
        [Step::Key(hooks), Step::Key(event), Step::Index(index)] if hooks == "hooks" => {
            !is_current(event, *index) && is_our_group(value)
        }
        // Ours beside somebody else's, in a group that was merged by hand.
        [Step::Key(hooks), Step::Key(event), Step::Index(index), Step::Key(list), Step::Index(_)] => {
            hooks == "hooks" && list == "hooks" && !is_current(event, *index) && is_our_handler(value)
        }
        _ => false,
    });
    for (event, group) in &wanted {
        let groups = document.get(&["hooks", event]);
        if !groups.as_ref().and_then(Value::as_array).is_some_and(|groups| groups.contains(group)) {
            document.append(&["hooks", event], group)?;
        }
    }
    Ok(())
}

/// Takes every hook of ours out, of this install or an older one.
pub(super) fn take_hooks(document: &mut Document) {
    document.remove_where(|path, value| match path {
        [Step::Key(hooks), Step::Key(_), Step::Index(_)] if hooks == "hooks" => is_our_group(value),
        [Step::Key(hooks), Step::Key(_), Step::Index(_), Step::Key(list), Step::Index(_)] => {
            hooks == "hooks" && list == "hooks" && is_our_handler(value)
        }
        _ => false,
    });
}

/// Adds a text to a list, where it is not in it yet.
pub(super) fn put_in_list(document: &mut Document, path: &[&str], text: &str) -> Result<(), Refused> {
    let listed = document.get(path).as_ref().and_then(Value::as_array).is_some_and(|list| list.contains(&text.into()));
    if !listed {
        document.append(path, &text.into())?;
    }
    Ok(())
}

/// Takes a text out of a list.
pub(super) fn take_from_list(document: &mut Document, path: &[&str], text: &str) {
    document.remove_where(|steps, value| {
        let in_list = match steps.split_last() {
            Some((Step::Index(_), keys)) if keys.len() == path.len() => {
                keys.iter().zip(path).all(|(step, key)| matches!(step, Step::Key(name) if name == key))
            }
            _ => false,
        };
        in_list && value == text
    });
}

/// Variables for the server and the hooks. Claude Code hands those of its settings to both.
pub(super) fn put_variables(document: &mut Document, variables: &[(String, String)]) -> Result<(), Refused> {
    for (name, value) in variables {
        document.set(&["env", name], &value.as_str().into())?;
    }
    Ok(())
}

/// Takes out RELAY_DIR, which is ours by its name, and the variables that the setup gives.
pub(super) fn take_variables(document: &mut Document, variables: &[(String, String)]) {
    document.remove(&["env", "RELAY_DIR"]);
    for (name, value) in variables {
        if document.get(&["env", name]).is_some_and(|found| found == value.as_str()) {
            document.remove(&["env", name]);
        }
    }
}

/// Puts our entry under `mcpServers`.
pub(super) fn put_server(document: &mut Document, name: &str, entry: &Value) -> Result<(), Refused> {
    if document.get(&["mcpServers", name]).is_some_and(|found| !entries::is_our_server(&found)) {
        return Err(Refused::Taken(name.to_owned()));
    }
    Ok(document.set(&["mcpServers", name], entry)?)
}

/// Takes our entry out.
pub(super) fn take_server(document: &mut Document, name: &str) {
    if document.get(&["mcpServers", name]).is_some_and(|found| entries::is_our_server(&found)) {
        document.remove(&["mcpServers", name]);
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
            Refused::Taken(name) => {
                write!(
                    out,
                    "`mcpServers.{name}`: a server of this name that is not relay-mesh's is there; rename it first"
                )
            }
        }
    }
}
