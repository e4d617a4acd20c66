//! Our hooks in a settings file that lists hooks by event under `hooks`, as Claude Code's and Cursor's do.
//!
//! ```
//! use relay_mesh_sdk::{edit::jsonc::Document, hook_settings};
//! use serde_json::json;
//!
//! let is_ours = |entry: &serde_json::Value| entry["command"] == "relay-mesh";
//! let theirs = r#"{"hooks": {"stop": [{"command": "say done"}]}}"#;
//! let mut settings = Document::parse(Some(theirs))?;
//! hook_settings::put(&mut settings, &[("stop", json!({"command": "relay-mesh"}))], is_ours)?;
//! assert_eq!(settings.text(), Some(r#"{"hooks": {"stop": [{"command": "say done"}, {"command": "relay-mesh"}]}}"#));
//! hook_settings::take(&mut settings, is_ours);
//! assert_eq!(settings.text(), Some(theirs));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde_json::Value;

use crate::edit::jsonc::{Document, Occupied, Step};

/// Adds our entries under their events and replaces those of an older install.
pub fn put(
    document: &mut Document,
    wanted: &[(&str, Value)],
    is_ours: impl Fn(&Value) -> bool,
) -> Result<(), Occupied> {
    document.remove_where(|path, value| match path {
        [Step::Key(hooks), Step::Key(event), Step::Index(_)] if hooks == "hooks" => {
            !wanted.iter().any(|(name, want)| name == event && want == value) && is_ours(value)
        }
        _ => false,
    });
    for (event, entry) in wanted {
        let entries = document.get(&["hooks", event]);
        if !entries.as_ref().and_then(Value::as_array).is_some_and(|entries| entries.contains(entry)) {
            document.append(&["hooks", event], entry)?;
        }
    }
    Ok(())
}

/// Removes all our entries, of this install and of older ones.
pub fn take(document: &mut Document, is_ours: impl Fn(&Value) -> bool) {
    document.remove_where(|path, value| match path {
        [Step::Key(hooks), Step::Key(_), Step::Index(_)] if hooks == "hooks" => is_ours(value),
        _ => false,
    });
}
