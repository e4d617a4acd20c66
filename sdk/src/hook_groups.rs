//! Our hooks in settings of the shape that Claude Code and Codex share: an object `hooks` that lists groups
//! of handlers per event.
//!
//! ```
//! use relay_mesh_sdk::{edit::jsonc::Document, hook_groups};
//! use serde_json::json;
//!
//! let is_ours = |handler: &serde_json::Value| handler["command"] == "relay-mesh hook codex Stop";
//! let ours = json!({"hooks": [{"type": "command", "command": "relay-mesh hook codex Stop"}]});
//! let theirs = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}"#;
//! let mut settings = Document::parse(Some(theirs))?;
//! hook_groups::put(&mut settings, &[("Stop", ours.clone())], is_ours)?;
//! assert_eq!(settings.get(&["hooks", "Stop"]).unwrap()[1], ours);
//! hook_groups::take(&mut settings, is_ours);
//! assert_eq!(settings.text(), Some(theirs));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde_json::Value;

use crate::checklist::Checklist;
use crate::edit::jsonc::{Document, Occupied, Step};
use crate::hook_settings;

/// Adds our groups under their events and replaces those of an older install.
pub fn put(
    document: &mut Document,
    wanted: &[(&str, Value)],
    is_ours: impl Fn(&Value) -> bool,
) -> Result<(), Occupied> {
    let is_current = |group: &Value| wanted.iter().any(|(_, want)| want == group);
    take_merged(document, &is_ours, is_current);
    hook_settings::put(document, wanted, |group| is_our_group(group, &is_ours))
}

/// Removes all our handlers, of this install and of older ones.
pub fn take(document: &mut Document, is_ours: impl Fn(&Value) -> bool) {
    hook_settings::take(document, |group| is_our_group(group, &is_ours));
    take_merged(document, &is_ours, |_| false);
}

/// Whether every handler of a group is ours, so that the whole group can be removed.
fn is_our_group(group: &Value, is_ours: impl Fn(&Value) -> bool) -> bool {
    let handlers = group.get("hooks").and_then(Value::as_array);
    handlers.is_some_and(|handlers| !handlers.is_empty() && handlers.iter().all(is_ours))
}

/// Checks that the settings contain every hook that we want, and adds the finding to `list`.
pub fn check(
    list: &mut Checklist,
    path: &str,
    settings: Option<&Value>,
    wanted: &[(&str, Value)],
    is_ours: impl Fn(&Value) -> bool,
    fix: &str,
) {
    list.hooks(settings, path, wanted, |group| is_our_group(group, &is_ours), fix);
}

/// Removes our handlers from groups that also hold other handlers, because a user merged them by hand.
fn take_merged(document: &mut Document, is_ours: &impl Fn(&Value) -> bool, is_current: impl Fn(&Value) -> bool) {
    let before = document.get(&["hooks"]).unwrap_or_default();
    let group = |event: &str, index: usize| before.get(event).and_then(|groups| groups.get(index));
    document.remove_where(|path, value| match path {
        [Step::Key(hooks), Step::Key(event), Step::Index(index), Step::Key(list), Step::Index(_)] => {
            let merged = group(event, *index).is_some_and(|group| !is_our_group(group, is_ours) && !is_current(group));
            hooks == "hooks" && list == "hooks" && merged && is_ours(value)
        }
        _ => false,
    });
}
