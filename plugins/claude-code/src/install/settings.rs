//! The parts of a settings file that only Claude Code has: our hooks and variables.

use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::install::Setup;
use relay_mesh_sdk::servers::Refused;
use relay_mesh_sdk::{hook_groups, servers};
use serde_json::Value;

use super::entries::{self, is_our_handler};

/// Adds our hooks under `hooks` and replaces those of an older install.
pub(super) fn put_hooks(document: &mut Document, setup: &Setup) -> Result<(), Refused> {
    Ok(hook_groups::put(document, &entries::groups(setup), is_our_handler)?)
}

/// Removes all our hooks, of this install and of older ones.
pub(super) fn take_hooks(document: &mut Document) {
    hook_groups::take(document, is_our_handler);
}

/// Whether settings have any of our hooks, of this install or of an older one.
pub(super) fn has_our_hooks(settings: Option<&Value>) -> bool {
    let events = settings.and_then(|settings| settings.get("hooks")?.as_object());
    let groups = events.into_iter().flat_map(|events| events.values()).filter_map(Value::as_array).flatten();
    let mut handlers = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
    handlers.any(is_our_handler)
}

/// Whether a list of servers has ours.
pub(super) fn has_our_server(list: Option<&Value>, name: &str) -> bool {
    list.and_then(|list| list.get("mcpServers")?.get(name)).is_some_and(servers::is_ours)
}

/// The variable that names the data folder, and so the mesh.
pub(super) const FOLDER: &str = "RELAY_DIR";

/// The data folder that a setup names; none for the usual one.
pub(super) fn folder(variables: &[(String, String)]) -> Option<&str> {
    variables.iter().find(|(name, _)| name == FOLDER).map(|(_, value)| value.as_str())
}

/// Sets variables. Claude Code passes those of its settings to the server and the hooks. A folder that is set and not
/// named here goes: it would lead the agents of this setup to another mesh.
pub(super) fn put_variables(document: &mut Document, variables: &[(String, String)]) -> Result<(), Refused> {
    for (name, value) in variables {
        document.set(&["env", name], &value.as_str().into())?;
    }
    if folder(variables).is_none() {
        document.remove(&["env", FOLDER]);
    }
    Ok(())
}

/// Removes the folder and the variables of this setup. Only where we are set up: elsewhere they are the user's.
pub(super) fn take_variables(document: &mut Document, variables: &[(String, String)]) {
    document.remove(&["env", FOLDER]);
    for (name, value) in variables {
        if document.get(&["env", name]).is_some_and(|found| found == value.as_str()) {
            document.remove(&["env", name]);
        }
    }
}
