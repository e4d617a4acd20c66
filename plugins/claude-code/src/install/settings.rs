//! The parts of a settings file that only Claude Code has: our hooks and variables.

use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::hook_groups;
use relay_mesh_sdk::install::Setup;
use relay_mesh_sdk::servers::Refused;

use super::entries::{self, is_our_handler};

/// Adds our hooks under `hooks` and replaces those of an older install.
pub(super) fn put_hooks(document: &mut Document, setup: &Setup) -> Result<(), Refused> {
    Ok(hook_groups::put(document, &entries::groups(setup), is_our_handler)?)
}

/// Removes all our hooks, of this install and of older ones.
pub(super) fn take_hooks(document: &mut Document) {
    hook_groups::take(document, is_our_handler);
}

/// Sets variables. Claude Code passes those of its settings to the server and the hooks.
pub(super) fn put_variables(document: &mut Document, variables: &[(String, String)]) -> Result<(), Refused> {
    for (name, value) in variables {
        document.set(&["env", name], &value.as_str().into())?;
    }
    Ok(())
}

/// Removes RELAY_DIR, which is always ours, and the variables of this setup.
pub(super) fn take_variables(document: &mut Document, variables: &[(String, String)]) {
    document.remove(&["env", "RELAY_DIR"]);
    for (name, value) in variables {
        if document.get(&["env", name]).is_some_and(|found| found == value.as_str()) {
            document.remove(&["env", name]);
        }
    }
}
