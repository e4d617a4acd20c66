//! Our part of a settings file that is particular to Claude Code: hooks and variables, put in and taken
//! out.

use relay_mesh_sdk::edit::jsonc::Document;
use relay_mesh_sdk::hook_groups;
use relay_mesh_sdk::install::Setup;
use relay_mesh_sdk::servers::Refused;

use super::entries::{self, is_our_handler};

/// Puts our hooks under `hooks`, in the place of an older install's.
pub(super) fn put_hooks(document: &mut Document, setup: &Setup) -> Result<(), Refused> {
    Ok(hook_groups::put(document, &entries::groups(setup), is_our_handler)?)
}

/// Takes every hook of ours out, of this install or an older one.
pub(super) fn take_hooks(document: &mut Document) {
    hook_groups::take(document, is_our_handler);
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
