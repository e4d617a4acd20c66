//! Our part of a settings file that is particular to Claude Code: hooks and variables, put in and taken
//! out.

use relay_mesh_sdk::edit::jsonc::{Document, Step};
use relay_mesh_sdk::install::Setup;
use relay_mesh_sdk::servers::Refused;
use serde_json::Value;

use super::entries::{self, HOOKS, is_our_group, is_our_handler};

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
